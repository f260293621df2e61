"""Every order in which two want the same name or the same lock: one has it, the other is told, and
no deadlock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from penstock.jobs.model import (
    Ending,
    GroupSpec,
    JobSpec,
    Succeeded,
    Verdict,
)
from penstock.jobs.scheduler import Schedule, Scheduler, Schedules
from penstock.kit.errors import Conflict
from penstock.kit.loop import LoopMetrics
from tests.proof.scripts import BADLY, PLAIN, cancel, check, count, enqueue, finish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from penstock.jobs.store import PgJobStore
    from tests.proof.explorer import Explorer, Script
    from tests.proof.tapped import TappedDb


async def test_one_unique_key_makes_one_job(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        spec = JobSpec(kind="plain", unique_key="u")
        return {"A": enqueue(spec), "B": enqueue(spec)}

    async for order in explorer.walk(arrange):
        [a], [b] = order.results["A"], order.results["B"]
        assert a.job_id == b.job_id, f"{order}"
        assert [a.created, b.created].count(True) == 1, f"{order}"
        await check(proof_db, order)


async def test_batches_that_name_the_same_keys_in_opposite_orders_do_not_deadlock(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        first = [JobSpec(kind="plain", unique_key="u1"), JobSpec(kind="once", lock_key="l1")]
        return {"A": enqueue(*first), "B": enqueue(*reversed(first))}

    async for order in explorer.walk(arrange):
        assert any(isinstance(r, Conflict) for r in order.results.values()), f"{order}"
        await check(proof_db, order)


async def test_a_lock_passes_from_its_holder_to_the_next_or_the_next_is_refused(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(JobSpec(kind="plain", lock_key="t"))
        claimed = await proof_db.claim_one()
        return {"A": finish(claimed), "B": enqueue(JobSpec(kind="plain", lock_key="t"))}

    async for order in explorer.walk(arrange):
        assert order.results["A"] == [Verdict.DONE], f"{order}"
        assert isinstance(order.results["B"], list | Conflict), f"{order}"
        await check(proof_db, order)


async def test_a_lock_that_is_taken_again_within_one_group_does_not_deadlock(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        spec = JobSpec(kind="plain", lock_key="t")
        group_id, _ = await proof_db.store.open_group(GroupSpec(name="g"), [spec, PLAIN])
        claimed = next(c for c in await proof_db.claim(limit=2) if c.lock_key)
        return {
            "A": finish(claimed),
            "B": enqueue(JobSpec(kind="plain", lock_key="t", group_id=group_id)),
        }

    async for order in explorer.walk(arrange):
        assert isinstance(order.results["B"], list | Conflict), f"{order}"
        await check(proof_db, order)


async def test_a_spawn_that_wants_the_lock_of_a_member_that_is_cancelled_does_not_deadlock(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        spec = JobSpec(kind="plain", lock_key="t")
        group_id, [first, _] = await proof_db.store.open_group(GroupSpec(name="g"), [spec, PLAIN])
        plan = next(c for c in await proof_db.claim(limit=2) if not c.lock_key)
        chunk = JobSpec(kind="plain", lock_key="t", group_id=group_id)
        return {"A": finish(plan, outcome=Succeeded(spawn=[chunk])), "B": cancel(first.job_id)}

    async for order in explorer.walk(arrange):
        await check(proof_db, order)


async def test_two_schedulers_make_one_job_of_a_tick(explorer: Explorer) -> None:
    proof_db = explorer.proof_db
    metrics = LoopMetrics(CollectorRegistry())

    async def arrange() -> Mapping[str, Script]:
        await Schedules(proof_db.db, proof_db.store).put(
            Schedule(name="s", cron="0 * * * *", spec=PLAIN)
        )
        await proof_db.advance(3600)

        def tick(store: PgJobStore, db: TappedDb) -> Awaitable[object]:
            return Scheduler(db, store, every=1, metrics=metrics).run_once()

        return {"A": tick, "B": tick}

    async for order in explorer.walk(arrange):
        assert await count(proof_db, "plain") == 1, f"{order}"
        await check(proof_db, order)


async def test_two_people_who_retry_a_failed_job_get_one_new_job(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        [job_id] = await proof_db.add(JobSpec(kind="plain", lock_key="t"))
        await proof_db.store.finish(
            [Ending(fence=(await proof_db.claim_one()).fence, outcome=BADLY)]
        )
        return {name: lambda store, _db: store.retry(job_id, actor="me") for name in "AB"}

    async for order in explorer.walk(arrange):
        a, b = order.results["A"], order.results["B"]
        assert a.job_id == b.job_id, f"{order}"
        await check(proof_db, order)
