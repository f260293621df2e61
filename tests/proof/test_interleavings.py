"""Every order of two or three actors' statements keeps the promises, and no order is a deadlock."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg
import pytest
from prometheus_client import CollectorRegistry

from penstock.jobs.kinds import Kinds
from penstock.jobs.model import (
    Cancelled,
    Claimed,
    Ending,
    Failed,
    GroupSpec,
    JobSpec,
    Outcome,
    Parking,
    ProgressUpdate,
    Reaped,
    Release,
    Renewal,
    Succeeded,
    Verdict,
)
from penstock.jobs.scheduler import Schedule, Scheduler, Schedules
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.errors import Conflict, InvalidState, StaleAttempt
from penstock.kit.loop import LoopMetrics
from penstock.kit.sqlfile import parse
from tests.proof.explorer import Actor, Explorer
from tests.proof.invariants import broken
from tests.proof.stand import DEPTH, LEASE, POLICIES, beat, stand_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping

    from penstock.jobs.gates import Fired
    from penstock.kit.db import Tx
    from penstock.kit.postgres import Cluster
    from tests.proof.explorer import Order, Script
    from tests.proof.stand import Stand
    from tests.proof.tapped import TappedDb

FEW = 2 if DEPTH == 1 else 4
"""How often a willing actor loses its turn, where there are too many orders for all of them."""
PLAIN = JobSpec(kind="plain")
AFTER = JobSpec(kind="once")
WELL = Succeeded()
BADLY = Failed(error={"code": "BAD"})


@pytest.fixture(scope="module")
async def stand(pg: Cluster, template: str) -> AsyncIterator[Stand]:
    """One stand for all orders: it is emptied before each, and its connections know their statements by then."""
    admin = await asyncpg.connect(pg.dsn("postgres"))
    await admin.execute(f"CREATE DATABASE orders TEMPLATE {template}")
    async with stand_on(pg.dsn("orders")) as made:
        yield made
    await admin.execute("DROP DATABASE orders WITH (FORCE)")
    await admin.close()


@pytest.fixture(scope="module")
async def explorer(stand: Stand) -> AsyncIterator[Explorer]:
    actors = {name: Actor(stand.dsn, name) for name in "ABC"}
    yield Explorer(stand=stand, actors=actors)
    for actor in actors.values():
        await actor.db.close()


def finish(*claimed: Claimed, outcome: Outcome = WELL) -> Script:
    endings = [Ending(fence=c.fence, outcome=outcome) for c in claimed]
    return lambda store, _db: store.finish(endings)


def cancel(job_id: int) -> Script:
    return lambda store, _db: store.cancel(job_id, actor="somebody")


def claim(worker: str, limit: int = 1) -> Script:
    return lambda store, _db: store.claim(worker, ["default"], limit)


def enqueue(*specs: JobSpec) -> Script:
    return lambda store, _db: store.enqueue(specs)


def reap() -> Script:
    return lambda store, _db: store.reap()


async def check(stand: Stand, order: Order) -> None:
    """What holds after any order: no deadlock, no broken invariant, and with a worker alive every job ends."""
    assert not order.deadlocked(), f"deadlock: {order}"
    assert await broken(stand.eye) == [], f"{order}"
    for _ in range(12):
        if not await stand.eye.fetchval(_LEFT):
            break
        await stand.advance(LEASE + 1)
        await stand.store.reap()
        claimed = await stand.another_store().claim("last", ["default"], 100)
        await stand.store.finish([Ending(fence=c.fence, outcome=WELL) for c in claimed])
    assert await stand.eye.fetchval(_LEFT) == 0, f"lost: {order}"
    assert await broken(stand.eye) == [], f"{order}"


_LEFT = "SELECT (SELECT count(*) FROM penstock.live) + (SELECT count(*) FROM penstock.job_group WHERE status < 10)"
_CLOCK_THAT_HOLDS_THE_REAPER = """
CREATE OR REPLACE FUNCTION penstock.now() RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF current_query() LIKE '%Groups that the reaper must look at%' THEN PERFORM pg_advisory_xact_lock_shared(42); END IF;
  RETURN (SELECT at FROM penstock.proof_clock);
END $$"""


async def count(stand: Stand, kind: str) -> int:
    found: int = await stand.eye.fetchval("SELECT count(*) FROM penstock.job WHERE kind = $1", kind)
    return found


async def test_two_claims_never_take_one_job(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(PLAIN, PLAIN, PLAIN)
        return {"A": claim("a", 2), "B": claim("b", 2)}

    async for order in explorer.walk(arrange):
        taken = [c.job_id for found in order.results.values() if isinstance(found, list) for c in found]
        assert len(taken) == len(set(taken)), f"{order}"
        await check(stand, order)


@pytest.mark.parametrize("outcome", [WELL, BADLY, Failed(error={}, retry_in=5)])
async def test_a_finish_and_the_reaper_agree_on_one_fate(explorer: Explorer, stand: Stand, outcome: Outcome) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(JobSpec(kind="once"))
        claimed = await stand.claim_one()
        await stand.advance(LEASE + 1)
        return {"A": finish(claimed, outcome=outcome), "B": reap()}

    async for order in explorer.walk(arrange):
        [verdict], reaped = order.results["A"], order.results["B"]
        assert isinstance(reaped, Reaped)
        assert (verdict is Verdict.STALE) == (reaped.failed == 1), f"{order}"
        await check(stand, order)


async def test_a_finish_and_a_cancel_agree_on_one_fate(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(PLAIN)
        claimed = await stand.claim_one()
        return {"A": finish(claimed), "B": cancel(claimed.job_id)}

    async for order in explorer.walk(arrange):
        [verdict], cancelled = order.results["A"], order.results["B"]
        assert isinstance(cancelled, Cancelled | InvalidState), f"{order}"
        assert (verdict is Verdict.STALE) == isinstance(cancelled, Cancelled), f"{order}"
        await check(stand, order)


async def test_a_renewal_and_the_reaper_agree_on_the_holder(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(PLAIN)
        claimed = await stand.claim_one()
        await stand.advance(LEASE + 1)
        return {"A": lambda store, _db: store.renew(beat(claimed.fence)), "B": reap()}

    async for order in explorer.walk(arrange):
        renewal, reaped = order.results["A"], order.results["B"]
        assert isinstance(renewal, Renewal)
        assert isinstance(reaped, Reaped)
        if renewal.lost:
            assert reaped.requeued == 1, f"{order}"
        await check(stand, order)


async def test_a_gate_fires_once_whoever_finishes_last(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.store.open_group(GroupSpec(name="g", on_success=[AFTER]), [PLAIN, PLAIN])
        left, right = await stand.claim(limit=2)
        return {"A": finish(left), "B": finish(right)}

    async for order in explorer.walk(arrange):
        assert await count(stand, "once") == 1, f"{order}"
        await check(stand, order)
        assert await count(stand, "once") == 1, f"{order}"


async def test_a_gate_fires_once_among_a_last_finisher_a_failure_and_the_reaper(
    explorer: Explorer, stand: Stand
) -> None:
    async def arrange() -> Mapping[str, Script]:
        spec = GroupSpec(name="g", on_failure=[AFTER], deadline_in=timedelta(seconds=10))
        await stand.store.open_group(spec, [PLAIN, PLAIN, JobSpec(kind="plain", run_in=timedelta(hours=1))])
        left, right = await stand.claim(limit=2)
        await stand.advance(11)
        return {"A": finish(left), "B": finish(right, outcome=BADLY), "C": reap()}

    async for order in explorer.walk(arrange, switches=FEW - 1):
        await check(stand, order)
        assert await count(stand, "once") == 1, f"{order}"


async def test_a_job_joins_a_group_before_its_gate_fires_or_not_at_all(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        group_id, _ = await stand.store.open_group(GroupSpec(name="g", on_success=[AFTER]), [PLAIN])
        claimed = await stand.claim_one()
        return {"A": finish(claimed), "B": enqueue(JobSpec(kind="plain", group_id=group_id))}

    async for order in explorer.walk(arrange):
        joined = isinstance(order.results["B"], list)
        assert joined or isinstance(order.results["B"], InvalidState), f"{order}"
        assert await count(stand, "once") == (0 if joined else 1), f"{order}"
        await check(stand, order)
        assert await count(stand, "once") == 1, f"{order}"


async def test_two_plans_of_one_group_both_spawn_and_the_gate_waits_for_all(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        group_id, _ = await stand.store.open_group(GroupSpec(name="g", on_success=[AFTER]), [PLAIN, PLAIN])
        left, right = await stand.claim(limit=2)
        chunks = Succeeded(spawn=[JobSpec(kind="brief", group_id=group_id)] * 2)
        return {"A": finish(left, outcome=chunks), "B": finish(right, outcome=chunks)}

    async for order in explorer.walk(arrange):
        assert (await count(stand, "brief"), await count(stand, "once")) == (4, 0), f"{order}"
        await check(stand, order)
        assert await count(stand, "once") == 1, f"{order}"


@pytest.mark.parametrize("crash_at", [1, 2, 3, 4, 5])
async def test_a_finisher_that_dies_at_any_step_leaves_a_gate_that_still_fires_once(
    explorer: Explorer, stand: Stand, crash_at: int
) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.store.open_group(GroupSpec(name="g", on_success=[AFTER]), [PLAIN, PLAIN])
        left, right = await stand.claim(limit=2)
        return {"A": finish(left), "B": finish(right)}

    async for order in explorer.walk(arrange, crash=("B", crash_at), switches=FEW):
        await check(stand, order)
        assert await count(stand, "once") == 1, f"{order}"


async def test_one_unique_key_makes_one_job(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        spec = JobSpec(kind="plain", unique_key="u")
        return {"A": enqueue(spec), "B": enqueue(spec)}

    async for order in explorer.walk(arrange):
        [a], [b] = order.results["A"], order.results["B"]
        assert a.job_id == b.job_id, f"{order}"
        assert [a.created, b.created].count(True) == 1, f"{order}"
        await check(stand, order)


async def test_batches_that_name_the_same_keys_in_opposite_orders_do_not_deadlock(
    explorer: Explorer, stand: Stand
) -> None:
    async def arrange() -> Mapping[str, Script]:
        first = [JobSpec(kind="plain", unique_key="u1"), JobSpec(kind="once", lock_key="l1")]
        return {"A": enqueue(*first), "B": enqueue(*reversed(first))}

    async for order in explorer.walk(arrange):
        assert any(isinstance(r, Conflict) for r in order.results.values()), f"{order}"
        await check(stand, order)


async def test_a_lock_passes_from_its_holder_to_the_next_or_the_next_is_refused(
    explorer: Explorer, stand: Stand
) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(JobSpec(kind="plain", lock_key="t"))
        claimed = await stand.claim_one()
        return {"A": finish(claimed), "B": enqueue(JobSpec(kind="plain", lock_key="t"))}

    async for order in explorer.walk(arrange):
        assert order.results["A"] == [Verdict.DONE], f"{order}"
        assert isinstance(order.results["B"], list | Conflict), f"{order}"
        await check(stand, order)


async def test_a_lock_that_is_taken_again_within_one_group_does_not_deadlock(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        spec = JobSpec(kind="plain", lock_key="t")
        group_id, _ = await stand.store.open_group(GroupSpec(name="g"), [spec, PLAIN])
        claimed = next(c for c in await stand.claim(limit=2) if c.lock_key)
        return {"A": finish(claimed), "B": enqueue(JobSpec(kind="plain", lock_key="t", group_id=group_id))}

    async for order in explorer.walk(arrange):
        assert isinstance(order.results["B"], list | Conflict), f"{order}"
        await check(stand, order)


async def test_a_spawn_that_wants_the_lock_of_a_member_that_is_cancelled_does_not_deadlock(
    explorer: Explorer, stand: Stand
) -> None:
    async def arrange() -> Mapping[str, Script]:
        spec = JobSpec(kind="plain", lock_key="t")
        group_id, [held, _] = await stand.store.open_group(GroupSpec(name="g"), [spec, PLAIN])
        plan = next(c for c in await stand.claim(limit=2) if not c.lock_key)
        chunk = JobSpec(kind="plain", lock_key="t", group_id=group_id)
        return {"A": finish(plan, outcome=Succeeded(spawn=[chunk])), "B": cancel(held.job_id)}

    async for order in explorer.walk(arrange):
        await check(stand, order)


async def test_a_park_and_a_cancel_agree_on_one_fate(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(JobSpec(kind="remote"))
        claimed = await stand.claim_one()
        parking = Parking(fence=claimed.fence, state={"query": 7}, wake_in=5)
        return {"A": lambda store, _db: store.park([parking]), "B": cancel(claimed.job_id)}

    async for order in explorer.walk(arrange):
        assert isinstance(order.results["B"], Cancelled), f"{order}"
        assert await count(stand, "sweep") == (1 if order.results["A"] == [True] else 0), f"{order}"
        await check(stand, order)


async def test_a_release_and_a_cancel_agree_on_one_fate(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(PLAIN)
        claimed = await stand.claim_one()
        release = Release(fence=claimed.fence, reason="SIGTERM")
        return {"A": lambda store, _db: store.release([release]), "B": cancel(claimed.job_id), "C": claim("c")}

    async for order in explorer.walk(arrange, switches=FEW):
        assert isinstance(order.results["B"], Cancelled), f"{order}"
        await check(stand, order)


async def test_a_job_that_comes_due_is_claimed_or_cancelled(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        [job_id] = await stand.add(JobSpec(kind="plain", run_in=timedelta(seconds=5)))
        await stand.advance(6)
        return {"A": claim("a"), "B": cancel(job_id)}

    async for order in explorer.walk(arrange):
        assert isinstance(order.results["B"], Cancelled), f"{order}"
        await check(stand, order)


@pytest.mark.parametrize("outcome", [WELL, BADLY, Failed(error={}, retry_in=5), Succeeded(spawn=[AFTER])])
async def test_a_request_that_is_sent_twice_at_once_ends_its_jobs_once(
    explorer: Explorer, stand: Stand, outcome: Outcome
) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(PLAIN, PLAIN)
        left, right = await stand.claim(limit=2)
        return {"A": finish(left, right, outcome=outcome), "B": finish(right, left, outcome=outcome)}

    async for order in explorer.walk(arrange):
        answers = sorted(map(tuple, order.results.values()))
        assert Verdict.STALE not in (*answers[0], *answers[1]), f"{order}"
        assert (Verdict.REPEATED, Verdict.REPEATED) in answers, f"{order}"
        assert await count(stand, "once") == (2 if isinstance(outcome, Succeeded) and outcome.spawn else 0)
        await check(stand, order)


async def test_an_exchange_that_is_sent_twice_at_once_claims_no_job_twice(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(*[PLAIN] * 4)
        ending = Ending(fence=(await stand.claim_one()).fence, outcome=WELL)

        def script(store: PgJobStore, _db: TappedDb) -> Awaitable[object]:
            return store.exchange([ending], "w", ["default"], 2)

        return {"A": script, "B": script}

    async for order in explorer.walk(arrange):
        taken = [c.job_id for r in order.results.values() for c in r.claimed]
        assert len(taken) == len(set(taken)) == 3, f"{order}"
        await check(stand, order)


async def test_progress_and_ends_of_the_same_jobs_do_not_deadlock(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.add(PLAIN, PLAIN, PLAIN)
        held = await stand.claim(limit=3)
        updates = [ProgressUpdate(fence=c.fence, progress={"rows": 1}) for c in reversed(held)]
        endings = [
            Ending(fence=held[0].fence, outcome=WELL),
            Ending(fence=held[1].fence, outcome=BADLY),
            Ending(fence=held[2].fence, outcome=Failed(error={}, retry_in=5)),
        ]
        return {"A": lambda store, _db: store.progress(updates), "B": lambda store, _db: store.finish(endings)}

    async for order in explorer.walk(arrange):
        await check(stand, order)


async def test_a_fenced_transaction_is_whole_or_refused_beside_a_cancel_and_the_reaper(
    explorer: Explorer, stand: Stand
) -> None:
    await stand.eye.execute("CREATE TABLE IF NOT EXISTS penstock.proof_note (job_id bigint, note text)")
    write = parse("note", "INSERT INTO penstock.proof_note VALUES (:job_id, :note)")

    async def arrange() -> Mapping[str, Script]:
        await stand.eye.execute("DELETE FROM penstock.proof_note")
        await stand.add(PLAIN)
        claimed = await stand.claim_one()
        await stand.advance(LEASE + 1)

        async def noting(store: PgJobStore, _db: TappedDb) -> str:
            async with store.fenced_transaction(claimed.fence) as tx:
                await tx.fetch(write, job_id=claimed.job_id, note="one")
                await tx.fetch(write, job_id=claimed.job_id, note="two")
            return "written"

        return {"A": noting, "B": cancel(claimed.job_id), "C": reap()}

    async for order in explorer.walk(arrange, switches=FEW):
        notes = await stand.eye.fetchval("SELECT count(*) FROM penstock.proof_note")
        assert notes == (2 if order.results["A"] == "written" else 0), f"{order}"
        assert order.results["A"] == "written" or isinstance(order.results["A"], StaleAttempt), f"{order}"
        assert isinstance(order.results["B"], Cancelled), f"{order}"
        await check(stand, order)


async def test_two_schedulers_make_one_job_of_a_tick(explorer: Explorer, stand: Stand) -> None:
    metrics = LoopMetrics(CollectorRegistry())

    async def arrange() -> Mapping[str, Script]:
        await Schedules(stand.db, stand.store).put(Schedule(name="s", cron="0 * * * *", spec=PLAIN))
        await stand.advance(3600)

        def tick(store: PgJobStore, db: TappedDb) -> Awaitable[object]:
            return Scheduler(db, store, every=1, metrics=metrics).run_once()

        return {"A": tick, "B": tick}

    async for order in explorer.walk(arrange):
        assert await count(stand, "plain") == 1, f"{order}"
        await check(stand, order)


async def test_two_reapers_reap_a_job_once(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        await stand.store.open_group(GroupSpec(name="g", on_failure=[AFTER]), [JobSpec(kind="once", queue="q"), PLAIN])
        await stand.store.claim("w", ["q"], 1)
        await stand.advance(LEASE + 1)
        return {"A": reap(), "B": reap()}

    async for order in explorer.walk(arrange, switches=FEW):
        reaped = [r for r in order.results.values() if isinstance(r, Reaped)]
        assert sum(r.failed for r in reaped) == 1, f"{order}"
        await check(stand, order)
        assert await count(stand, "once") == 2, f"{order}"


async def test_two_people_who_retry_a_failed_job_get_one_new_job(explorer: Explorer, stand: Stand) -> None:
    async def arrange() -> Mapping[str, Script]:
        [job_id] = await stand.add(JobSpec(kind="plain", lock_key="t"))
        await stand.store.finish([Ending(fence=(await stand.claim_one()).fence, outcome=BADLY)])
        return {name: lambda store, _db: store.retry(job_id, actor="me") for name in "AB"}

    async for order in explorer.walk(arrange):
        a, b = order.results["A"], order.results["B"]
        assert a.job_id == b.job_id, f"{order}"
        await check(stand, order)


async def test_a_job_that_joins_while_the_reaper_looks_at_its_group_is_not_cancelled(database: str) -> None:
    """The reaper's statement is held between its snapshot and its lock, which no order of steps can do."""

    async def gate(tx: Tx, fired: Fired) -> None:
        raise ValueError("not yet")

    async with stand_on(database) as stand, Db(database, size=1, settings=ENGINE_SETTINGS) as db:
        stand.store.gates.handle("late", gate)
        group_id, _ = await stand.store.open_group(GroupSpec(name="g", gate="late"), [PLAIN])
        await stand.store.finish([Ending(fence=(await stand.claim_one()).fence, outcome=WELL)])
        await stand.eye.execute(_CLOCK_THAT_HOLDS_THE_REAPER)
        reaper = PgJobStore(db, Kinds(POLICIES))
        await reaper.reap()
        await stand.eye.execute("SELECT pg_advisory_lock(42)")
        reaping = asyncio.create_task(reaper.reap())
        async with asyncio.timeout(20):
            while not await stand.eye.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                assert not reaping.done()
        [joined] = await stand.add(JobSpec(kind="plain", group_id=group_id))
        await stand.eye.execute("SELECT pg_advisory_unlock(42)")
        await reaping
        assert await stand.status(joined) == "READY"


def test_enough_orders_were_walked(explorer: Explorer) -> None:
    assert explorer.orders > 500
