"""Iceberg tables and what is done to keep them well:
`ps.tables["lake.sales.orders"].maintain(["compact"])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.jobs import Job
from penstock.client._sync.listing import listed
from penstock.client.bodies import given

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._sync.transport import Transport
    from penstock.client.words import Tier

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

    def maintain(
        self,
        actions: Sequence[str | Mapping[str, Any]],
        *,
        engine: str | None = None,
        dry_run: bool | None = None,
        reason: str | None = None,
    ) -> Job:
        """Lock it, run the actions. Short names: compact, expire, manifests, deletes, orphans."""
        body = self._body(actions) | given(engine=engine, dry_run=dry_run, reason=reason)
        answer = self._call("POST", "/api/tables/{db}/{table}/maintenance", json=body)
        return Job(self._transport, answer).refresh()

    def plan(self, actions: Sequence[str | Mapping[str, Any]]) -> shapes.Outcomes:
        """What they would do, file by file; nothing is written."""
        answer: shapes.Outcomes = self._call(
            "POST", "/api/tables/{db}/{table}/plan", json=self._body(actions)
        )
        return answer

    def status(self, tier: Tier | None = None) -> shapes.Facts:
        """What is known of it; `tier` says how deep to look."""
        answer: shapes.Facts = self._call("GET", "/api/tables/{db}/{table}/status", tier=tier)
        return answer

    def health(self, tier: Tier | None = None) -> shapes.TableHealth:
        answer: shapes.TableHealth = self._call("GET", "/api/tables/{db}/{table}/health", tier=tier)
        return answer

    def recommendation(self) -> shapes.Recommendation:
        answer: shapes.Recommendation = self._call("GET", "/api/tables/{db}/{table}/recommendation")
        return answer

    def history(self) -> list[shapes.HistoryEntry]:
        """What was done to it, newest first."""
        template = "/api/tables/{db}/{table}/history"
        return list(listed(self._transport, template, self._path, catalog=self._catalog))

    def _body(self, actions: Sequence[str | Mapping[str, Any]]) -> dict[str, Any]:
        named = [
            SHORT.get(action, action) if isinstance(action, str) else dict(action)
            for action in actions
        ]
        return given(actions=named, catalog=self._catalog)

    def _call(self, method: str, template: str, *, json: object = None, **query: object) -> Any:
        asked = {"catalog": self._catalog} | query if method == "GET" else None
        return (self._transport.call(method, template, path=self._path, query=asked, json=json))[
            "data"
        ]


class Tables:
    """`tables["db.table"]` or `tables["catalog.db.table"]`; a namespace in a namespace needs its
    catalog before it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __getitem__(self, name: str) -> Table:
        parts = name.split(".")
        if len(parts) < 2 or not all(parts):
            raise KeyError(f"{name!r} is neither db.table nor catalog.db.table")
        catalog = parts.pop(0) if len(parts) > 2 else None
        return Table(self._transport, catalog, ".".join(parts[:-1]), parts[-1])

    def all(self, **filters: Unpack[shapes.TablesFilters]) -> Iterator[shapes.TableListed]:
        yield from listed(self._transport, "/api/tables", **filters)

    def refresh(self, catalog: str | None = None) -> shapes.Refreshed:
        """Look at the catalogs again, or at one."""
        answer = self._transport.call("POST", "/api/tables/refresh", query={"catalog": catalog})
        result: shapes.Refreshed = answer["data"]
        return result

    def cache_status(self) -> shapes.CacheStatus:
        status: shapes.CacheStatus = (self._transport.call("GET", "/api/tables/cache-status"))[
            "data"
        ]
        return status

    def policies(self) -> list[dict[str, Any]]:
        answer = self._transport.call("GET", "/api/maintenance/policies")
        view: shapes.PoliciesView = answer["data"]
        return view["policies"]

    def set_policies(self, policies: Sequence[shapes.PolicyBody]) -> list[dict[str, Any]]:
        """These, and no others."""
        body: shapes.PoliciesBody = {"policies": [*policies]}
        answer = self._transport.call("PUT", "/api/maintenance/policies", json=body)
        view: shapes.PoliciesView = answer["data"]
        return view["policies"]

    def runs(self) -> Iterator[shapes.MaintenancePass]:
        """What the planner's passes did, newest first."""
        yield from listed(self._transport, "/api/maintenance/runs")
