"""Iceberg tables and what is done to keep them well: `ps.tables["lake.sales.orders"].maintain(["compact"])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.jobs import Job
from penstock.client._sync.listing import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.client._sync.transport import Transport

SHORT = {
    "compact": "rewrite_data_files",
    "expire": "expire_snapshots",
    "manifests": "rewrite_manifests",
    "deletes": "rewrite_position_delete_files",
    "orphans": "remove_orphan_files",
}


class Table:
    def __init__(self, transport: Transport, catalog: str | None, db: str, table: str) -> None:
        self._transport = transport
        self._catalog = catalog
        self._path = {"db": db, "table": table}

    def __repr__(self) -> str:
        return f"<Table {'.'.join(filter(None, (self._catalog, *self._path.values())))}>"

    def maintain(self, actions: Sequence[str | Mapping[str, Any]], **options: Any) -> Job:
        """Lock it and run the actions. Short names: compact, expire, manifests, deletes, orphans."""
        body = self._body(actions, options)
        answer = self._call("POST", "/api/tables/{db}/{table}/maintenance", json=body)
        return Job(self._transport, answer).refresh()

    def plan(self, actions: Sequence[str | Mapping[str, Any]], **options: Any) -> dict[str, Any]:
        """What they would do, file by file; nothing is written."""
        answer: dict[str, Any] = self._call("POST", "/api/tables/{db}/{table}/plan", json=self._body(actions, options))
        return answer

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/api/tables/{db}/{table}/status")
        return answer

    def health(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/api/tables/{db}/{table}/health")
        return answer

    def recommendation(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/api/tables/{db}/{table}/recommendation")
        return answer

    def history(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self._call("GET", "/api/tables/{db}/{table}/history")
        return answer

    def _body(self, actions: Sequence[str | Mapping[str, Any]], options: Mapping[str, Any]) -> dict[str, Any]:
        named = [SHORT.get(each, each) if isinstance(each, str) else dict(each) for each in actions]
        return {"actions": named} | ({"catalog": self._catalog} if self._catalog else {}) | dict(options)

    def _call(self, method: str, template: str, *, json: object = None) -> Any:
        query = {"catalog": self._catalog} if method == "GET" else None
        return (self._transport.call(method, template, path=self._path, query=query, json=json))["data"]


class Tables:
    """`tables["db.table"]` or `tables["catalog.db.table"]`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __getitem__(self, name: str) -> Table:
        parts = name.split(".")
        if len(parts) not in (2, 3) or not all(parts):
            raise KeyError(f"{name!r} is neither db.table nor catalog.db.table")
        return Table(self._transport, parts[0] if len(parts) == 3 else None, parts[-2], parts[-1])

    def all(self, **filters: Any) -> Iterator[dict[str, Any]]:
        yield from listed(self._transport, "/api/tables", **filters)

    def refresh(self) -> dict[str, Any]:
        """Look at the catalogs again."""
        found: dict[str, Any] = (self._transport.call("POST", "/api/tables/refresh"))["data"]
        return found

    def cache_status(self) -> dict[str, Any]:
        found: dict[str, Any] = (self._transport.call("GET", "/api/tables/cache-status"))["data"]
        return found

    def policies(self) -> list[dict[str, Any]]:
        answer = self._transport.call("GET", "/api/maintenance/policies")
        found: list[dict[str, Any]] = answer["data"]["policies"]
        return found

    def set_policies(self, policies: Sequence[Mapping[str, Any]]) -> None:
        body = {"policies": [dict(policy) for policy in policies]}
        self._transport.call("PUT", "/api/maintenance/policies", json=body)

    def runs(self) -> Any:
        """What the planner's passes did."""
        return (self._transport.call("GET", "/api/maintenance/runs"))["data"]
