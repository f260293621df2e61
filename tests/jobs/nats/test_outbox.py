"""What becomes ready is announced in the commit that makes it so, and only with `queue=nats`."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from penstock.jobs.announcer import Outbox
from penstock.jobs.kinds import Kinds
from penstock.jobs.model import GroupSpec, JobSpec, Parking, Registration, Release
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from tests.api.control_plane import POLICIES
from tests.jobs.conformance import done, failed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.jobs.conformance import Clock

RELEASED = "the worker stops"


@pytest.fixture
async def db(database: str) -> AsyncIterator[Db]:
    async with Db(database, size=4, settings=ENGINE_SETTINGS) as opened:
        yield opened


@pytest.fixture
async def store(db: Db) -> AsyncIterator[PgJobStore]:
    """Writes the outbox; nothing empties it."""
    async with PgJobStore(db, Kinds(POLICIES), outbox=Outbox()) as opened:
        yield opened


async def announced(clock: Clock) -> list[int]:
    """The jobs in the outbox, which is emptied."""
    rows = await clock.fetch(
        "WITH gone AS (DELETE FROM penstock.outbox RETURNING *)"
        " SELECT job_id FROM gone ORDER BY outbox_id"
    )
    return [row["job_id"] for row in rows]


async def enqueue(store: PgJobStore, *specs: JobSpec) -> list[int]:
    return [added.job_id for added in await store.enqueue(specs or [JobSpec(kind="work")])]


async def test_every_job_that_is_enqueued_is_announced_once(
    store: PgJobStore, clock: Clock
) -> None:
    plain = await enqueue(store, *[JobSpec(kind="work")] * 3)
    keyed = await enqueue(store, JobSpec(kind="work", unique_key="a", lock_key="b"))
    assert await enqueue(store, JobSpec(kind="work", unique_key="a", lock_key="b")) == keyed
    assert await announced(clock) == plain + keyed


async def test_an_enqueue_that_is_rolled_back_announces_nothing(
    store: PgJobStore, db: Db, clock: Clock
) -> None:
    with suppress(LookupError):
        async with db.transaction() as tx:
            await store.enqueue([JobSpec(kind="work")], tx=tx)
            raise LookupError
    assert await announced(clock) == []


async def test_a_scheduled_job_is_announced_when_it_is_due(store: PgJobStore, clock: Clock) -> None:
    job_ids = await enqueue(store, JobSpec(kind="work", run_in=timedelta(seconds=30)))
    assert await announced(clock) == []
    await clock.advance(31)
    assert await store.promote()
    assert await announced(clock) == job_ids


async def test_a_gate_announces_what_it_opens(store: PgJobStore, clock: Clock) -> None:
    group = GroupSpec(name="g", on_success=[JobSpec(kind="elsewhere")])
    _, [member] = await store.open_group(group, [JobSpec(kind="work")])
    assert await announced(clock) == [member.job_id]
    [claimed] = await store.claim("w1", ["default"], 1)
    await store.finish([done(claimed)])
    [opened] = await announced(clock)
    assert (await store.job(opened)).kind == "elsewhere"


async def _release(store: PgJobStore, clock: Clock) -> None:
    [claimed] = await store.claim("w1", ["default"], 1)
    await store.release([Release(fence=claimed.fence, reason=RELEASED)])


async def _retry(store: PgJobStore, clock: Clock) -> None:
    [claimed] = await store.claim("w1", ["default"], 1)
    await store.finish([failed(claimed, retry_in=0.0)])
    await store.promote()


async def _park(store: PgJobStore, clock: Clock) -> None:
    [claimed] = await store.claim("w1", ["default"], 1)
    await store.park([Parking(fence=claimed.fence, state={}, wake_in=20)])
    await clock.advance(21)
    await store.promote()


async def _lapse(store: PgJobStore, clock: Clock) -> None:
    await store.claim("w1", ["default"], 1)
    await clock.advance(61)
    await store.reap()


async def _take_over(store: PgJobStore, clock: Clock) -> None:
    first, second = (
        Registration(worker="w1", session=uuid4(), queues=["default"], slots=1, version="0")
        for _ in range(2)
    )
    await store.register(first)
    await store.claim("w1", ["default"], 1, session=first.session)
    await store.register(second)


@pytest.mark.parametrize("come_back", [_release, _retry, _park, _lapse, _take_over])
async def test_a_job_that_comes_back_to_its_queue_is_announced_again(
    store: PgJobStore, clock: Clock, come_back: Callable[[PgJobStore, Clock], Awaitable[None]]
) -> None:
    job_ids = await enqueue(store)
    assert await announced(clock) == job_ids
    await come_back(store, clock)
    assert await announced(clock) == job_ids


@pytest.mark.parametrize("come_back", [_release, _retry, _park, _lapse, _take_over])
async def test_without_the_transport_nothing_is_written(
    db: Db, clock: Clock, come_back: Callable[[PgJobStore, Clock], Awaitable[None]]
) -> None:
    async with PgJobStore(db, Kinds(POLICIES)) as store:
        await enqueue(store)
        await enqueue(store, JobSpec(kind="work", unique_key="a", lock_key="b", queue="other"))
        await come_back(store, clock)
    [row] = await clock.fetch("SELECT is_called FROM penstock.outbox_outbox_id_seq")
    assert not row["is_called"]
