"""Trino as an engine of maintenance: a query is registered first, and its first poll starts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, assert_never

from penstock.kit.outbound import FOR_OPERATOR
from penstock.maintenance.engines import contract
from penstock.maintenance.engines.contract import Held
from penstock.maintenance.engines.trino_sql import statement
from penstock.sources.trino.client import Client
from penstock.sources.trino.config import Config
from penstock.sources.trino.headers import Session
from penstock.sources.trino.unload import Failed, Finished, Running, Unload
from penstock.sources.trino.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.payloads import TableName

CLIENT_TIMEOUT = 300.0
QUERY_ID = "trino_query_id"
"""By this name a snapshot says which of Trino's queries made it."""


class TrinoEngine:
    """`told` is the engine's configuration: url, user, catalog, and a password or token where there
    is one."""

    name = "trino"

    def __init__(self, told: Mapping[str, Any], trace: str) -> None:
        self._catalog = str(told["catalog"])
        self.patience = float(told.get("client_timeout") or CLIENT_TIMEOUT)
        secrets = {name: told[name] for name in ("password", "token") if name in told}
        config = Config(
            url=told["url"],
            user=told.get("user", "penstock"),
            role_catalog=None,
            source="penstock",
            client_tags=("penstock-maintenance",),
            allow_http=str(told.get("allow_http", "false")).lower() == "true",
            **secrets,
        )
        self._client = Client(config, Wire(config, FOR_OPERATOR))
        self._queries = Unload(self._client, Session(role=None, trace=trace))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    def statement(
        self,
        action: Action,
        name: TableName,
        table: Table,  # noqa: ARG002 - the statement names both
        run: Run,
        *,
        dry_run: bool,  # noqa: ARG002
    ) -> str:
        return statement(action, name, self._catalog, run)

    def previews(self, action: Action) -> bool:  # noqa: ARG002
        return False

    def made(self, held: Held, summary: Mapping[str, str]) -> bool:
        return summary.get(QUERY_ID) == held.query_id

    async def begin(self, sql: str) -> Held:
        submitted = await self._queries.submit(sql)
        return Held(query_id=submitted.query_id, handle={"next_uri": submitted.next_uri})

    async def look(self, held: Held, sql: str, *, again: bool) -> contract.Look:  # noqa: ARG002
        step = await self._queries.poll(held.handle["next_uri"])
        match step:
            case Running():
                moved = Held(query_id=held.query_id, handle={"next_uri": step.next_uri})
                return contract.Running(held=moved, at_once=step.at_once)
            case Finished():
                return contract.Finished()
            case Failed():
                return contract.Failed(error=step.error)
            case _:
                assert_never(step)

    async def cancel(self, held: Held) -> None:
        await self._queries.cancel(held.query_id, held.handle["next_uri"])

    async def release(self, held: Held) -> None:
        """Trino forgets a query that was read to its end."""
