"""Iceberg tables and what is done to keep them well:
`ps.tables["lake.sales.orders"].maintain(["compact"])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._async.jobs import AsyncJob
from penstock.client._async.listing import listed
from penstock.client.bodies import given

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._async.transport import AsyncTransport
    from penstock.client.words import Tier

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

    async def maintain(
        self,
        actions: Sequence[str | Mapping[str, Any]],
        *,
        engine: str | None = None,
        dry_run: bool | None = None,
        reason: str | None = None,
    ) -> AsyncJob:
        """Lock it, run the actions. Short names: compact, expire, manifests, deletes, orphans."""
        body = self._body(actions) | given(engine=engine, dry_run=dry_run, reason=reason)
        answer = await self._call("POST", "/api/tables/{db}/{table}/maintenance", json=body)
        return await AsyncJob(self._transport, answer).refresh()

    async def plan(self, actions: Sequence[str | Mapping[str, Any]]) -> shapes.Outcomes:
        """What they would do, file by file; nothing is written."""
        answer: shapes.Outcomes = await self._call(
            "POST", "/api/tables/{db}/{table}/plan", json=self._body(actions)
        )
        return answer

    async def status(self, tier: Tier | None = None) -> shapes.Facts:
        """What is known of it; `tier` says how deep to look."""
        answer: shapes.Facts = await self._call("GET", "/api/tables/{db}/{table}/status", tier=tier)
        return answer

    async def health(self, tier: Tier | None = None) -> shapes.TableHealth:
        answer: shapes.TableHealth = await self._call(
            "GET", "/api/tables/{db}/{table}/health", tier=tier
        )
        return answer

    async def recommendation(self) -> shapes.Recommendation:
        answer: shapes.Recommendation = await self._call(
            "GET", "/api/tables/{db}/{table}/recommendation"
        )
        return answer

    async def history(self) -> list[shapes.HistoryEntry]:
        """What was done to it, newest first."""
        template = "/api/tables/{db}/{table}/history"
        return [
            item
            async for item in listed(self._transport, template, self._path, catalog=self._catalog)
        ]

    def _body(self, actions: Sequence[str | Mapping[str, Any]]) -> dict[str, Any]:
        named = [
            SHORT.get(action, action) if isinstance(action, str) else dict(action)
            for action in actions
        ]
        return given(actions=named, catalog=self._catalog)

    async def _call(
        self, method: str, template: str, *, json: object = None, **query: object
    ) -> Any:
        asked = {"catalog": self._catalog} | query if method == "GET" else None
        return (
            await self._transport.call(method, template, path=self._path, query=asked, json=json)
        )["data"]


class AsyncTables:
    """`tables["db.table"]` or `tables["catalog.db.table"]`; a namespace in a namespace needs its
    catalog before it.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def __getitem__(self, name: str) -> AsyncTable:
        parts = name.split(".")
        if len(parts) < 2 or not all(parts):
            raise KeyError(f"{name!r} is neither db.table nor catalog.db.table")
        catalog = parts.pop(0) if len(parts) > 2 else None
        return AsyncTable(self._transport, catalog, ".".join(parts[:-1]), parts[-1])

    async def all(
        self, **filters: Unpack[shapes.TablesFilters]
    ) -> AsyncIterator[shapes.TableListed]:
        async for item in listed(self._transport, "/api/tables", **filters):
            yield item

    async def refresh(self, catalog: str | None = None) -> shapes.Refreshed:
        """Look at the catalogs again, or at one."""
        answer = await self._transport.call(
            "POST", "/api/tables/refresh", query={"catalog": catalog}
        )
        result: shapes.Refreshed = answer["data"]
        return result

    async def cache_status(self) -> shapes.CacheStatus:
        status: shapes.CacheStatus = (
            await self._transport.call("GET", "/api/tables/cache-status")
        )["data"]
        return status

    async def policies(self) -> list[dict[str, Any]]:
        answer = await self._transport.call("GET", "/api/maintenance/policies")
        view: shapes.PoliciesView = answer["data"]
        return view["policies"]

    async def set_policies(self, policies: Sequence[shapes.PolicyBody]) -> list[dict[str, Any]]:
        """These, and no others."""
        body: shapes.PoliciesBody = {"policies": [*policies]}
        answer = await self._transport.call("PUT", "/api/maintenance/policies", json=body)
        view: shapes.PoliciesView = answer["data"]
        return view["policies"]

    async def runs(self) -> AsyncIterator[shapes.MaintenancePass]:
        """What the planner's passes did, newest first."""
        async for item in listed(self._transport, "/api/maintenance/runs"):
            yield item
