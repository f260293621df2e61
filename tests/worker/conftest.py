"""Worker processes for a test, and patience with a limit."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.jobs.model import JobSpec, JobView, Status
from penstock.worker import Summary, Worker, claiming
from tests.worker.worker_process import HANDLERS, KINDS, open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path
    from signal import Signals

    from penstock.jobs.store import PgJobStore

PATIENCE = 20.0
PROGRAM = "import sys; from tests.worker.worker_process import main; sys.exit(main(*sys.argv[1:]))"


async def until(true: Callable[[], Awaitable[object]], *, within: float = PATIENCE) -> None:
    """Looks until it is true; a test that waits in vain says for what."""
    deadline = time.monotonic() + within
    while not await true():
        assert time.monotonic() < deadline, f"not within {within:g} s: {true}"
        await asyncio.sleep(0.02)


class Jobs:
    """The kernel as a test sees it."""

    def __init__(self, store: PgJobStore, dsn: str) -> None:
        self.store = store
        self._dsn = dsn

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        connection = await asyncpg.connect(self._dsn)
        try:
            yield connection
        finally:
            await connection.close()

    async def workers(self) -> list[str]:
        async with self.connection() as connection:
            return [
                r["name"]
                for r in await connection.fetch("SELECT name FROM penstock.worker ORDER BY name")
            ]

    @asynccontextmanager
    async def unwritable(self) -> AsyncIterator[None]:
        """Nobody can write a job's row meanwhile."""
        async with self.connection() as connection, connection.transaction():
            await connection.execute("LOCK TABLE penstock.live IN SHARE MODE")
            yield

    async def add(self, kind: str, /, **payload: object) -> int:
        [added] = await self.store.enqueue([JobSpec(kind=kind, payload=payload)])
        return added.job_id

    async def until(
        self, job_id: int, status: Status, *, within: float = PATIENCE, reap: bool = False
    ) -> JobView:
        async def is_it() -> bool:
            if reap:
                await self.store.reap()
            return (await self.store.job(job_id)).status is status

        await until(is_it, within=within)
        return await self.store.job(job_id)

    async def over(self, job_id: int, *, within: float = PATIENCE, reap: bool = False) -> JobView:
        async def is_it() -> bool:
            if reap:
                await self.store.reap()
            return (await self.store.job(job_id)).status.over

        await until(is_it, within=within)
        return await self.store.job(job_id)


@pytest.fixture
async def jobs(database: str) -> AsyncIterator[Jobs]:
    async with open_store(database) as store:
        yield Jobs(store, database)


@pytest.fixture
async def working(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Worker]]:
    """Starts workers in this process; they are stopped when the test is over."""
    monkeypatch.setattr(claiming, "LAST_POLL_SECONDS", 0.02)
    running: list[tuple[Worker, asyncio.Task[Summary]]] = []

    def start(**options: object) -> Worker:
        fields = {"name": f"here-{len(running)}", "queues": ["default"], "slots": 10, **options}
        open_ = fields.pop("open_store", lambda: open_store(database))
        worker = Worker(open_, HANDLERS, KINDS, **fields)
        running.append((worker, asyncio.create_task(worker.run())))
        return worker

    yield start
    for worker, task in running:
        worker.stop(grace=0)
        await asyncio.wait_for(task, PATIENCE)


class Hand:
    """A worker process."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, signal: Signals) -> None:
        self._process.send_signal(signal)

    async def exit_code(self, within: float = PATIENCE) -> int:
        return await asyncio.wait_for(self._process.wait(), within)

    def events(self, name: str) -> list[dict[str, object]]:
        lines = [
            json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")
        ]
        return [line for line in lines if line["event"] == name]

    async def event(self, name: str, within: float = PATIENCE) -> dict[str, object]:
        async def it() -> bool:
            return bool(self.events(name))

        await until(it, within=within)
        return self.events(name)[0]

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class Hands:
    def __init__(self, dsn: str, folder: Path) -> None:
        self._dsn = dsn
        self._folder = folder
        self._hired: list[Hand] = []

    async def hire(self, **options: object) -> Hand:
        return await self.run("-c", PROGRAM, self._dsn, json.dumps(options))

    async def run(self, *arguments: str, **environment: str) -> Hand:
        log = self._folder / f"hand-{len(self._hired)}.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment or None,
            )
        hand = Hand(process, log)
        self._hired.append(hand)
        return hand

    async def dismiss(self) -> None:
        for hand in self._hired:
            await hand.kill()
            sys.stdout.write(hand.log.read_text())  # pytest shows it when the test failed


@pytest.fixture
async def hands(database: str, tmp_path: Path) -> AsyncIterator[Hands]:
    hired = Hands(database, tmp_path)
    yield hired
    await hired.dismiss()
