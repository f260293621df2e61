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
from tests.proof.proof_db import LEASE, TIMEOUT, beat

if TYPE_CHECKING:
    from tests.proof.proof_db import ProofDatabase


@pytest.fixture
def metrics() -> LoopMetrics:
    return LoopMetrics(CollectorRegistry())


async def end_a_job(proof_db: ProofDatabase) -> int:
    await proof_db.add(JobSpec(kind="plain"))
    claimed = await proof_db.claim_one()
    await proof_db.store.finish([Ending(fence=claimed.fence, outcome=Succeeded())])
    return claimed.job_id


async def test_an_empty_month_of_outcomes_is_dropped(
    proof_db: ProofDatabase, metrics: LoopMetrics
) -> None:
    await proof_db.eye.execute("SELECT penstock.make_outcome_partition('2020-03-01')")
    retention = Retention(proof_db.db, every=1, metrics=metrics, days=30)
    assert (await retention.run_once()).partitions >= 1
    assert await proof_db.eye.fetchval("SELECT to_regclass('penstock.outcome_202003')") is None


async def test_a_system_that_slept_for_months_gets_its_partitions_back(
    proof_db: ProofDatabase, metrics: LoopMetrics
) -> None:
    """Ends that came before the first pass of the retention lie in the partition for the rest, and
    are moved."""
    await proof_db.advance(200 * 86_400)
    job_id = await end_a_job(proof_db)
    assert await proof_db.eye.fetchval("SELECT count(*) FROM penstock.outcome_rest") == 1
    await Retention(proof_db.db, every=1, metrics=metrics, days=30).run_once()
    assert await proof_db.eye.fetchval("SELECT count(*) FROM penstock.outcome_rest") == 0
    assert await proof_db.status(job_id) == "SUCCEEDED"


async def test_a_month_that_is_being_read_is_dropped_another_time(
    proof_db: ProofDatabase, metrics: LoopMetrics
) -> None:
    """Dropping takes a lock that every end would queue up behind; it is not waited for long enough
    to be felt."""
    await proof_db.eye.execute("SELECT penstock.make_outcome_partition('2020-03-01')")
    retention = Retention(proof_db.db, every=1, metrics=metrics, days=30)
    reader = await asyncpg.connect(proof_db.dsn)
    await reader.execute("BEGIN; SELECT count(*) FROM penstock.outcome")
    dropping = asyncio.create_task(retention.run_once())
    assert (await asyncio.wait_for(dropping, 20)).partitions == 0
    await reader.close()
    assert (await retention.run_once()).partitions >= 1


async def test_what_is_old_is_forgotten_and_what_is_not_is_not_even_read(
    proof_db: ProofDatabase, metrics: LoopMetrics
) -> None:
    old = [await end_a_job(proof_db) for _ in range(3)]
    await proof_db.add(JobSpec(kind="plain", run_in=timedelta(days=300)))
    await proof_db.advance(31 * 86_400)
    await proof_db.add(*[JobSpec(kind="plain")] * 5000)
    retention = Retention(proof_db.db, every=1, metrics=metrics, days=30, batch=2)
    assert (await retention.run_once()).jobs == len(old)
    before = await _read(proof_db)
    await retention.run_once()
    assert await _read(proof_db) - before < 1000


async def _read(proof_db: ProofDatabase) -> int:
    """Rows of `job` that index scans have fetched so far."""
    async with proof_db.db.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    await proof_db.eye.execute("SELECT pg_stat_clear_snapshot()")
    read: int = await proof_db.eye.fetchval(
        "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'job'"
    )
    return read


async def test_one_pass_of_the_reaper_takes_back_all_that_a_dead_fleet_held(
    proof_db: ProofDatabase, metrics: LoopMetrics
) -> None:
    await proof_db.add(*[JobSpec(kind="plain")] * 120)
    await proof_db.claim(limit=120)
    await proof_db.advance(LEASE + 1)
    reaper = Reaper(proof_db.db, proof_db.store, every=1, metrics=metrics, batch=50)
    reaped = await reaper.run_once()
    assert (reaped.requeued, reaped.kinds) == (120, {"plain": 120})


async def test_a_reaper_that_starts_or_comes_back_lets_workers_renew_first(
    proof_db: ProofDatabase, metrics: LoopMetrics
) -> None:
    """Nobody heard their heartbeats meanwhile: a lease that lapsed then is not their fault."""
    ticks = [0.0]
    reaper = Reaper(
        proof_db.db, proof_db.store, every=5, metrics=metrics, grace=30, ticks=lambda: ticks[0]
    )

    async def taken(seconds: float) -> int:
        ticks[0] += seconds
        return (await reaper.run_once()).requeued

    await proof_db.add(JobSpec(kind="plain"), JobSpec(kind="plain"))
    healthy, _vanished = await proof_db.claim(limit=2)
    await proof_db.store.renew(beat(healthy.fence))
    await proof_db.advance(LEASE + 1)
    assert [await taken(seconds) for seconds in (0, 5, 10, 14)] == [0, 0, 0, 0]
    await proof_db.store.renew(beat(healthy.fence))
    assert await taken(1) == 1
    assert await proof_db.status(healthy.job_id) == "RUNNING"

    await proof_db.advance(LEASE + 1)
    assert await taken(31) == 0, "it was away for longer than the grace"
    assert [await taken(seconds) for seconds in (15, 14, 1)] == [0, 0, 1]


async def test_a_reaper_that_starts_beside_others_takes_what_lapsed_at_once(
    proof_db: ProofDatabase, metrics: LoopMetrics
) -> None:
    """Somebody heard the workers all the time; and where there is no worker, none can renew."""
    for heard in (True, False):
        await proof_db.empty()
        await proof_db.add(JobSpec(kind="plain"))
        await proof_db.claim()
        await proof_db.advance(LEASE + 1)
        if heard:
            await proof_db.store.renew(beat(worker="w2"))
        reaper = Reaper(proof_db.db, proof_db.store, every=5, metrics=metrics, grace=30)
        assert (await reaper.run_once()).requeued == 1


async def test_what_is_past_its_deadline_fails_while_the_reaper_waits(
    proof_db: ProofDatabase, metrics: LoopMetrics
) -> None:
    reaper = Reaper(proof_db.db, proof_db.store, every=5, metrics=metrics, grace=30)
    running = JobSpec(kind="plain", deadline_in=timedelta(seconds=TIMEOUT / 2))
    await proof_db.add(
        running, JobSpec(kind="plain", run_in=timedelta(0), deadline_in=timedelta(seconds=5))
    )
    await proof_db.claim()
    await proof_db.store.renew(beat())
    await proof_db.advance(TIMEOUT)
    reaped = await reaper.run_once()
    assert (reaped.failed, reaped.expired) == (1, 1)
