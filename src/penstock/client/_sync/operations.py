"""What operators decide, see and do by hand; and the browser of schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.client._sync.transport import Transport


class Operations:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def config(self, subject: str) -> dict[str, Any]:
        """`lifecycle`, `concurrency`, `maintenance` or `export`."""
        found: dict[str, Any] = self._data("GET", "/api/config/{subject}", path={"subject": subject})
        return found

    def set_config(self, subject: str, **values: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._data("PUT", "/api/config/{subject}", path={"subject": subject}, json=values)
        return found

    def cluster(self, subject: str = "health") -> dict[str, Any]:
        """`health`, `instances` or `metrics`."""
        found: dict[str, Any] = self._data("GET", "/api/cluster/{subject}", path={"subject": subject})
        return found

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self._data("GET", "/api/ops/state")
        return found

    def loops(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (self._data("GET", "/api/ops/jobs/status"))["jobs"]
        return found

    def trigger(self, job_name: str, reason: str) -> dict[str, Any]:
        body = {"job_name": job_name, "reason": reason}
        found: dict[str, Any] = self._data("POST", "/api/ops/jobs/trigger", json=body)
        return found

    def export_jobs(self, **filters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (self._data("GET", "/api/ops/export-jobs", query=filters))["jobs"]
        return found

    def retry_export(self, job_id: int) -> dict[str, Any]:
        found: dict[str, Any] = self._data("POST", "/api/exports/{job_id}/retry", path={"job_id": job_id})
        return found

    def cancel_export(self, job_id: int) -> dict[str, Any]:
        found: dict[str, Any] = self._data("POST", "/api/exports/{job_id}/cancel", path={"job_id": job_id})
        return found

    def bulk_delete(
        self, resource_type: str, filters: Mapping[str, Any], *, reason: str, expected_count: int, dry_run: bool = True
    ) -> dict[str, Any]:
        body = {
            "resource_type": resource_type,
            "filters": dict(filters),
            "reason": reason,
            "expected_count": expected_count,
            "dry_run": dry_run,
        }
        found: dict[str, Any] = self._data("DELETE", "/api/admin/resources/bulk", json=body)
        return found

    def audit(self, **filters: Any) -> list[dict[str, Any]]:
        """What was changed by hand, newest first."""
        found: list[dict[str, Any]] = self._data("GET", "/api/audit", query=filters)
        return found

    def queues(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._data("GET", "/api/queues")
        return found

    def workers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._data("GET", "/api/workers")
        return found

    def drain(self, draining: bool | None = None, reason: str = "") -> dict[str, Any]:
        """Whether jobs are taken; with a value, from now on."""
        if draining is None:
            found: dict[str, Any] = self._data("GET", "/api/drain")
            return found
        body = {"draining": draining, "reason": reason}
        changed: dict[str, Any] = self._data("PUT", "/api/drain", json=body)
        return changed

    def _data(self, method: str, template: str, **content: Any) -> Any:
        return (self._transport.call(method, template, **content))["data"]


class Schemas:
    """The schema browser."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def catalogs(self) -> list[dict[str, Any]]:
        return self._list("/api/schema/catalogs")

    def schemas(self, catalog: str) -> list[dict[str, Any]]:
        return self._list("/api/schema/catalogs/{catalog}/schemas", catalog=catalog)

    def tables(self, catalog: str, schema: str) -> list[dict[str, Any]]:
        return self._list("/api/schema/catalogs/{catalog}/schemas/{schema}/tables", catalog=catalog, schema=schema)

    def columns(self, catalog: str, schema: str, table: str) -> list[dict[str, Any]]:
        template = "/api/schema/catalogs/{catalog}/schemas/{schema}/tables/{table}/columns"
        return self._list(template, catalog=catalog, schema=schema, table=table)

    def search_tables(self, text: str, limit: int = 100) -> list[dict[str, Any]]:
        answer = self._transport.call("GET", "/api/schema/search/tables", query={"q": text, "limit": limit})
        found: list[dict[str, Any]] = answer["data"]
        return found

    def search_columns(self, text: str, limit: int = 100) -> list[dict[str, Any]]:
        answer = self._transport.call("GET", "/api/schema/search/columns", query={"q": text, "limit": limit})
        found: list[dict[str, Any]] = answer["data"]
        return found

    def refresh(self) -> None:
        self._transport.call("POST", "/api/schema/admin/refresh")

    def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = (self._transport.call("GET", "/api/schema/stats"))["data"]
        return found

    def _list(self, template: str, **path: object) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (self._transport.call("GET", template, path=path))["data"]
        return found
