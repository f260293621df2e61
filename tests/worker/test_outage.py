"""The control plane goes away: work goes on, and what was finished meanwhile is not lost."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.jobs.model import Status
from penstock.kit.errors import Unavailable
from tests.worker.conftest import until
from tests.worker.worker_process import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from penstock.jobs.store import PgJobStore
    from penstock.worker import Worker
    from tests.worker.conftest import Jobs

    Working = Callable[..., Worker]


class Line:
    """A store at the other end of a line that can be cut, before a call arrives or after it was
    obeyed."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.cut = False
        self.replies_lost = 0
        self.refused = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Callee]:
        async with open_store(self._dsn) as store:
            yield Callee(self, store)


class Callee:
    def __init__(self, line: Line, store: PgJobStore) -> None:
        self._line = line
        self._store = store

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[object]]:
        async def call(*args: object, **options: object) -> object:
            if self._line.cut:
                self._line.refused += 1
                raise Unavailable("The line is cut.")
            answer = await getattr(self._store, verb)(*args, **options)
            if verb in {"finish", "exchange"} and self._line.replies_lost > 0:
                self._line.replies_lost -= 1
                raise Unavailable("The reply was lost.")
            return answer

        return call


async def test_a_result_that_is_finished_during_an_outage_is_delivered_after_it(
    database: str, jobs: Jobs, working: Working
) -> None:
    line = Line(database)
    worker = working(open_store=line.open)
    job = await jobs.add("nap", seconds=0.3)
    await jobs.until(job, Status.RUNNING)
    line.cut = True

    async def tried_in_vain() -> bool:
        return line.refused > 4 and worker.busy == 0

    await until(tried_in_vain)
    line.cut = False
    view = await jobs.over(job)
    assert (view.status, view.attempt_no) == (Status.SUCCEEDED, 1)
    following = await jobs.add("nap", seconds=0)
    assert (await jobs.over(following)).status is Status.SUCCEEDED


async def test_a_result_whose_reply_was_lost_is_a_success_and_not_stale(
    database: str, jobs: Jobs, working: Working
) -> None:
    line = Line(database)
    worker = working(open_store=line.open)
    line.replies_lost = 2
    job = await jobs.add("nap", seconds=0.05)

    async def settled() -> bool:
        return sum(worker.metrics.tally.values()) == 1

    await until(settled)
    assert worker.metrics.tally["succeeded"] == 1
    assert (await jobs.store.job(job)).status is Status.SUCCEEDED


async def test_the_lease_of_an_undelivered_result_is_kept_alive(
    database: str, jobs: Jobs, working: Working
) -> None:
    """Heartbeats get through, results do not: the fence must outlive several leases."""
    line = Line(database)
    line.replies_lost = 0
    stuck = asyncio.Event()

    class Deaf(Callee):
        async def finish(self, endings: object) -> object:
            if not stuck.is_set():
                raise Unavailable("Not now.")
            return await self._store.finish(endings)

        async def exchange(self, endings: object, *args: object, **options: object) -> object:
            if not stuck.is_set():
                raise Unavailable("Not now.")
            return await self._store.exchange(endings, *args, **options)

    @asynccontextmanager
    async def deaf() -> AsyncIterator[Deaf]:
        async with open_store(database) as store:
            yield Deaf(line, store)

    working(open_store=deaf)
    job = await jobs.add("nap", seconds=0)
    view = await jobs.until(job, Status.RUNNING)
    first_lease = view.lease_until

    async def renewed_past_two_leases() -> bool:
        await jobs.store.reap()
        lease = (await jobs.store.job(job)).lease_until
        return lease is None or (lease - first_lease).total_seconds() > 3

    await until(renewed_past_two_leases)
    stuck.set()
    view = await jobs.over(job)
    assert (view.status, view.attempt_no) == (Status.SUCCEEDED, 1)
