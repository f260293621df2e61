"""Operations: settings, cluster, background loops, audit log and the schema browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._async.listing import listed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._async.transport import AsyncTransport
    from penstock.client.words import ResourceType


class AsyncOperations:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def lifecycle(self) -> shapes.Lifecycle:
        """Default lifetimes of mappings, snapshots and instances."""
        settings: shapes.Lifecycle = await self._data("GET", "/api/config/lifecycle")
        return settings

    async def set_lifecycle(
        self, **rules: Unpack[shapes.LifecycleSettingsBody]
    ) -> shapes.SettingsUpdated:
        done: shapes.SettingsUpdated = await self._data("PUT", "/api/config/lifecycle", json=rules)
        return done

    async def concurrency(self) -> shapes.Concurrency:
        """How many instances one analyst, and all together, may run."""
        settings: shapes.Concurrency = await self._data("GET", "/api/config/concurrency")
        return settings

    async def set_concurrency(self, **limits: Unpack[shapes.ConcurrencyBody]) -> shapes.Concurrency:
        settings: shapes.Concurrency = await self._data(
            "PUT", "/api/config/concurrency", json=limits
        )
        return settings

    async def maintenance(self) -> shapes.Maintenance:
        """Whether the control plane is closed for maintenance."""
        settings: shapes.Maintenance = await self._data("GET", "/api/config/maintenance")
        return settings

    async def set_maintenance(
        self, **mode: Unpack[shapes.MaintenanceModeBody]
    ) -> shapes.Maintenance:
        settings: shapes.Maintenance = await self._data("PUT", "/api/config/maintenance", json=mode)
        return settings

    async def export(self) -> shapes.ExportSettings:
        settings: shapes.ExportSettings = await self._data("GET", "/api/config/export")
        return settings

    async def set_export(self, **limits: Unpack[shapes.ExportBody]) -> shapes.ExportSettings:
        settings: shapes.ExportSettings = await self._data("PUT", "/api/config/export", json=limits)
        return settings

    async def health(self) -> shapes.ClusterHealth:
        cluster: shapes.ClusterHealth = await self._data("GET", "/api/cluster/health")
        return cluster

    async def instances(self) -> shapes.ClusterInstances:
        cluster: shapes.ClusterInstances = await self._data("GET", "/api/cluster/instances")
        return cluster

    async def metrics(self) -> shapes.ClusterMetrics:
        cluster: shapes.ClusterMetrics = await self._data("GET", "/api/cluster/metrics")
        return cluster

    async def state(self) -> shapes.State:
        state: shapes.State = await self._data("GET", "/api/ops/state")
        return state

    async def loops(self) -> list[shapes.LoopStatus]:
        status: shapes.LoopsStatus = await self._data("GET", "/api/ops/jobs/status")
        return status["jobs"]

    async def trigger(self, job_name: str, reason: str) -> shapes.LoopTriggered:
        body: shapes.TriggerBody = {"job_name": job_name, "reason": reason}
        result: shapes.LoopTriggered = await self._data("POST", "/api/ops/jobs/trigger", json=body)
        return result

    async def export_jobs(
        self, **filters: Unpack[shapes.OpsExportJobsFilters]
    ) -> list[shapes.ExportJob]:
        """The newest exports."""
        page: shapes.ExportPage = await self._transport.call(
            "GET", "/api/ops/export-jobs", query=filters
        )
        return page["data"]["jobs"]

    async def retry_export(self, job_id: int) -> shapes.ExportJob:
        job: shapes.ExportJob = await self._data(
            "POST", "/api/exports/{job_id}/retry", path={"job_id": job_id}
        )
        return job

    async def cancel_export(self, job_id: int, reason: str = "") -> shapes.ExportJob:
        body: shapes.CancelReason = {"reason": reason}
        path = {"job_id": job_id}
        job: shapes.ExportJob = await self._data(
            "POST", "/api/exports/{job_id}/cancel", path=path, json=body
        )
        return job

    async def bulk_delete(
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
        result: shapes.BulkDeleted = await self._data(
            "DELETE", "/api/admin/resources/bulk", json=body
        )
        return result

    async def audit(
        self, **filters: Unpack[shapes.AuditFilters]
    ) -> AsyncIterator[shapes.AuditEntry]:
        """What was changed by hand, newest first."""
        async for item in listed(self._transport, "/api/audit", **filters):
            yield item

    async def queues(self) -> list[shapes.Queue]:
        return [item async for item in listed(self._transport, "/api/queues")]

    async def workers(self) -> list[shapes.Worker]:
        return [item async for item in listed(self._transport, "/api/workers")]

    async def drain(self, draining: bool | None = None, reason: str = "") -> shapes.Drain:
        """Whether jobs are taken; with a value, from now on."""
        if draining is None:
            status: shapes.Drain = await self._data("GET", "/api/drain")
            return status
        body: shapes.DrainBody = {"draining": draining, "reason": reason}
        changed: shapes.Drain = await self._data("PUT", "/api/drain", json=body)
        return changed

    async def _data(self, method: str, template: str, **content: Any) -> Any:
        return (await self._transport.call(method, template, **content))["data"]


class AsyncSchemas:
    """The schema browser."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def catalogs(self) -> list[shapes.Catalog]:
        return [item async for item in listed(self._transport, "/api/schema/catalogs")]

    async def schemas(self, catalog: str) -> list[shapes.SchemaListed]:
        path = {"catalog": catalog}
        return [
            item
            async for item in listed(
                self._transport, "/api/schema/catalogs/{catalog}/schemas", path
            )
        ]

    async def tables(self, catalog: str, schema: str) -> list[shapes.BrowsedTable]:
        template = "/api/schema/catalogs/{catalog}/schemas/{schema}/tables"
        return [
            item
            async for item in listed(
                self._transport, template, {"catalog": catalog, "schema": schema}
            )
        ]

    async def columns(self, catalog: str, schema: str, table: str) -> list[shapes.ColumnListed]:
        template = "/api/schema/catalogs/{catalog}/schemas/{schema}/tables/{table}/columns"
        path = {"catalog": catalog, "schema": schema, "table": table}
        return [item async for item in listed(self._transport, template, path)]

    async def search_tables(self, text: str, limit: int = 100) -> list[shapes.BrowsedTable]:
        answer = await self._transport.call(
            "GET", "/api/schema/search/tables", query={"q": text, "limit": limit}
        )
        rows: list[shapes.BrowsedTable] = answer["data"]
        return rows

    async def search_columns(self, text: str, limit: int = 100) -> list[shapes.ColumnListed]:
        answer = await self._transport.call(
            "GET", "/api/schema/search/columns", query={"q": text, "limit": limit}
        )
        rows: list[shapes.ColumnListed] = answer["data"]
        return rows

    async def refresh(self) -> shapes.RefreshTriggered:
        done: shapes.RefreshTriggered = (
            await self._transport.call("POST", "/api/schema/admin/refresh")
        )["data"]
        return done

    async def stats(self) -> shapes.Stats:
        answer: shapes.Stats = (await self._transport.call("GET", "/api/schema/stats"))["data"]
        return answer
