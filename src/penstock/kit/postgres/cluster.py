"""Our own supervisor of one PostgreSQL server.

The server is our child and gets SIGQUIT when we die, however we die: it drops everything at once
and recovers from its log at the next start, so no committed row is lost and the data are free again
within moments. An orderly stop is SIGINT. The kernel sends the death signal when the *thread* that
started the server ends; start it from the main one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, urlencode

from penstock.kit import logging
from penstock.kit.postgres import failure, holder, initdb, password, paths, programs, server
from penstock.kit.postgres.errors import ClusterHeld, PostgresFailed
from penstock.kit.postgres.settings import SUPERUSER, ClusterSettings, Shutdown

if TYPE_CHECKING:
    from pathlib import Path

    import asyncpg

    from penstock.kit.postgres.binaries import Binaries
    from penstock.kit.postgres.holder import Holder, Lock
    from penstock.kit.postgres.paths import Places
    from penstock.kit.postgres.server import Server

log = logging.get(__name__)

_DYING_SECONDS = 60.0
"""How long a process that was killed may take to go, on a machine that has other things to do."""
_BY_HAND_SECONDS = 5.0
_ORPHAN_SECONDS = 1.0


class Cluster:
    """`async with Cluster(folder, locate()) as cluster: await asyncpg.connect(cluster.dsn())`"""

    def __init__(
        self, data_dir: Path, binaries: Binaries, *, settings: ClusterSettings | None = None
    ) -> None:
        self.settings = settings or ClusterSettings()
        self._data_dir = data_dir
        self._binaries = binaries
        self._places: Places | None = None
        self._lock: Lock | None = None
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def places(self) -> Places:
        """Where everything of this cluster lies, made on first use."""
        if self._places is None:
            self._places = paths.settle(self._data_dir, self.settings.shared)
        return self._places

    @property
    def pid(self) -> int | None:
        return self._server.pid if self._server and self._server.code is None else None

    def dsn(self, database: str | None = None) -> str:
        """Over the private socket, for asyncpg and for everything built on libpq.

        It names the file of the password, which stays there.
        """
        where = {
            "host": str(self.places.sockets),
            "port": self.settings.port,
            "user": SUPERUSER,
            "passfile": str(self.places.password),
        }
        return f"postgresql:///{self._named(database)}?{urlencode(where, safe='/')}"

    def tcp_dsn(self, database: str | None = None) -> str:
        """Over the port, with the password in it: for programs that read no such file."""
        if (tcp := self.settings.tcp) is None:
            raise PostgresFailed(
                "This server listens on no port.", hint="Give ClusterSettings a Tcp."
            )
        secret = quote(password.read_password(self.places), safe="")
        return f"postgresql://{SUPERUSER}:{secret}@127.0.0.1:{tcp.port}/{self._named(database)}"

    async def start(self) -> None:
        with failure.explained(self.places.folder):
            self._lock = await self._take_lock()
            try:
                await self._prepare(self._lock)
                await self._run(self._lock)
            except BaseException:
                await self.stop(Shutdown.IMMEDIATE)
                raise

    async def stop(self, how: Shutdown = Shutdown.FAST) -> None:
        await self._end(how)
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def restart(self, how: Shutdown = Shutdown.FAST) -> None:
        """Down and up again without letting go of the data; the DSN stays the same."""
        if self._lock is None:
            raise PostgresFailed("The server was not started.")
        await self._end(how)
        with failure.explained(self.places.folder):
            await self._run(self._lock)

    async def wait(self) -> int:
        """Until the server ends by itself, which it should not; its exit code."""
        if self._server is None:
            raise PostgresFailed("The server was not started.")
        return await self._server.exited()

    def _named(self, database: str | None) -> str:
        return quote(database or self.settings.database, safe="")

    async def _take_lock(self) -> Lock:
        """At once, unless whoever took it is dead: then the server is on its way out and is waited
        for."""
        started = _now()
        while (lock := holder.take(self.places)) is None:
            if alive := holder.supervisor(self.places):
                raise self._held(alive)
            if _now() - started > _DYING_SECONDS:
                raise self._held(holder.postmaster(self.places) or holder.noted(self.places))
            await self._outlast_orphans(started)
        return lock

    async def _outlast_orphans(self, started: float) -> None:
        """A busy backend may not notice for hours that its postmaster is dead; the next start does
        not wait for it."""
        if _now() - started > _ORPHAN_SECONDS and holder.postmaster(self.places) is None:
            holder.end_orphans(self.places)
        await asyncio.sleep(0.02)

    def _held(self, who: Holder | None) -> ClusterHeld:
        return ClusterHeld(
            f"The PostgreSQL data in {self.places.folder} are held by"
            f" {who or 'a process that cannot be named'}.",
            hint=f"Use that one, or stop it: kill {who.pid}"
            if who
            else f"See who: fuser -v {self.places.lock}",
        )

    async def _prepare(self, lock: Lock) -> None:
        started = _now()
        while by_hand := holder.postmaster(self.places):
            if _now() - started > _BY_HAND_SECONDS:
                raise self._held(by_hand)
            await asyncio.sleep(
                0.02
            )  # it let go of the lock; it may be one of ours that is still dying
        account, shared = self.places.account, self.settings.shared
        self._binaries = await asyncio.to_thread(
            programs.within_reach, self._binaries, account, shared
        )
        paths.claim(self.places.sockets, account)
        if not self.places.data.exists():
            await initdb.initialise(self.places, self._binaries, lock, self.settings.template)
        self._check_version()
        await password.require_password(self.places, self._binaries, lock)

    def _check_version(self) -> None:
        written, version = paths.written_by(self.places.folder), self._binaries.version
        if written != self._binaries.major:
            raise PostgresFailed(
                f"The data in {self.places.data} are of PostgreSQL {written}, the programs of"
                f" {version}.",
                hint=f"Set PENSTOCK_PG_BIN to the bin folder of a PostgreSQL {written}.",
            )

    async def _run(self, lock: Lock) -> None:
        started = _now()
        while (
            connection := await self._attempt(lock, started + self.settings.start_seconds)
        ) is None:
            output = self._server.last_words() if self._server else ""
            if not failure.is_still_in_use(output) or _now() - started > _DYING_SECONDS:
                raise failure.explain(output, self.places.folder)
            await self._outlast_orphans(started)
        await self._furnish(connection)
        log.info(
            "postgres_started",
            pid=self.pid,
            version=self._binaries.version,
            folder=str(self.places.folder),
        )

    async def _attempt(
        self, lock: Lock, deadline: float
    ) -> asyncpg.Connection[asyncpg.Record] | None:
        holder.clear_remains(self.places)
        command = [str(self._binaries.postgres), "-D", str(self.places.data)]
        command += [
            *self.settings.options(self.places.sockets),
            "-c",
            f"hba_file={self.places.rules}",
        ]
        self._server = await server.launch(command, self.places, lock)
        return await self._server.answer(self.dsn("postgres"), deadline)

    async def _furnish(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        try:
            await _ensure_database(connection, self.settings.database)
        finally:
            await connection.close()

    async def _end(self, how: Shutdown) -> None:
        if (ending := self._server) is None:
            return
        await ending.end(how, self.settings.stop_seconds)
        self._server = None
        log.info("postgres_stopped", pid=ending.pid, how=how.name, code=ending.code)


async def _ensure_database(connection: asyncpg.Connection[asyncpg.Record], name: str) -> None:
    if not await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1", name):
        quoted = name.replace('"', '""')
        await connection.execute(f'CREATE DATABASE "{quoted}"')


def _now() -> float:
    return asyncio.get_running_loop().time()
