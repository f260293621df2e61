"""Maintenance on a Trino: the statement is followed page by page, never blocked on.

The query's id is shown with the job. Whoever stops the attempt cancels the query first; of a worker that dies, Trino
abandons the query when nobody asks after it. What was done is measured on the table itself, before and after.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from penstock.kit.errors import PenstockError
from penstock.maintenance.action import Ended, Outcome
from penstock.maintenance.errors import Refused
from penstock.maintenance.trino_sql import statement
from penstock.sources.trino.client import Client
from penstock.sources.trino.config import Config
from penstock.sources.trino.headers import Session
from penstock.sources.trino.wire import Wire

if TYPE_CHECKING:
    from penstock.maintenance.action import Action
    from penstock.maintenance.lake import Lake
    from penstock.maintenance.order import Order
    from penstock.maintenance.run import Run
    from penstock.worker.context import JobContext


class TrinoMaintenance:
    """`told` is the engine's configuration: url, user, catalog, and a password or token where there is one."""

    def __init__(self, told: dict[str, Any], ctx: JobContext) -> None:
        self._catalog = str(told["catalog"])
        secrets = {name: told[name] for name in ("password", "token") if name in told}
        self._config = Config(
            url=told["url"],
            user=told.get("user", "penstock"),
            role_catalog=None,
            source="penstock",
            client_tags=("penstock-maintenance",),
            allow_http=str(told.get("allow_http", "false")).lower() == "true",
            **secrets,
        )
        self._ctx = ctx

    async def act(self, order: Order, lake: Lake, run: Run, action: Action) -> Outcome:
        started, before = time.monotonic(), await self._ctx.in_thread(_measured, lake)
        try:
            sql = statement(action, order.name, self._catalog, run)
            if order.dry_run:
                return Outcome(action=action.name, status=Ended.PLANNED, engine="trino", message=sql)
            await self._execute(sql)
        except Refused as e:
            return Outcome(action=action.name, status=Ended.REFUSED, engine="trino", message=e.message)
        except PenstockError as e:
            return Outcome(action=action.name, status=Ended.FAILED, engine="trino", message=e.message)
        after = await self._ctx.in_thread(_measured, lake)
        return Outcome(
            action=action.name,
            status=Ended.NOTHING_TO_DO if after == before else Ended.COMPLETED,
            engine="trino",
            rewritten_files=max(0, before.get("files", 0) - after.get("files", 0)),
            expired_snapshots=max(0, before["snapshots"] - after["snapshots"]),
            before=before,
            after=after,
            message=sql,
            seconds=round(time.monotonic() - started, 3),
        )

    async def _execute(self, sql: str) -> None:
        client = Client(self._config, Wire(self._config))
        try:
            async with aclosing(client.replies(sql, Session(role=None, trace=str(self._ctx.fence.job_id)))) as replies:
                async for reply in replies:
                    self._ctx.progress(query_id=reply.query_id)
        finally:
            await client.close()


def _measured(lake: Lake) -> dict[str, int]:
    from penstock.maintenance.embedded import measure

    return measure(lake.load())
