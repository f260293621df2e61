"""Iceberg tables and what is done to keep them well:
`ps.tables["lake.sales.orders"].maintain(["compact"])`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.jobs import AsyncJob
from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource
from penstock.client.bodies import given

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._async.transport import AsyncTransport
    from penstock.client.json_value import JsonObject
    from penstock.client.words import Tier

SHORT = {
    "compact": "rewrite_data_files",
    "expire": "expire_snapshots",
    "manifests": "rewrite_manifests",
    "deletes": "rewrite_position_delete_files",
    "orphans": "remove_orphan_files",
}


class AsyncTable(AsyncResource):
    def __init__(self, transport: AsyncTransport, catalog: str | None, db: str, table: str) -> None:
        super().__init__(transport, db=db, table=table)
        self._catalog = catalog
        self._name = ".".join(filter(None, (catalog, db, table)))

    def __repr__(self) -> str:
        return f"<Table {self._name}>"

    async def maintain(
        self,
        actions: Sequence[str | Mapping[str, object]],
        *,
        engine: str | None = None,
        dry_run: bool | None = None,
        reason: str | None = None,
    ) -> AsyncJob:
        """Lock it, run the actions. Short names: compact, expire, manifests, deletes, orphans."""
        body = self._body(actions) | given(engine=engine, dry_run=dry_run, reason=reason)
        answer = await self._call("POST", "/api/tables/{db}/{table}/maintenance", json=body)
        return await AsyncJob(self._transport, answer).refresh()

    async def plan(self, actions: Sequence[str | Mapping[str, object]]) -> shapes.Outcomes:
        """What they would do, file by file; nothing is written."""
        answer: shapes.Outcomes = await self._call(
            "POST", "/api/tables/{db}/{table}/plan", json=self._body(actions)
        )
        return answer

    async def status(self, tier: Tier | None = None) -> shapes.Facts:
        """What is known of it; `tier` says how deep to look."""
        answer: shapes.Facts = await self._call(
            "GET", "/api/tables/{db}/{table}/status", query=self._asked(tier)
        )
        return answer

    async def health(self, tier: Tier | None = None) -> shapes.TableHealth:
        answer: shapes.TableHealth = await self._call(
            "GET", "/api/tables/{db}/{table}/health", query=self._asked(tier)
        )
        return answer

    async def recommendation(self) -> shapes.Recommendation:
        answer: shapes.Recommendation = await self._call(
            "GET", "/api/tables/{db}/{table}/recommendation", query=self._asked()
        )
        return answer

    async def history(self) -> list[shapes.HistoryEntry]:
        """What was done to it, newest first."""
        template = "/api/tables/{db}/{table}/history"
        return [
            item
            async for item in listed(self._transport, template, self._path, catalog=self._catalog)
        ]

    def _body(self, actions: Sequence[str | Mapping[str, object]]) -> dict[str, object]:
        named = [
            SHORT.get(action, action) if isinstance(action, str) else dict(action)
            for action in actions
        ]
        return given(actions=named, catalog=self._catalog)

    def _asked(self, tier: Tier | None = None) -> dict[str, object]:
        return {"catalog": self._catalog, "tier": tier}


class AsyncTables(AsyncResource):
    """`tables["db.table"]` or `tables["catalog.db.table"]`; a namespace in a namespace needs its
    catalog before it.
    """

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
        result: shapes.Refreshed = await self._call(
            "POST", "/api/tables/refresh", query={"catalog": catalog}
        )
        return result

    async def cache_status(self) -> shapes.CacheStatus:
        status: shapes.CacheStatus = await self._call("GET", "/api/tables/cache-status")
        return status

    async def policies(self) -> list[JsonObject]:
        view: shapes.PoliciesView = await self._call("GET", "/api/maintenance/policies")
        return view["policies"]

    async def set_policies(self, policies: Sequence[shapes.PolicyBody]) -> list[JsonObject]:
        """These, and no others."""
        body: shapes.PoliciesBody = {"policies": [*policies]}
        view: shapes.PoliciesView = await self._call("PUT", "/api/maintenance/policies", json=body)
        return view["policies"]

    async def runs(self) -> AsyncIterator[shapes.MaintenancePass]:
        """What the planner's passes did, newest first."""
        async for item in listed(self._transport, "/api/maintenance/runs"):
            yield item
