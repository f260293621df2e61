"""Our own supervisor of one PostgreSQL server.

The server is our child and gets SIGQUIT when we die, however we die: it drops everything at once and recovers from
its log at the next start, so no committed row is lost and the data are free again within moments. An orderly stop is
SIGINT. The kernel sends the death signal when the *thread* that started the server ends; start it from the main one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from signal import SIGINT, SIGKILL, SIGQUIT, Signals
from typing import TYPE_CHECKING, BinaryIO, Self
from urllib.parse import quote, urlencode

import asyncpg
import structlog

from penstock.kit.postgres import failure, holder, places, process
from penstock.kit.postgres.errors import ClusterHeld, PostgresFailed
from penstock.kit.postgres.initdb import SUPERUSER, initialise

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping
    from pathlib import Path

    from structlog.typing import FilteringBoundLogger

    from penstock.kit.postgres.binaries import Binaries

log: FilteringBoundLogger = structlog.get_logger(name=__name__)

_ALWAYS = {
    "autovacuum_naptime": "10s",
    "idle_in_transaction_session_timeout": "60s",
    "log_timezone": "UTC",
    "max_wal_size": "2GB",
    "shared_buffers": "256MB",
    "timezone": "UTC",
}
_PORT = 5432
_NOT_YET = (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError)


class Shutdown(Enum):
    FAST = SIGINT
    IMMEDIATE = SIGQUIT
    KILL = SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    database: str = "penstock"
    server: Mapping[str, str] = field(default_factory=dict)
    shared: Path = places.SHARED
    start_seconds: float = 300.0
    stop_seconds: float = 30.0


class Cluster:
    """`async with Cluster(folder, locate()) as cluster: await asyncpg.connect(cluster.dsn())`"""

    def __init__(self, data_dir: Path, binaries: Binaries, *, settings: ClusterSettings | None = None) -> None:
        self.settings = settings or ClusterSettings()
        self._wanted = data_dir
        self._binaries = binaries
        self._places: places.Places | None = None
        self._lock: holder.Lock | None = None
        self._server: Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def places(self) -> places.Places:
        if self._places is None:
            self._places = places.settle(self._wanted, self.settings.shared)
        return self._places

    @property
    def pid(self) -> int | None:
        return self._server.pid if self._server and self._server.returncode is None else None

    def dsn(self, database: str | None = None) -> str:
        where = urlencode({"host": str(self.places.sockets), "port": _PORT, "user": SUPERUSER}, safe="/")
        return f"postgresql:///{quote(database or self.settings.database)}?{where}"

    async def start(self) -> None:
        self._lock = await self._take_lock()
        try:
            await self._prepare()
            await self._run()
        except BaseException:
            await self.stop(Shutdown.IMMEDIATE)
            raise

    async def stop(self, how: Shutdown = Shutdown.FAST) -> None:
        if self._server is not None:
            await self._end(self._server, how)
            self._server = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def restart(self, how: Shutdown = Shutdown.FAST) -> None:
        """Down and up again without letting go of the data; the DSN stays the same."""
        if self._server is not None:
            await self._end(self._server, how)
        await self._run()

    async def wait(self) -> int:
        """Until the server ends by itself, which it should not; its exit code."""
        if self._server is None:
            raise PostgresFailed("The server was not started.")
        return await self._server.wait()

    async def _take_lock(self) -> holder.Lock:
        """At once, unless the lock's taker is dead: then its server is on its way out and is waited for."""
        deadline = asyncio.get_running_loop().time() + 10
        while (lock := holder.take(self.places)) is None:
            who = holder.supervisor(self.places)
            if who or asyncio.get_running_loop().time() > deadline:
                raise self._held(who or holder.postmaster(self.places))
            await asyncio.sleep(0.02)
        return lock

    def _held(self, who: holder.Holder | None) -> ClusterHeld:
        return ClusterHeld(
            f"The PostgreSQL data in {self.places.folder} are held by {who or 'a process that cannot be named'}.",
            hint=f"Stop it first: kill {who.pid}" if who else "See who has it: fuser -v on its file `lock`.",
        )

    async def _prepare(self) -> None:
        if by_hand := holder.postmaster(self.places):
            raise self._held(by_hand)
        self._binaries = places.within_reach(self._binaries, self.places.account, self.settings.shared)
        places.private(self.places.sockets, self.places.account)
        if not self.places.data.exists():
            await initialise(self.places, self._binaries)

    async def _run(self) -> None:
        deadline = asyncio.get_running_loop().time() + self.settings.start_seconds
        while (said := await self._attempt(deadline)) is not None:
            if failure.STILL_IN_USE not in said or asyncio.get_running_loop().time() > deadline:
                raise failure.explain(said, self.places.folder)
            await asyncio.sleep(0.05)
        log.info("postgres_started", pid=self.pid, version=self._binaries.version, folder=str(self.places.folder))

    async def _attempt(self, deadline: float) -> str | None:
        """Bring the server up; what it said if it ended instead."""
        holder.clear_remains(self.places)
        with self._open_log() as out:
            offset = out.tell()
            self._server = await self._spawn(out)
        if await self._answers(self._server, deadline):
            return None
        return self._read_log(offset)

    def _open_log(self) -> BinaryIO:
        out = self.places.log.open("ab")
        self.places.account.own(out.fileno())
        return out

    def _read_log(self, offset: int) -> str:
        with self.places.log.open("rb") as written:
            written.seek(offset)
            return written.read(1 << 20).decode(errors="replace")

    async def _spawn(self, out: BinaryIO) -> Process:
        if self._lock is None:
            raise PostgresFailed("The server was not started.")
        settings = {
            **_ALWAYS,
            **self.settings.server,
            "listen_addresses": "",
            "port": str(_PORT),
            "unix_socket_directories": f'"{self.places.sockets}"',
            "unix_socket_permissions": "0700",
        }
        command = [str(self._binaries.postgres), "-D", str(self.places.data)]
        command += [f"--{name}={value}" for name, value in settings.items()]
        return await process.spawn(
            self.places.account,
            command,
            cwd=self.places.folder,
            log=out,
            keep=self._lock.fd,
            on_our_death=SIGQUIT,
        )

    async def _answers(self, server: Process, deadline: float) -> bool:
        """Ready is when a real connection works; False when the server ended first."""
        while server.returncode is None:
            try:
                connection = await asyncpg.connect(self.dsn("postgres"), timeout=5)
            except _NOT_YET as e:
                if asyncio.get_running_loop().time() > deadline:
                    raise PostgresFailed(f"PostgreSQL did not answer in {self.settings.start_seconds:.0f} s.") from e
                await asyncio.sleep(0.01)
            else:
                await self._ensure_database(connection)
                return True
        return False

    async def _ensure_database(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        try:
            name = self.settings.database
            if not await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1", name):
                await connection.execute(f'CREATE DATABASE "{name}"')
        finally:
            await connection.close()

    async def _end(self, server: Process, how: Shutdown) -> None:
        for signal, patience in ((how.value, self.settings.stop_seconds), (SIGQUIT, 6.0), (SIGKILL, 60.0)):
            if server.returncode is None:
                await _signalled(server, signal, patience)
        log.info("postgres_stopped", pid=server.pid, how=how.name, code=server.returncode)


async def _signalled(server: Process, signal: Signals, patience: float) -> None:
    try:
        server.send_signal(signal)
        await asyncio.wait_for(server.wait(), patience)
    except (ProcessLookupError, TimeoutError):
        return
