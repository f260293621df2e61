"""A `Db` whose every statement can be held, failed or cut off from outside, while real code runs
over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import asyncpg

from penstock.jobs.store import ENGINE_SETTINGS
from penstock.kit.db import Db
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    RealConnection = asyncpg.Connection[asyncpg.Record]
else:
    RealConnection = asyncpg.Connection

_NAMES = {statement.text: statement.name for statement in load("penstock.jobs.sql")}


def name_of(text: str) -> str:
    """`exchange`, `COMMIT`, …: what a statement is called; what only concerns savepoints is a
    SAVEPOINT."""
    if "SAVEPOINT" in text or text.startswith("ROLLBACK TO"):
        return "SAVEPOINT"
    return _NAMES.get(text) or text.split(maxsplit=1)[0].rstrip(";")


class Tap(Protocol):
    """Told of every statement; what it raises, the caller sees as if the connection had raised
    it.
    """

    async def before(self, connection: TappedConnection, name: str) -> None: ...

    async def after(self, connection: TappedConnection, name: str) -> None: ...


class TappedConnection(RealConnection):
    tap: Tap
    db: TappedDb

    async def fetch(self, query: str, *args: Any, **kwargs: Any) -> Any:
        return await self._tapped(query, super().fetch, *args, **kwargs)

    async def fetchrow(self, query: str, *args: Any, **kwargs: Any) -> Any:
        return await self._tapped(query, super().fetchrow, *args, **kwargs)

    async def fetchval(self, query: str, *args: Any, **kwargs: Any) -> Any:
        return await self._tapped(query, super().fetchval, *args, **kwargs)

    async def execute(self, query: str, *args: Any, **kwargs: Any) -> Any:
        return await self._tapped(query, super().execute, *args, **kwargs)

    async def _tapped(
        self, query: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        name = name_of(query)
        await self.tap.before(self, name)
        try:
            answer = await call(query, *args, **kwargs)
        except asyncpg.DeadlockDetectedError:
            self.db.deadlocks += 1
            raise
        await self.tap.after(self, name)
        return answer


class TappedDb(Db):
    """`size=1` makes it one actor with one connection. Deadlocks are counted here, whoever catches
    the error."""

    def __init__(self, dsn: str, tap: Tap, *, size: int = 1) -> None:
        super().__init__(dsn, size=size, settings=ENGINE_SETTINGS | {"deadlock_timeout": "50ms"})
        self._tap = tap
        self.deadlocks = 0

    async def _open(self) -> asyncpg.Pool[asyncpg.Record]:
        if self._pool is None:
            tapped = type("Connection", (TappedConnection,), {"tap": self._tap, "db": self})
            self._pool = await asyncpg.create_pool(
                self.dsn,
                min_size=0,
                max_size=self._size,
                connection_class=tapped,
                server_settings=self._settings,
                reset=_keep,
            )
        return self._pool


async def _keep(_connection: object) -> None:
    """As in the real pool: handing a connection back costs no statement."""
