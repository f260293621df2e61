"""Operations: settings, cluster, background loops, audit log and the schema browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.listing import listed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._sync.transport import Transport
    from penstock.client.words import ResourceType


class Operations:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def lifecycle(self) -> shapes.Lifecycle:
        """Default lifetimes of mappings, snapshots and instances."""
        settings: shapes.Lifecycle = self._data("GET", "/api/config/lifecycle")
        return settings

    def set_lifecycle(
        self, **rules: Unpack[shapes.LifecycleSettingsBody]
    ) -> shapes.SettingsUpdated:
        done: shapes.SettingsUpdated = self._data("PUT", "/api/config/lifecycle", json=rules)
        return done

    def concurrency(self) -> shapes.Concurrency:
        """How many instances one analyst, and all together, may run."""
        settings: shapes.Concurrency = self._data("GET", "/api/config/concurrency")
        return settings

    def set_concurrency(self, **limits: Unpack[shapes.ConcurrencyBody]) -> shapes.Concurrency:
        settings: shapes.Concurrency = self._data("PUT", "/api/config/concurrency", json=limits)
        return settings

    def maintenance(self) -> shapes.Maintenance:
        """Whether the control plane is closed for maintenance."""
        settings: shapes.Maintenance = self._data("GET", "/api/config/maintenance")
        return settings

    def set_maintenance(self, **mode: Unpack[shapes.MaintenanceModeBody]) -> shapes.Maintenance:
        settings: shapes.Maintenance = self._data("PUT", "/api/config/maintenance", json=mode)
        return settings

    def export(self) -> shapes.ExportSettings:
        settings: shapes.ExportSettings = self._data("GET", "/api/config/export")
        return settings

    def set_export(self, **limits: Unpack[shapes.ExportBody]) -> shapes.ExportSettings:
        settings: shapes.ExportSettings = self._data("PUT", "/api/config/export", json=limits)
        return settings

    def health(self) -> shapes.ClusterHealth:
        cluster: shapes.ClusterHealth = self._data("GET", "/api/cluster/health")
        return cluster

    def instances(self) -> shapes.ClusterInstances:
        cluster: shapes.ClusterInstances = self._data("GET", "/api/cluster/instances")
        return cluster

    def metrics(self) -> shapes.ClusterMetrics:
        cluster: shapes.ClusterMetrics = self._data("GET", "/api/cluster/metrics")
        return cluster

    def state(self) -> shapes.State:
        state: shapes.State = self._data("GET", "/api/ops/state")
        return state

    def loops(self) -> list[shapes.LoopStatus]:
        status: shapes.LoopsStatus = self._data("GET", "/api/ops/jobs/status")
        return status["jobs"]

    def trigger(self, job_name: str, reason: str) -> shapes.LoopTriggered:
        body: shapes.TriggerBody = {"job_name": job_name, "reason": reason}
        result: shapes.LoopTriggered = self._data("POST", "/api/ops/jobs/trigger", json=body)
        return result

    def export_jobs(self, **filters: Unpack[shapes.OpsExportJobsFilters]) -> list[shapes.ExportJob]:
        """The newest exports."""
        page: shapes.ExportPage = self._transport.call("GET", "/api/ops/export-jobs", query=filters)
        return page["data"]["jobs"]

    def retry_export(self, job_id: int) -> shapes.ExportJob:
        job: shapes.ExportJob = self._data(
            "POST", "/api/exports/{job_id}/retry", path={"job_id": job_id}
        )
        return job

    def cancel_export(self, job_id: int, reason: str = "") -> shapes.ExportJob:
        body: shapes.CancelReason = {"reason": reason}
        path = {"job_id": job_id}
        job: shapes.ExportJob = self._data(
            "POST", "/api/exports/{job_id}/cancel", path=path, json=body
        )
        return job

    def bulk_delete(
        self,
        resource_type: ResourceType,
        filters: shapes.BulkFilters,
        *,
        reason: str,
        expected_count: int | None = None,
        dry_run: bool = True,
    ) -> shapes.BulkDeleted:
        """What the filters find is counted, and deleted when `dry_run` is off and the count is as
        expected."""
        body: shapes.BulkBody = {
            "resource_type": resource_type,
            "filters": filters,
            "reason": reason,
            "expected_count": expected_count,
            "dry_run": dry_run,
        }
        result: shapes.BulkDeleted = self._data("DELETE", "/api/admin/resources/bulk", json=body)
        return result

    def audit(self, **filters: Unpack[shapes.AuditFilters]) -> Iterator[shapes.AuditEntry]:
        """What was changed by hand, newest first."""
        yield from listed(self._transport, "/api/audit", **filters)

    def queues(self) -> list[shapes.Queue]:
        return list(listed(self._transport, "/api/queues"))

    def workers(self) -> list[shapes.Worker]:
        return list(listed(self._transport, "/api/workers"))

    def drain(self, draining: bool | None = None, reason: str = "") -> shapes.Drain:
        """Whether jobs are taken; with a value, from now on."""
        if draining is None:
            status: shapes.Drain = self._data("GET", "/api/drain")
            return status
        body: shapes.DrainBody = {"draining": draining, "reason": reason}
        changed: shapes.Drain = self._data("PUT", "/api/drain", json=body)
        return changed

    def _data(self, method: str, template: str, **content: Any) -> Any:
        return (self._transport.call(method, template, **content))["data"]


class Schemas:
    """The schema browser."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def catalogs(self) -> list[shapes.Catalog]:
        return list(listed(self._transport, "/api/schema/catalogs"))

    def schemas(self, catalog: str) -> list[shapes.SchemaListed]:
        path = {"catalog": catalog}
        return list(listed(self._transport, "/api/schema/catalogs/{catalog}/schemas", path))

    def tables(self, catalog: str, schema: str) -> list[shapes.BrowsedTable]:
        template = "/api/schema/catalogs/{catalog}/schemas/{schema}/tables"
        return list(listed(self._transport, template, {"catalog": catalog, "schema": schema}))

    def columns(self, catalog: str, schema: str, table: str) -> list[shapes.ColumnListed]:
        template = "/api/schema/catalogs/{catalog}/schemas/{schema}/tables/{table}/columns"
        path = {"catalog": catalog, "schema": schema, "table": table}
        return list(listed(self._transport, template, path))

    def search_tables(self, text: str, limit: int = 100) -> list[shapes.BrowsedTable]:
        answer = self._transport.call(
            "GET", "/api/schema/search/tables", query={"q": text, "limit": limit}
        )
        rows: list[shapes.BrowsedTable] = answer["data"]
        return rows

    def search_columns(self, text: str, limit: int = 100) -> list[shapes.ColumnListed]:
        answer = self._transport.call(
            "GET", "/api/schema/search/columns", query={"q": text, "limit": limit}
        )
        rows: list[shapes.ColumnListed] = answer["data"]
        return rows

    def refresh(self) -> shapes.RefreshTriggered:
        done: shapes.RefreshTriggered = (self._transport.call("POST", "/api/schema/admin/refresh"))[
            "data"
        ]
        return done

    def stats(self) -> shapes.Stats:
        answer: shapes.Stats = (self._transport.call("GET", "/api/schema/stats"))["data"]
        return answer
