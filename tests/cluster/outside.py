"""What a cluster leaves to others: a PostgreSQL and an S3, at the node's address."""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg

from tests.cluster.machine import NODE_IP
from tests.cluster.program import wait_until
from tests.servers.postgres_port import over_tcp
from tests.servers.weed import weed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.weed import Weed

_READY_SECONDS = 120.0
BUCKET = "penstock"
_SETTINGS = ("--set", "fsync=off", "--set", "max_connections=200")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    database: str
    """The DSN of the superuser, over TCP."""
    socket: str
    """The same, over the socket."""
    storage: Weed
    restart_database: Callable[[], None]

    def dsn(self, database: str, user: str | None = None, password: str = "") -> str:
        parts = urlsplit(self.database)
        account = f"{user}:{password}" if user else parts.netloc.rpartition("@")[0]
        return f"postgresql://{account}@{NODE_IP}:{parts.port}/{database}"

    def execute(self, *statements: str, database: str = "penstock") -> None:
        asyncio.run(self._execute(database, statements))

    async def _execute(self, database: str, statements: tuple[str, ...]) -> None:
        connection = await asyncpg.connect(self.socket, database=database)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()


@contextmanager
def outside(work: Path) -> Iterator[Outside]:
    (work / "weed").mkdir()
    with weed(work / "weed", BUCKET, address=NODE_IP) as (storage, _):
        postgres = _Postgres(work)
        dsn = postgres.start()
        address = _on_the_bridge(dsn)
        wait_until(storage.ready, "SeaweedFS answers", within=_READY_SECONDS)
        there = Outside(
            database=address, socket=dsn, storage=storage, restart_database=postgres.restart
        )
        there.execute("CREATE DATABASE warehouse")
        yield there


class _Postgres:
    """The server and its supervisor; the DSN stays the same over a restart."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        command = [sys.executable, "-m", "penstock.kit.postgres", "run"]
        with (self._work / "logs" / "postgres.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self._work / "postgres"), *_SETTINGS],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def restart(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_READY_SECONDS)
        self.start()


def _on_the_bridge(dsn: str) -> str:
    """The server listens on a socket alone; a thread forwards to it until this process ends."""
    addresses: queue.Queue[str] = queue.Queue()

    async def forward() -> None:
        async with over_tcp(dsn, NODE_IP) as address:
            addresses.put(address)
            await asyncio.Event().wait()

    threading.Thread(target=asyncio.run, args=(forward(),), daemon=True).start()
    return addresses.get(timeout=_READY_SECONDS)
