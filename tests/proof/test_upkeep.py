"""What keeps the kernel going for months: retention, partitions and a reaper that keeps up."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg
import pytest
from prometheus_client import CollectorRegistry

from penstock.jobs.model import Ending, JobSpec, Succeeded
from penstock.jobs.reaper import Reaper
from penstock.jobs.retention import Retention
from penstock.kit.loop import LoopMetrics
from tests.proof.stand import LEASE, TIMEOUT, beat

if TYPE_CHECKING:
    from tests.proof.stand import Stand


@pytest.fixture
def metrics() -> LoopMetrics:
    return LoopMetrics(CollectorRegistry())


async def end_a_job(stand: Stand) -> int:
    await stand.add(JobSpec(kind="plain"))
    claimed = await stand.claim_one()
    await stand.store.finish([Ending(fence=claimed.fence, outcome=Succeeded())])
    return claimed.job_id


async def test_an_empty_month_of_outcomes_is_dropped(stand: Stand, metrics: LoopMetrics) -> None:
    await stand.eye.execute("SELECT penstock.make_outcome_partition('2020-03-01')")
    retention = Retention(stand.db, every=1, metrics=metrics, days=30)
    assert (await retention.run_once()).partitions >= 1
    assert await stand.eye.fetchval("SELECT to_regclass('penstock.outcome_202003')") is None


async def test_a_system_that_slept_for_months_gets_its_partitions_back(
    stand: Stand, metrics: LoopMetrics
) -> None:
    """Ends that came before the first pass of the retention lie in the partition for the rest, and
    are moved."""
    await stand.advance(200 * 86_400)
    job_id = await end_a_job(stand)
    assert await stand.eye.fetchval("SELECT count(*) FROM penstock.outcome_rest") == 1
    await Retention(stand.db, every=1, metrics=metrics, days=30).run_once()
    assert await stand.eye.fetchval("SELECT count(*) FROM penstock.outcome_rest") == 0
    assert await stand.status(job_id) == "SUCCEEDED"


async def test_a_month_that_is_being_read_is_dropped_another_time(
    stand: Stand, metrics: LoopMetrics
) -> None:
    """Dropping takes a lock that every end would queue up behind; it is not waited for long enough
    to be felt."""
    await stand.eye.execute("SELECT penstock.make_outcome_partition('2020-03-01')")
    retention = Retention(stand.db, every=1, metrics=metrics, days=30)
    reader = await asyncpg.connect(stand.dsn)
    await reader.execute("BEGIN; SELECT count(*) FROM penstock.outcome")
    dropping = asyncio.create_task(retention.run_once())
    assert (await asyncio.wait_for(dropping, 20)).partitions == 0
    await reader.close()
    assert (await retention.run_once()).partitions >= 1


async def test_what_is_old_is_forgotten_and_what_is_not_is_not_even_read(
    stand: Stand, metrics: LoopMetrics
) -> None:
    old = [await end_a_job(stand) for _ in range(3)]
    await stand.add(JobSpec(kind="plain", run_in=timedelta(days=300)))
    await stand.advance(31 * 86_400)
    await stand.add(*[JobSpec(kind="plain")] * 5000)
    retention = Retention(stand.db, every=1, metrics=metrics, days=30, batch=2)
    assert (await retention.run_once()).jobs == len(old)
    before = await _read(stand)
    await retention.run_once()
    assert await _read(stand) - before < 1000


async def _read(stand: Stand) -> int:
    """Rows of `job` that index scans have fetched so far."""
    async with stand.db.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    await stand.eye.execute("SELECT pg_stat_clear_snapshot()")
    read: int = await stand.eye.fetchval(
        "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'job'"
    )
    return read


async def test_one_pass_of_the_reaper_takes_back_all_that_a_dead_fleet_held(
    stand: Stand, metrics: LoopMetrics
) -> None:
    await stand.add(*[JobSpec(kind="plain")] * 120)
    await stand.claim(limit=120)
    await stand.advance(LEASE + 1)
    reaper = Reaper(stand.db, stand.store, every=1, metrics=metrics, batch=50)
    reaped = await reaper.run_once()
    assert (reaped.requeued, reaped.kinds) == (120, {"plain": 120})


async def test_a_reaper_that_starts_or_comes_back_lets_workers_renew_first(
    stand: Stand, metrics: LoopMetrics
) -> None:
    """Nobody heard their heartbeats meanwhile: a lease that lapsed then is not their fault."""
    ticks = [0.0]
    reaper = Reaper(
        stand.db, stand.store, every=5, metrics=metrics, grace=30, ticks=lambda: ticks[0]
    )

    async def taken(seconds: float) -> int:
        ticks[0] += seconds
        return (await reaper.run_once()).requeued

    await stand.add(JobSpec(kind="plain"), JobSpec(kind="plain"))
    healthy, _vanished = await stand.claim(limit=2)
    await stand.store.renew(beat(healthy.fence))
    await stand.advance(LEASE + 1)
    assert [await taken(seconds) for seconds in (0, 5, 10, 14)] == [0, 0, 0, 0]
    await stand.store.renew(beat(healthy.fence))
    assert await taken(1) == 1
    assert await stand.status(healthy.job_id) == "RUNNING"

    await stand.advance(LEASE + 1)
    assert await taken(31) == 0, "it was away for longer than the grace"
    assert [await taken(seconds) for seconds in (15, 14, 1)] == [0, 0, 1]


async def test_a_reaper_that_starts_beside_others_takes_what_lapsed_at_once(
    stand: Stand, metrics: LoopMetrics
) -> None:
    """Somebody heard the workers all the time; and where there is no worker, none can renew."""
    for heard in (True, False):
        await stand.empty()
        await stand.add(JobSpec(kind="plain"))
        await stand.claim()
        await stand.advance(LEASE + 1)
        if heard:
            await stand.store.renew(beat(worker="w2"))
        reaper = Reaper(stand.db, stand.store, every=5, metrics=metrics, grace=30)
        assert (await reaper.run_once()).requeued == 1


async def test_what_is_past_its_deadline_fails_while_the_reaper_waits(
    stand: Stand, metrics: LoopMetrics
) -> None:
    reaper = Reaper(stand.db, stand.store, every=5, metrics=metrics, grace=30)
    running = JobSpec(kind="plain", deadline_in=timedelta(seconds=TIMEOUT / 2))
    await stand.add(
        running, JobSpec(kind="plain", run_in=timedelta(0), deadline_in=timedelta(seconds=5))
    )
    await stand.claim()
    await stand.store.renew(beat())
    await stand.advance(TIMEOUT)
    reaped = await reaper.run_once()
    assert (reaped.failed, reaped.expired) == (1, 1)
