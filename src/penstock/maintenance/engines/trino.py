"""Remote engine on Trino: `begin` submits the query, and its first poll starts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, assert_never

from penstock.kit.outbound import FOR_OPERATOR
from penstock.maintenance.engines import contract
from penstock.maintenance.engines.contract import RemoteQuery
from penstock.maintenance.engines.trino_sql import statement
from penstock.sources.contract import Failed, Finished, Running
from penstock.sources.trino.client import Client
from penstock.sources.trino.config import Config
from penstock.sources.trino.headers import Session
from penstock.sources.trino.statements import Statements
from penstock.sources.trino.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.payloads import TableName

CLIENT_TIMEOUT = 300.0
QUERY_ID = "trino_query_id"
"""The snapshot summary property with the id of the Trino query that committed it."""


class TrinoEngine:
    """`settings` is the engine's configuration: url, user, catalog, and optionally a password or
    token."""

    name = "trino"

    def __init__(self, settings: Mapping[str, str], trace: str) -> None:
        self._catalog = str(settings["catalog"])
        self.client_timeout = float(settings.get("client_timeout") or CLIENT_TIMEOUT)
        config = Config(
            url=settings["url"],
            user=settings.get("user", "penstock"),
            role_catalog=None,
            source="penstock",
            client_tags=("penstock-maintenance",),
            allow_http=str(settings.get("allow_http", "false")).lower() == "true",
            password=settings.get("password"),
            token=settings.get("token"),
        )
        self._client = Client(config, Wire(config, FOR_OPERATOR))
        self._queries = Statements(self._client, Session(role=None, trace=trace))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    def statement(
        self,
        action: Action,
        name: TableName,
        table: Table,  # noqa: ARG002 - the statement names both
        context: ActionContext,
        *,
        dry_run: bool,  # noqa: ARG002 - others need it
    ) -> str:
        return statement(action, name, self._catalog, context)

    def previews(self, action: Action) -> bool:  # noqa: ARG002 - others need it
        return False

    def owns_snapshot(self, query: RemoteQuery, summary: Mapping[str, str]) -> bool:
        return summary.get(QUERY_ID) == query.query_id

    async def begin(self, sql: str) -> RemoteQuery:
        submitted = await self._queries.submit(sql)
        return RemoteQuery(query_id=submitted.query_id, handle={"next_uri": submitted.next_uri})

    async def look(self, query: RemoteQuery, sql: str, *, again: bool) -> contract.Look:  # noqa: ARG002 - others need it
        step = await self._queries.poll(query.handle["next_uri"])
        match step:
            case Running():
                moved = RemoteQuery(query_id=query.query_id, handle={"next_uri": step.next_uri})
                return contract.Running(held=moved, at_once=step.at_once)
            case Finished():
                return contract.Finished()
            case Failed():
                return contract.Failed(error=step.error)
            case _:
                assert_never(step)

    async def cancel(self, query: RemoteQuery) -> None:
        await self._queries.cancel(query.query_id, query.handle["next_uri"])

    async def release(self, query: RemoteQuery) -> None:
        """Trino drops a query that was read to its end."""
