"""PostgreSQL through asyncpg: a pool, transactions with after-commit callbacks, and one kind of
error for "it is away".

`Db.transaction()` gives a `Tx`; stores take an optional one, so that a caller's rows and the
kernel's rows commit together. What must happen only once the rows are visible (notifications) is
left with `tx.after_commit`.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import orjson
from asyncpg.connect_utils import SessionAttribute

from penstock.kit.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from penstock.kit.sqlfile import Statement

_AWAY = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server has just ended this connection
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # a primary that was demoted
)
WRITABLE = SessionAttribute.read_write
"""Of the hosts of an address only the one that takes writes: the others are standbys, or about to
become one."""
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class Tx:
    """One open transaction."""

    def __init__(self, connection: asyncpg.pool.PoolConnectionProxy[asyncpg.Record]) -> None:
        self.connection = connection
        self._after: list[Callable[[], None]] = []

    def after_commit(self, call: Callable[[], None]) -> None:
        self._after.append(call)

    async def fetch(self, statement: Statement, **values: object) -> list[asyncpg.Record]:
        return await self.connection.fetch(statement.text, *statement.bind(values))

    async def row(self, statement: Statement, **values: object) -> asyncpg.Record | None:
        return await self.connection.fetchrow(statement.text, *statement.bind(values))

    async def value(self, statement: Statement, **values: object) -> Any:
        return await self.connection.fetchval(statement.text, *statement.bind(values))

    async def plan(self, statement: Statement, **values: object) -> dict[str, Any]:
        """How the server would run it, with what it expects to read and to spend."""
        text = await self.connection.fetchval(
            f"EXPLAIN (FORMAT JSON) {statement.text}", *statement.bind(values)
        )
        plan: dict[str, Any] = orjson.loads(text)[0]["Plan"]
        return plan

    async def changed(self, statement: Statement, **values: object) -> int:
        tag = await self.connection.execute(statement.text, *statement.bind(values))
        return int(tag.rsplit(" ", 1)[-1])

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        async with self.connection.transaction():
            yield

    def committed(self) -> None:
        for call in self._after:
            call()


async def _keep(_connection: object) -> None:
    """Nothing of ours changes a session, so handing a connection back costs no round trip."""


class Db:
    """With a `pooler` (PgBouncer in transaction mode), work goes through it, and only what needs a
    session of its own goes to `dsn`: notifications and turns. A session of the pooler is somebody
    else's after each transaction, so settings are made in each, every statement runs in one, and
    nothing is prepared for later."""

    def __init__(
        self,
        dsn: str,
        *,
        size: int = 10,
        settings: Mapping[str, str] | None = None,
        command_timeout: float = 60.0,
        pooler: str | None = None,
    ) -> None:
        self.dsn = dsn
        self._pooler = pooler
        self._size = size
        self._settings = {"application_name": "penstock", **(settings or {})}
        self._command_timeout = command_timeout
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._opening = asyncio.Lock()
        self._lasting: set[asyncpg.Connection[asyncpg.Record]] = set()
        self._turns: asyncpg.Connection[asyncpg.Record] | None = None
        self._taking = asyncio.Lock()
        self._taken: dict[int, asyncpg.Connection[asyncpg.Record]] = {}

    async def __aenter__(self) -> Db:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._turns = None
        for connection in self._lasting:
            connection.terminate()
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            await asyncio.wait_for(pool.close(), 5)
        except TimeoutError:
            pool.terminate()

    def connections(self) -> dict[str, int]:
        """How many connections work and how many wait to, right now."""
        if self._pool is None:
            return {"active": 0, "idle": 0}
        idle = self._pool.get_idle_size()
        return {"active": self._pool.get_size() - idle, "idle": idle}

    async def _open(self) -> asyncpg.Pool[asyncpg.Record]:
        async with self._opening:
            if self._pool is None:
                with away():
                    self._pool = await self._create_pool()
            return self._pool

    async def _create_pool(self) -> asyncpg.Pool[asyncpg.Record]:
        if self._pooler is not None:
            only_ours: dict[str, Any] = {"dsn": self._pooler, "statement_cache_size": 0}
        else:
            only_ours = {
                "dsn": self.dsn,
                "server_settings": self._settings,
                "target_session_attrs": WRITABLE,
            }
        return await asyncpg.create_pool(
            min_size=0,
            max_size=self._size,
            command_timeout=self._command_timeout,
            timeout=10,
            reset=_keep,
            **only_ours,
        )

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.pool.PoolConnectionProxy[asyncpg.Record]]:
        pool = self._pool or await self._open()
        with away():
            try:
                async with pool.acquire(timeout=10) as connection:
                    yield connection
            except asyncpg.ReadOnlySQLTransactionError:
                await self._leave_standby(pool)
                raise

    async def _leave_standby(self, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        """The server takes no writes any more, on any of its connections; new ones look for one
        that does."""
        await pool.expire_connections()
        for connection in self._lasting:
            connection.terminate()

    @asynccontextmanager
    async def lasting_connection(self) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        """One besides the pool, for as long as the block or the server's being writable lasts."""
        with away():
            connection = await self._connect()
            try:
                yield connection
            finally:
                self._lasting.discard(connection)
                connection.terminate()

    async def _connect(self) -> asyncpg.Connection[asyncpg.Record]:
        self._lasting = {connection for connection in self._lasting if not connection.is_closed()}
        connection = await asyncpg.connect(
            self.dsn,
            timeout=10,
            command_timeout=self._command_timeout,
            server_settings=self._settings,
            target_session_attrs=WRITABLE,
        )
        self._lasting.add(connection)
        return connection

    @asynccontextmanager
    async def turn(self, key: int) -> AsyncIterator[bool]:
        """Whether nobody else has this advisory lock, in any process; it is ours until the block is
        left.

        All turns of a process are held on one connection besides the pool: who has one needs others
        of the pool for the work itself, and many who did so at once would wait for each other.
        """
        with away():
            holder = await self._take(key)
        try:
            yield holder is not None
        finally:
            if holder is not None:
                with away():
                    await self._give_back(key, holder)

    def holds(self, key: int) -> bool:
        """Whether a turn that was taken is still ours: it goes with its connection."""
        holder = self._taken.get(key)
        return holder is not None and not holder.is_closed()

    async def _take(self, key: int) -> asyncpg.Connection[asyncpg.Record] | None:
        async with self._taking:
            if self.holds(key):
                return None
            if self._turns is None or self._turns.is_closed():
                self._turns = await self._connect()
            if not await _locking(self._turns, "SELECT pg_try_advisory_lock($1)", key):
                return None
            self._taken[key] = self._turns
            return self._turns

    async def _give_back(self, key: int, holder: asyncpg.Connection[asyncpg.Record]) -> None:
        """A connection that is gone has given back all of its own; another may have the turn
        since.
        """
        async with self._taking:
            if self._taken.get(key) is holder:
                del self._taken[key]
            if not holder.is_closed():
                await _locking(holder, "SELECT pg_advisory_unlock($1)", key)

    @asynccontextmanager
    async def transaction(self, joined: Tx | None = None) -> AsyncIterator[Tx]:
        """A transaction of its own, or the caller's when one is given (then the caller commits)."""
        if joined is not None:
            yield joined
            return
        async with self.connection() as connection, connection.transaction():
            if self._pooler is not None:
                await connection.execute(_set_local(self._settings))
            tx = Tx(connection)
            yield tx
        tx.committed()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Tx]:
        """For one statement, which commits by itself where it can."""
        if self._pooler is not None:
            async with self.transaction() as tx:
                yield tx
        else:
            async with self.connection() as connection:
                yield Tx(connection)

    @asynccontextmanager
    async def statements(self) -> AsyncIterator[Tx]:
        """For several that need not see the same: each commits by itself where it can."""
        async with self._alone() as tx:
            yield tx

    async def fetch(self, statement: Statement, **values: object) -> list[asyncpg.Record]:
        async with self._alone() as tx:
            return await tx.fetch(statement, **values)

    async def row(self, statement: Statement, **values: object) -> asyncpg.Record | None:
        async with self._alone() as tx:
            return await tx.row(statement, **values)

    async def value(self, statement: Statement, **values: object) -> Any:
        async with self._alone() as tx:
            return await tx.value(statement, **values)

    async def changed(self, statement: Statement, **values: object) -> int:
        async with self._alone() as tx:
            return await tx.changed(statement, **values)


def _set_local(settings: Mapping[str, str]) -> str:
    """Names and values are our own constants, never a caller's."""
    return "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())


async def _locking(
    connection: asyncpg.Connection[asyncpg.Record], statement: str, key: int
) -> bool:
    """A connection that does not answer is given up with all that it holds; the next turn begins on
    a new one."""
    try:
        done: bool = await connection.fetchval(statement, key)
    except Exception:
        connection.terminate()
        raise
    return done


class away:  # noqa: N801 - reads as a word at its call sites
    """Turns every way a connection can be lost into DatabaseUnavailable."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _AWAY):
            raise DatabaseUnavailable(
                "The database cannot be reached.",
                hint="It is retried; `penstock doctor` says more.",
            ) from error
        if isinstance(error, _AGAIN):
            raise DatabaseUnavailable("The database asked for another try.") from error
