"""Operations: settings, cluster, background loops, audit log and the schema browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client.words import ResourceType


class AsyncOperations(AsyncResource):
    async def lifecycle(self) -> shapes.Lifecycle:
        """Default lifetimes of mappings, snapshots and instances."""
        settings: shapes.Lifecycle = await self._call("GET", "/api/config/lifecycle")
        return settings

    async def set_lifecycle(
        self, **rules: Unpack[shapes.LifecycleSettingsBody]
    ) -> shapes.SettingsUpdated:
        done: shapes.SettingsUpdated = await self._call("PUT", "/api/config/lifecycle", json=rules)
        return done

    async def concurrency(self) -> shapes.Concurrency:
        """How many instances one analyst, and all together, may run."""
        settings: shapes.Concurrency = await self._call("GET", "/api/config/concurrency")
        return settings

    async def set_concurrency(self, **limits: Unpack[shapes.ConcurrencyBody]) -> shapes.Concurrency:
        settings: shapes.Concurrency = await self._call(
            "PUT", "/api/config/concurrency", json=limits
        )
        return settings

    async def maintenance(self) -> shapes.Maintenance:
        """Whether the control plane is closed for maintenance."""
        settings: shapes.Maintenance = await self._call("GET", "/api/config/maintenance")
        return settings

    async def set_maintenance(
        self, **mode: Unpack[shapes.MaintenanceModeBody]
    ) -> shapes.Maintenance:
        settings: shapes.Maintenance = await self._call("PUT", "/api/config/maintenance", json=mode)
        return settings

    async def export(self) -> shapes.ExportSettings:
        settings: shapes.ExportSettings = await self._call("GET", "/api/config/export")
        return settings

    async def set_export(self, **limits: Unpack[shapes.ExportBody]) -> shapes.ExportSettings:
        settings: shapes.ExportSettings = await self._call("PUT", "/api/config/export", json=limits)
        return settings

    async def health(self) -> shapes.ClusterHealth:
        cluster: shapes.ClusterHealth = await self._call("GET", "/api/cluster/health")
        return cluster

    async def instances(self) -> shapes.ClusterInstances:
        cluster: shapes.ClusterInstances = await self._call("GET", "/api/cluster/instances")
        return cluster

    async def metrics(self) -> shapes.ClusterMetrics:
        cluster: shapes.ClusterMetrics = await self._call("GET", "/api/cluster/metrics")
        return cluster

    async def state(self) -> shapes.State:
        state: shapes.State = await self._call("GET", "/api/ops/state")
        return state

    async def loops(self) -> list[shapes.LoopStatus]:
        status: shapes.LoopsStatus = await self._call("GET", "/api/ops/jobs/status")
        return status["jobs"]

    async def trigger(self, job_name: str, reason: str) -> shapes.LoopTriggered:
        body: shapes.TriggerBody = {"job_name": job_name, "reason": reason}
        result: shapes.LoopTriggered = await self._call("POST", "/api/ops/jobs/trigger", json=body)
        return result

    async def export_jobs(
        self, **filters: Unpack[shapes.OpsExportJobsFilters]
    ) -> list[shapes.ExportJob]:
        """The newest exports."""
        page: shapes.ExportPage = await self._ask("GET", "/api/ops/export-jobs", query=filters)
        return page["data"]["jobs"]

    async def retry_export(self, job_id: int) -> shapes.ExportJob:
        job: shapes.ExportJob = await self._call(
            "POST", "/api/exports/{job_id}/retry", job_id=job_id
        )
        return job

    async def cancel_export(self, job_id: int, reason: str = "") -> shapes.ExportJob:
        body: shapes.CancelReason = {"reason": reason}
        job: shapes.ExportJob = await self._call(
            "POST", "/api/exports/{job_id}/cancel", job_id=job_id, json=body
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
        result: shapes.BulkDeleted = await self._call(
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
            status: shapes.Drain = await self._call("GET", "/api/drain")
            return status
        body: shapes.DrainBody = {"draining": draining, "reason": reason}
        changed: shapes.Drain = await self._call("PUT", "/api/drain", json=body)
        return changed


class AsyncSchemas(AsyncResource):
    """The schema browser."""

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
        rows: list[shapes.BrowsedTable] = await self._call(
            "GET", "/api/schema/search/tables", query={"q": text, "limit": limit}
        )
        return rows

    async def search_columns(self, text: str, limit: int = 100) -> list[shapes.ColumnListed]:
        rows: list[shapes.ColumnListed] = await self._call(
            "GET", "/api/schema/search/columns", query={"q": text, "limit": limit}
        )
        return rows

    async def refresh(self) -> shapes.RefreshTriggered:
        done: shapes.RefreshTriggered = await self._call("POST", "/api/schema/admin/refresh")
        return done

    async def stats(self) -> shapes.Stats:
        answer: shapes.Stats = await self._call("GET", "/api/schema/stats")
        return answer
