"""Two control planes on one database, and a database that goes away and comes back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeVar

import pytest

from penstock.api.serving.server import bind, listening
from penstock.jobs import queue_watch
from penstock.jobs.http_store import HttpJobStore
from penstock.jobs.model import JobSpec, Status
from penstock.kit.errors import DatabaseUnavailable, Draining, Unavailable
from tests.api.control_plane import SERVICE, plane
from tests.jobs.conformance import DONE, REPEATED, STALE, Subject, beat, done, failed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from penstock.jobs.contract import JobStore
    from penstock.kit.postgres import Cluster
    from tests.jobs.conformance import Clock

T = TypeVar("T")


@pytest.fixture(params=["postgres", "http"])
async def planes(
    request: pytest.FixtureRequest, database: str, clock: Clock
) -> AsyncIterator[tuple[Subject, Subject]]:
    """Two stores that share nothing but the database; over HTTP each has a server of its own."""
    async with AsyncExitStack() as stack:
        stores = []
        for _ in range(2):
            services = await stack.enter_async_context(plane(database))
            store: JobStore = services.store
            if request.param == "http":
                url = await stack.enter_async_context(listening(services, bind("127.0.0.1", 0)))
                store = await stack.enter_async_context(HttpJobStore(url, SERVICE))
            stores.append(Subject(store=store, services=services, clock=clock))
            await asyncio.wait_for(services.store.notifier.listening.wait(), 10)
        yield stores[0], stores[1]


async def test_a_job_of_one_plane_wakes_who_waits_at_the_other(
    planes: tuple[Subject, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the notification: nobody looks at the queue meanwhile."""
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 3600.0)
    here, there = planes
    for _ in range(5):
        waiting = asyncio.create_task(there.store.claim("w1", ["default"], 1, wait=25))
        await asyncio.sleep(0.05)
        job_id = await here.add()
        async with asyncio.timeout(20):
            assert [c.job_id for c in await waiting] == [job_id]


async def test_no_job_is_claimed_at_both_and_none_is_left(planes: tuple[Subject, Subject]) -> None:
    here, there = planes
    added = await here.store.enqueue([JobSpec(kind="work", payload=n) for n in range(60)])
    batches = await asyncio.gather(
        *(p.claim(7, worker=f"w{n}") for n in range(5) for p in (here, there))
    )
    claimed = [c.job_id for batch in batches for c in batch]
    assert sorted(claimed) == [a.job_id for a in added]


async def test_an_attempt_may_end_at_the_other_plane_and_only_once(
    planes: tuple[Subject, Subject],
) -> None:
    here, there = planes
    claimed = await here.held()
    verdicts = await asyncio.gather(
        here.store.finish([done(claimed, 1)]), there.store.finish([done(claimed, 2)])
    )
    assert sorted(v for [v] in verdicts) == sorted([DONE, REPEATED])


async def test_a_fence_rotated_at_one_plane_is_stale_at_the_other(
    planes: tuple[Subject, Subject],
) -> None:
    here, there = planes
    claimed = await here.held()
    await there.store.cancel(claimed.job_id, actor="ann")
    assert list((await here.store.renew(beat(claimed.fence))).cancelled) == [claimed.fence]
    assert await here.store.finish([done(claimed)]) == [STALE]


async def test_two_reapers_take_a_lapsed_job_back_once(planes: tuple[Subject, Subject]) -> None:
    here, there = planes
    claimed = await here.held()
    await here.clock.advance(61)
    reaped = await asyncio.gather(here.plane.reap(), there.plane.reap())
    assert sum(r.requeued for r in reaped) == 1
    assert (await there.claim_one()).job_id == claimed.job_id


async def test_draining_at_one_plane_is_draining_everywhere(
    planes: tuple[Subject, Subject],
) -> None:
    here, there = planes
    await here.plane.drain(True, actor="ann")
    with pytest.raises(Draining):
        await there.add()


async def test_nothing_is_lost_when_the_database_restarts_in_the_middle(
    planes: tuple[Subject, Subject], pg: Cluster
) -> None:
    here, there = planes
    ids = [
        a.job_id
        for a in await here.store.enqueue([JobSpec(kind="work", payload=n) for n in range(20)])
    ]
    retried, *rest = await here.claim(5)
    waiting = asyncio.create_task(there.store.claim("w2", ["nothing-here"], 1, wait=3))
    restarting = asyncio.create_task(pg.restart())
    refusals = await _refusals(here, until=restarting)
    assert all(isinstance(e, Unavailable) and e.retryable for e in refusals)
    [waited] = await asyncio.gather(waiting, return_exceptions=True)
    assert waited == [] or isinstance(waited, DatabaseUnavailable)

    assert await _insist(lambda: here.store.finish([failed(retried, retry_in=0)])) != [STALE]
    assert await _insist(lambda: there.store.finish([done(c) for c in rest])) == [DONE] * 4
    ended = {c.job_id for c in rest}
    async with asyncio.timeout(20):
        while len(ended) < len(ids):
            for claimed in await _insist(lambda: there.store.claim("w2", ["default"], 5, wait=1)):
                assert await _insist(lambda c=claimed: here.store.finish([done(c)])) == [DONE]
                ended.add(claimed.job_id)
    assert [await here.status(i) for i in ids] == [Status.SUCCEEDED] * len(ids)


async def test_the_bell_is_heard_again_after_the_database_came_back(
    planes: tuple[Subject, Subject], pg: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 25.0)
    here, there = planes
    await pg.restart()
    await _insist(here.plane.control)
    await asyncio.wait_for(there.plane.notifier.listening.wait(), 10)
    waiting = asyncio.create_task(_insist(lambda: there.store.claim("w1", ["default"], 1, wait=25)))
    await asyncio.sleep(0.1)
    await _insist(here.add)
    async with asyncio.timeout(20):
        assert len(await waiting) == 1


async def _refusals(subject: Subject, *, until: asyncio.Task[None]) -> list[Exception]:
    refused: list[Exception] = []
    while not until.done():
        try:
            await subject.store.job(1)
        except Exception as e:
            refused.append(e)
        await asyncio.sleep(0.01)
    await until
    return refused


async def _insist(call: Callable[[], Awaitable[T]], *, seconds: float = 10) -> T:
    """As a worker does: what is unavailable is asked again."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                return await call()
            except Unavailable:
                await asyncio.sleep(0.02)
