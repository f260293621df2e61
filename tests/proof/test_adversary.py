"""One hostile request at a time: what a clumsy caller, a broken handler or a long outage could do
to the kernel."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from penstock.jobs.gates import GATE_PAUSE
from penstock.jobs.model import (
    Ending,
    Failed,
    Fence,
    GroupSpec,
    JobSpec,
    Parking,
    Release,
    Succeeded,
    Verdict,
)
from penstock.jobs.scheduler import LONGEST_PAUSE, Schedule, Scheduler, Schedules, Ticked
from penstock.kit.errors import InvalidInput, ResourceLocked
from penstock.kit.loop import LoopMetrics
from tests.proof.proof_db import LEASE, TIMEOUT, beat

if TYPE_CHECKING:
    from penstock.jobs.gates import Fired
    from penstock.kit.db import Tx
    from tests.proof.proof_db import ProofDatabase


async def test_an_ending_that_comes_twice_in_one_batch_spawns_once(proof_db: ProofDatabase) -> None:
    await proof_db.add(JobSpec(kind="plain"))
    plan = await proof_db.claim_one()
    ending = Ending(fence=plan.fence, outcome=Succeeded(spawn=[JobSpec(kind="once")]))
    assert await proof_db.store.finish([ending, ending]) == [Verdict.DONE, Verdict.REPEATED]
    assert len(await proof_db.claim(limit=10)) == 1


async def test_of_two_endings_in_one_batch_the_first_one_stands(proof_db: ProofDatabase) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="plain"))
    plan = await proof_db.claim_one()
    failed = Ending(fence=plan.fence, outcome=Failed(error={"code": "BAD"}))
    succeeded = Ending(fence=plan.fence, outcome=Succeeded(spawn=[JobSpec(kind="once")]))
    assert await proof_db.store.finish([failed, succeeded]) == [Verdict.DONE, Verdict.REPEATED]
    assert await proof_db.status(job_id) == "FAILED"
    assert await proof_db.claim(limit=10) == []


async def test_a_plan_that_ends_well_in_a_failing_group_ends_and_its_chunks_are_not_begun(
    proof_db: ProofDatabase,
) -> None:
    group_id, [left, right] = await proof_db.store.open_group(
        GroupSpec(name="g", on_failure=[JobSpec(kind="once")]),
        [JobSpec(kind="plain"), JobSpec(kind="plain")],
    )
    first, second = await proof_db.claim(limit=2)
    await proof_db.store.finish([Ending(fence=first.fence, outcome=Failed(error={"code": "BAD"}))])
    chunk = JobSpec(kind="plain", group_id=group_id)
    verdicts = await proof_db.store.finish(
        [Ending(fence=second.fence, outcome=Succeeded(spawn=[chunk]))]
    )
    assert verdicts == [Verdict.DONE]
    assert {await proof_db.status(left.job_id), await proof_db.status(right.job_id)} == {
        "FAILED",
        "SUCCEEDED",
    }
    assert [c.kind for c in await proof_db.claim(limit=10)] == ["once"]


async def test_a_gate_handler_that_is_broken_in_any_way_does_not_undo_the_end_nor_stop_the_reaper(
    proof_db: ProofDatabase,
) -> None:
    fail = True

    async def gate(tx: Tx, fired: Fired) -> None:
        if fail:
            raise AttributeError("a bug in a handler")

    proof_db.store.gates.handle("broken", gate)
    _, [member] = await proof_db.store.open_group(
        GroupSpec(name="g", gate="broken"), [JobSpec(kind="plain")]
    )
    claimed = await proof_db.claim_one()
    assert await proof_db.store.finish([Ending(fence=claimed.fence, outcome=Succeeded())]) == [
        Verdict.DONE
    ]
    assert await proof_db.status(member.job_id) == "SUCCEEDED"
    await proof_db.advance(GATE_PAUSE)
    assert (await proof_db.store.reap()).groups_fired == 0
    fail = False
    assert (await proof_db.store.reap()).groups_fired == 0, "it is looked at again after a pause"
    await proof_db.advance(GATE_PAUSE)
    assert (await proof_db.store.reap()).groups_fired == 1


async def test_what_a_gate_opens_may_begin_at_once_or_later(proof_db: ProofDatabase) -> None:
    spec = JobSpec(kind="once", run_in=timedelta(0), deadline_in=timedelta(seconds=30))
    await proof_db.store.open_group(GroupSpec(name="g", on_success=[spec]), [JobSpec(kind="plain")])
    claimed = await proof_db.claim_one()
    await proof_db.store.finish([Ending(fence=claimed.fence, outcome=Succeeded())])
    assert [c.kind for c in await proof_db.claim()] == ["once"]


async def test_a_group_whose_follow_up_could_never_be_enqueued_is_refused_when_it_is_opened(
    proof_db: ProofDatabase,
) -> None:
    with pytest.raises(InvalidInput):
        await proof_db.store.open_group(
            GroupSpec(name="g", on_failure=[JobSpec(kind="once", priority=77)]),
            [JobSpec(kind="plain")],
        )


async def test_a_parked_job_with_a_large_payload_and_a_large_state_can_be_cancelled(
    proof_db: ProofDatabase,
) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="remote", payload={"x": "p" * 700_000}))
    claimed = await proof_db.claim_one()
    await proof_db.store.park([Parking(fence=claimed.fence, state={"y": "s" * 700_000}, wake_in=5)])
    assert (await proof_db.store.cancel(job_id, actor="me")).newly
    [sweep] = await proof_db.claim()
    assert sweep.kind == "sweep"
    assert len(sweep.payload["state"]["y"]) == 700_000


async def test_a_clean_up_kind_that_is_gone_does_not_keep_a_job_alive(
    proof_db: ProofDatabase,
) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="remote"))
    claimed = await proof_db.claim_one()
    await proof_db.store.park([Parking(fence=claimed.fence, state={}, wake_in=5)])
    await proof_db.eye.execute("UPDATE penstock.job SET cleanup_kind = 'of_another_release'")
    assert (await proof_db.store.cancel(job_id, actor="me")).newly


async def test_a_refused_enqueue_leaves_nothing_in_the_callers_transaction(
    proof_db: ProofDatabase,
) -> None:
    [holder] = await proof_db.add(JobSpec(kind="plain", lock_key="t"))
    async with proof_db.db.transaction() as tx:
        with pytest.raises(ResourceLocked):
            await proof_db.store.enqueue(
                [JobSpec(kind="once"), JobSpec(kind="plain", lock_key="t")], tx=tx
            )
    assert [c.job_id for c in await proof_db.claim(limit=10)] == [holder]


async def test_a_worker_that_vanished_during_a_long_outage_costs_one_attempt_not_the_job(
    proof_db: ProofDatabase,
) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="plain"))
    await proof_db.claim_one()
    await proof_db.advance(10 * TIMEOUT)
    assert (await proof_db.store.reap()).requeued == 1
    assert await proof_db.status(job_id) == "READY"


async def test_a_job_whose_worker_renews_up_to_the_timeout_fails_at_the_timeout(
    proof_db: ProofDatabase,
) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="plain"))
    claimed = await proof_db.claim_one()
    for _ in range(TIMEOUT // LEASE * 2):
        await proof_db.advance(LEASE / 2)
        await proof_db.store.renew(beat(claimed.fence))
    assert (await proof_db.store.reap()).failed == 1
    assert (await proof_db.store.job(job_id)).error["code"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize(
    "survives", [0, LEASE / 2, TIMEOUT - LEASE - 1, TIMEOUT - LEASE / 2, TIMEOUT - 1]
)
async def test_a_worker_that_vanishes_at_any_time_costs_one_attempt(
    proof_db: ProofDatabase, survives: float
) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="plain"))
    claimed = await proof_db.claim_one()
    alive_for = 0.0
    while alive_for < survives:
        step = min(LEASE / 2, survives - alive_for)
        alive_for += step
        await proof_db.advance(step)
        await proof_db.store.renew(beat(claimed.fence))
    await proof_db.advance(LEASE + 1)
    assert (await proof_db.store.reap()).requeued == 1
    again = await proof_db.claim_one()
    assert (again.job_id, again.attempt_no) == (job_id, 2)
    assert again.seconds_left == TIMEOUT


async def test_a_timeout_that_is_shorter_than_the_lease_does_not_cost_the_retries(
    proof_db: ProofDatabase,
) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="brief"))
    for _ in range(2):
        await proof_db.claim_one()
        await proof_db.advance(LEASE + 1)
        await proof_db.store.reap()
    assert (await proof_db.store.job(job_id)).error["code"] == "ATTEMPTS_USED_UP"


async def test_a_worker_that_is_heard_of_after_a_short_timeout_ran_out_of_time(
    proof_db: ProofDatabase,
) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="brief"))
    claimed = await proof_db.claim_one()
    await proof_db.advance(29)
    await proof_db.store.renew(beat(claimed.fence))
    assert (await proof_db.store.reap()).failed == 0
    await proof_db.advance(1)
    await proof_db.store.renew(beat(claimed.fence))
    assert (await proof_db.store.reap()).failed == 1
    assert (await proof_db.store.job(job_id)).error["code"] == "DEADLINE_EXCEEDED"


async def test_a_job_past_its_own_deadline_is_not_run_again(proof_db: ProofDatabase) -> None:
    [job_id] = await proof_db.add(JobSpec(kind="plain", deadline_in=timedelta(seconds=LEASE / 2)))
    await proof_db.claim_one()
    await proof_db.advance(LEASE / 2)
    assert (await proof_db.store.reap(vanished=False)).failed == 1
    assert (await proof_db.store.job(job_id)).error["code"] == "DEADLINE_EXCEEDED"


async def test_a_schedule_that_cannot_be_read_does_not_stop_the_others(
    proof_db: ProofDatabase,
) -> None:
    schedules = Schedules(proof_db.db, proof_db.store)
    for name in ("a", "b"):
        await schedules.put(Schedule(name=name, cron="* * * * *", spec=JobSpec(kind="plain")))
    await proof_db.eye.execute(
        """UPDATE penstock.schedule SET spec = '{"kind": "plain", "of_2030": 1}' WHERE name = 'a'"""
    )
    await proof_db.advance(60)
    scheduler = Scheduler(
        proof_db.db, proof_db.store, every=1, metrics=LoopMetrics(CollectorRegistry())
    )
    ticked = await scheduler.run_once()
    assert (ticked.enqueued, ticked.failed) == (1, 1)


async def test_a_renewal_does_not_call_an_attempt_stale_that_ended_by_its_own_hand(
    proof_db: ProofDatabase,
) -> None:
    await proof_db.add(*[JobSpec(kind="plain")] * 4)
    done, parked, released, retried = await proof_db.claim(limit=4)
    await proof_db.store.finish([Ending(fence=done.fence, outcome=Succeeded())])
    await proof_db.store.finish([Ending(fence=retried.fence, outcome=Failed(error={}, retry_in=5))])
    await proof_db.store.park([Parking(fence=parked.fence, state={}, wake_in=5)])
    await proof_db.store.release([Release(fence=released.fence, reason="SIGTERM")])
    fences: list[Fence] = [c.fence for c in (done, parked, released, retried)]
    renewal = await proof_db.store.renew(beat(*fences))
    assert (renewal.lost, renewal.cancelled) == ([], [])


@pytest.mark.parametrize(
    "spec",
    [
        JobSpec(kind="plain", run_in=timedelta.max),
        JobSpec(kind="plain", deadline_in=timedelta.max),
        JobSpec(kind="plain", timeout=timedelta.max),
    ],
)
async def test_a_span_beyond_all_measure_is_refused_in_words(
    proof_db: ProofDatabase, spec: JobSpec
) -> None:
    with pytest.raises(InvalidInput):
        await proof_db.add(spec)


async def test_a_text_that_spells_a_nul_is_stored_and_a_nul_is_refused(
    proof_db: ProofDatabase,
) -> None:
    await proof_db.add(JobSpec(kind="plain", payload={"pattern": r"\u0000"}))
    assert (await proof_db.claim_one()).payload == {"pattern": r"\u0000"}
    with pytest.raises(InvalidInput):
        await proof_db.add(JobSpec(kind="plain", payload={"text": "\x00"}))


async def test_answers_come_in_the_order_of_the_questions_whatever_their_keys(
    proof_db: ProofDatabase,
) -> None:
    [first] = await proof_db.add(JobSpec(kind="plain", unique_key="b"))
    keys = ["c", None, "b", "a"]
    added = await proof_db.store.enqueue(
        [JobSpec(kind="plain", unique_key=key, payload={"key": key}) for key in keys]
    )
    assert [a.created for a in added] == [True, True, False, True]
    assert added[2].job_id == first
    returned = [(await proof_db.store.job(a.job_id)).unique_key for a in added]
    assert returned == keys
    claimed = await proof_db.claim(limit=10)
    assert [c.payload.get("key") for c in claimed] == [None, "c", None, "a"]


async def test_a_job_that_nobody_hurries_is_overtaken_for_nine_minutes_and_no_longer(
    proof_db: ProofDatabase,
) -> None:
    [patient] = await proof_db.add(JobSpec(kind="plain", priority=9))
    turns = 0
    while True:
        turns += 1
        await proof_db.add(JobSpec(kind="plain", priority=0))
        claimed = await proof_db.claim_one()
        if claimed.job_id == patient:
            break
        await proof_db.advance(60)
    assert turns in (10, 11)


BLOCKED = 105


def scheduler(proof_db: ProofDatabase) -> Scheduler:
    return Scheduler(proof_db.db, proof_db.store, every=1, metrics=LoopMetrics(CollectorRegistry()))


async def test_schedules_that_are_blocked_hide_no_other(proof_db: ProofDatabase) -> None:
    schedules = Schedules(proof_db.db, proof_db.store)
    await proof_db.add(JobSpec(kind="plain", lock_key="taken"))
    for n in range(BLOCKED):
        spec = JobSpec(kind="plain", lock_key="taken")
        await schedules.put(Schedule(name=f"blocked{n:03}", cron="* * * * *", spec=spec))
    await proof_db.advance(1)
    await schedules.put(Schedule(name="free", cron="* * * * *", spec=JobSpec(kind="plain")))
    await proof_db.advance(60)
    ticked = await scheduler(proof_db).run_once()
    assert (ticked.enqueued, ticked.failed) == (1, BLOCKED)
    assert await scheduler(proof_db).run_once() == Ticked(), "who was refused waits"


async def test_a_schedule_that_is_blocked_is_kept_soon_after_its_lock_is_free(
    proof_db: ProofDatabase,
) -> None:
    [holder] = await proof_db.add(JobSpec(kind="plain", lock_key="taken"))
    schedule = Schedule(name="s", cron="* * * * *", spec=JobSpec(kind="plain", lock_key="taken"))
    await Schedules(proof_db.db, proof_db.store).put(schedule)
    for _ in range(12):
        await proof_db.advance(LONGEST_PAUSE)
        assert (await scheduler(proof_db).run_once()).failed == 1
    await proof_db.store.cancel(holder, actor="me")
    await proof_db.advance(LONGEST_PAUSE)
    assert (await scheduler(proof_db).run_once()).enqueued == 1


async def test_gates_that_fail_again_and_again_hide_no_overdue_group(
    proof_db: ProofDatabase,
) -> None:
    async def broken(tx: Tx, fired: Fired) -> None:
        raise RuntimeError("a bug")

    proof_db.store.gates.handle("broken", broken)
    for _ in range(10):
        await proof_db.store.open_group(GroupSpec(name="g", gate="broken"), [])
    spec = GroupSpec(name="late", deadline_in=timedelta(seconds=30))
    late, [member] = await proof_db.store.open_group(spec, [JobSpec(kind="plain")])
    await proof_db.advance(GATE_PAUSE)
    assert (await proof_db.store.reap(limit=10)).groups_fired == 0
    await proof_db.advance(30)
    await proof_db.store.reap(limit=10)
    await proof_db.store.reap(limit=10)
    assert await proof_db.status(member.job_id) == "CANCELLED"
    status = "SELECT status FROM penstock.job_group WHERE group_id = $1"
    assert await proof_db.eye.fetchval(status, late) == 11


async def test_a_group_whose_members_all_exist_already_fires(proof_db: ProofDatabase) -> None:
    """As when it was opened before and only the reply was lost."""
    members = [JobSpec(kind="plain", unique_key="u1")]
    await proof_db.store.open_group(GroupSpec(name="first"), members)
    again, [member] = await proof_db.store.open_group(
        GroupSpec(name="again", on_success=[JobSpec(kind="once")]), members
    )
    assert not member.created
    assert (
        await proof_db.eye.fetchval(
            "SELECT status FROM penstock.job_group WHERE group_id = $1", again
        )
        == 10
    )
    assert sorted(c.kind for c in await proof_db.claim(limit=10)) == ["once", "plain"]
