"""Iceberg tables and what is done to keep them well: `ps.tables["lake.sales.orders"].maintain(["compact"])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._async.jobs import AsyncJob
from penstock.client._async.listing import listed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from penstock.client._async.transport import AsyncTransport

SHORT = {
    "compact": "rewrite_data_files",
    "expire": "expire_snapshots",
    "manifests": "rewrite_manifests",
    "deletes": "rewrite_position_delete_files",
    "orphans": "remove_orphan_files",
}


class AsyncTable:
    def __init__(self, transport: AsyncTransport, catalog: str | None, db: str, table: str) -> None:
        self._transport = transport
        self._catalog = catalog
        self._path = {"db": db, "table": table}

    def __repr__(self) -> str:
        return f"<Table {'.'.join(filter(None, (self._catalog, *self._path.values())))}>"

    async def maintain(self, actions: Sequence[str | Mapping[str, Any]], **options: Any) -> AsyncJob:
        """Lock it and run the actions. Short names: compact, expire, manifests, deletes, orphans."""
        body = self._body(actions, options)
        answer = await self._call("POST", "/api/tables/{db}/{table}/maintenance", json=body)
        return await AsyncJob(self._transport, answer).refresh()

    async def plan(self, actions: Sequence[str | Mapping[str, Any]], **options: Any) -> dict[str, Any]:
        """What they would do, file by file; nothing is written."""
        answer: dict[str, Any] = await self._call(
            "POST", "/api/tables/{db}/{table}/plan", json=self._body(actions, options)
        )
        return answer

    async def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self._call("GET", "/api/tables/{db}/{table}/status")
        return answer

    async def health(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self._call("GET", "/api/tables/{db}/{table}/health")
        return answer

    async def recommendation(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self._call("GET", "/api/tables/{db}/{table}/recommendation")
        return answer

    async def history(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = await self._call("GET", "/api/tables/{db}/{table}/history")
        return answer

    def _body(self, actions: Sequence[str | Mapping[str, Any]], options: Mapping[str, Any]) -> dict[str, Any]:
        named = [SHORT.get(each, each) if isinstance(each, str) else dict(each) for each in actions]
        return {"actions": named} | ({"catalog": self._catalog} if self._catalog else {}) | dict(options)

    async def _call(self, method: str, template: str, *, json: object = None) -> Any:
        query = {"catalog": self._catalog} if method == "GET" else None
        return (await self._transport.call(method, template, path=self._path, query=query, json=json))["data"]


class AsyncTables:
    """`tables["db.table"]` or `tables["catalog.db.table"]`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def __getitem__(self, name: str) -> AsyncTable:
        parts = name.split(".")
        if len(parts) not in (2, 3) or not all(parts):
            raise KeyError(f"{name!r} is neither db.table nor catalog.db.table")
        return AsyncTable(self._transport, parts[0] if len(parts) == 3 else None, parts[-2], parts[-1])

    async def all(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        async for item in listed(self._transport, "/api/tables", **filters):
            yield item

    async def refresh(self) -> dict[str, Any]:
        """Look at the catalogs again."""
        found: dict[str, Any] = (await self._transport.call("POST", "/api/tables/refresh"))["data"]
        return found

    async def cache_status(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self._transport.call("GET", "/api/tables/cache-status"))["data"]
        return found

    async def policies(self) -> list[dict[str, Any]]:
        answer = await self._transport.call("GET", "/api/maintenance/policies")
        found: list[dict[str, Any]] = answer["data"]["policies"]
        return found

    async def set_policies(self, policies: Sequence[Mapping[str, Any]]) -> None:
        body = {"policies": [dict(policy) for policy in policies]}
        await self._transport.call("PUT", "/api/maintenance/policies", json=body)

    async def runs(self) -> Any:
        """What the planner's passes did."""
        return (await self._transport.call("GET", "/api/maintenance/runs"))["data"]
