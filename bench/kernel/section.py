"""The timed section of one measured piece of work, and how work is handed to it.

What comes before it costs nothing: imports, schemas, pools, connections, a worker's registration.
Standard library and asyncpg only, since peers with another Python run this too.
"""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import asyncpg

from bench import cpu

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

LOOK_SECONDS = 0.002
WARM_UP = 3
PATIENCE = 120.0
PAD = "0123456789012345678901234567890123456789"
PAYLOAD = {"n": 1, "pad": PAD}


@dataclass(frozen=True, slots=True)
class Spent:
    """`others` is the CPU of each watched process tree, by its name."""

    wall: float
    client: float
    others: dict[str, float]


class Section:
    """`with section:` or begin and end; wall time, CPU of this process, and of the trees that are
    watched."""

    def __init__(self, watched: dict[str, int]) -> None:
        self._watched = watched
        self._before: Spent | None = None
        self.spent: Spent | None = None

    def begin(self) -> None:
        """What was imported is no garbage: nobody's collector walks it in the section."""
        gc.collect()
        gc.freeze()
        self._before = self._now()

    def end(self) -> None:
        if self._before is None:
            raise RuntimeError("the section never began")
        before, after = self._before, self._now()
        others = {name: seconds - before.others[name] for name, seconds in after.others.items()}
        self.spent = Spent(after.wall - before.wall, after.client - before.client, others)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.end()

    def _now(self) -> Spent:
        others = {name: cpu.of_tree(pid) for name, pid in self._watched.items()}
        return Spent(time.perf_counter(), time.process_time(), others)


async def produce(
    section: Section, enqueues: Sequence[Callable[[int], Awaitable[object]]], jobs: int
) -> None:
    """Producers side by side, each one job after another; a few before the section, so that every
    connection is open and every statement known."""
    jobs_each = jobs // len(enqueues)
    await asyncio.gather(*(_one_by_one(enqueue, range(WARM_UP)) for enqueue in enqueues))
    with section:
        await asyncio.gather(*(_one_by_one(enqueue, range(jobs_each)) for enqueue in enqueues))


async def _one_by_one(enqueue: Callable[[int], Awaitable[object]], numbers: range) -> None:
    for number in numbers:
        await enqueue(number)


async def batches(
    section: Section, enqueue: Callable[[int], Awaitable[object]], jobs: int, batch: int
) -> None:
    """A batch after another of one producer, with a small one before the section."""
    await enqueue(WARM_UP)
    with section:
        for start in range(0, jobs, batch):
            await enqueue(min(batch, jobs - start))


class Drain:
    """Drains a backlog: the section lasts from the first job in a handler until the database says
    that none is left.

    Every system is up and running by the first job, and no end counts before it is committed.
    """

    def __init__(self, section: Section, dsn: str, jobs: int, left: str) -> None:
        """`left` is a query: how many jobs are not over."""
        self._section = section
        self._dsn = dsn
        self._jobs = jobs
        self._query = left
        self._begun = 0
        self._all_begun = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def job(self) -> None:
        """To be called by each handler, in whatever thread."""
        if self._begun == 0:
            self._section.begin()
        self._begun += 1
        if self._begun == self._jobs:
            self._loop.call_soon_threadsafe(self._all_begun.set)

    async def done(self) -> None:
        connection = await asyncpg.connect(self._dsn)
        async with asyncio.timeout(PATIENCE):
            await self._all_begun.wait()
            while await connection.fetchval(self._query):  # noqa: ASYNC110 - a database rings no bell
                await asyncio.sleep(LOOK_SECONDS)
        self._section.end()
        await connection.close()


def tagged(producer: int, number: int) -> dict[str, object]:
    """What a request's job carries everywhere: who asked, and the trace; in the payload, where a
    system has no columns for them."""
    return PAYLOAD | {"user": user(producer), "trace": trace(producer, number)}


def user(producer: int) -> str:
    return f"user{producer}@example.com"


def trace(producer: int, number: int) -> str:
    return f"4bf92f3577b34da6{producer:04x}{number:012x}"


@asynccontextmanager
async def running(work: Coroutine[object, object, object]) -> AsyncIterator[None]:
    """A worker beside the block; what it dies of ends the block, and the block's end waits for
    it."""
    async with asyncio.TaskGroup() as group:
        group.create_task(work)
        yield
