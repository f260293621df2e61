from __future__ import annotations

import asyncio

import pytest

from penstock.jobs.model import GroupSpec, JobSpec, Parking, Status
from penstock.kit.errors import InvalidState, NotFound
from tests.jobs.conformance import (
    DONE,
    REPEATED,
    RETRYING,
    SESSION,
    STALE,
    Subject,
    beat,
    done,
    failed,
)


async def test_a_result_is_kept(subject: Subject) -> None:
    claimed = await subject.held()
    assert await subject.store.finish([done(claimed, {"rows": 7})]) == [DONE]
    view = await subject.store.job(claimed.job_id)
    assert (view.status, view.result, view.error) == (Status.SUCCEEDED, {"rows": 7}, None)
    assert view.finished_at is not None
    [attempt] = view.attempts
    assert (attempt.attempt_id, attempt.how) == (claimed.fence.attempt_id, "succeeded")


async def test_a_failure_is_kept(subject: Subject) -> None:
    claimed = await subject.held()
    assert await subject.store.finish([failed(claimed, {"code": "BAD"})]) == [DONE]
    view = await subject.store.job(claimed.job_id)
    assert (view.status, view.result, view.error) == (Status.FAILED, None, {"code": "BAD"})


async def test_a_failure_without_attempts_left_is_final_whatever_it_asks(subject: Subject) -> None:
    claimed = await subject.held(kind="once")
    assert await subject.store.finish([failed(claimed, retry_in=1)]) == [DONE]
    assert await subject.status(claimed.job_id) is Status.FAILED


async def test_an_empty_batch_of_anything_is_answered_with_nothing(subject: Subject) -> None:
    assert await subject.store.finish([]) == []
    assert await subject.store.progress([]) == []
    assert await subject.store.park([]) == []
    assert await subject.store.release([]) == []
    renewal = await subject.store.renew(beat())
    assert (list(renewal.lost), list(renewal.cancelled)) == ([], [])
    exchanged = await subject.store.exchange([], "w1", ["default"], 1)
    assert (list(exchanged.verdicts), list(exchanged.claimed)) == ([], [])


async def test_an_end_that_is_written_again_is_a_repetition_and_the_first_one_stands(
    subject: Subject,
) -> None:
    claimed = await subject.held()
    assert await subject.store.finish([done(claimed, 1)]) == [DONE]
    assert await subject.store.finish([done(claimed, 2)]) == [REPEATED]
    assert await subject.store.finish([failed(claimed)]) == [REPEATED]
    assert (await subject.store.job(claimed.job_id)).result == 1


async def test_a_retry_that_is_asked_for_again_is_still_a_retry_and_no_end(
    subject: Subject,
) -> None:
    claimed = await subject.held()
    assert await subject.store.finish([failed(claimed, retry_in=1)]) == [RETRYING]
    assert await subject.store.finish([failed(claimed, retry_in=1)]) == [RETRYING]


async def test_verdicts_come_in_the_order_of_the_endings(subject: Subject) -> None:
    for _ in range(4):
        await subject.add()
    good, bad, again, gone = await subject.claim(4)
    await subject.store.cancel(gone.job_id, actor="ann")
    endings = [done(gone), failed(again, retry_in=1), done(good), failed(bad)]
    assert await subject.store.finish(endings) == [STALE, RETRYING, DONE, DONE]


async def test_an_exchange_ends_and_claims_at_once(subject: Subject) -> None:
    first, second = [await subject.add() for _ in range(2)]
    claimed = await subject.claim_one()
    exchanged = await subject.store.exchange([done(claimed)], "w1", ["default"], 5)
    assert list(exchanged.verdicts) == [DONE]
    assert [c.job_id for c in exchanged.claimed] == [second]
    assert await subject.status(first) is Status.SUCCEEDED


async def test_an_exchange_writes_its_ends_before_it_waits(subject: Subject) -> None:
    claimed = await subject.held()
    waiting = asyncio.create_task(
        subject.store.exchange([done(claimed)], "w1", ["default"], 1, wait=10)
    )
    await subject.until(claimed.job_id, Status.SUCCEEDED)
    assert not waiting.done()
    job_id = await subject.add()
    exchanged = await waiting
    assert list(exchanged.verdicts) == [DONE]
    assert [c.job_id for c in exchanged.claimed] == [job_id]


async def test_what_an_end_spawns_comes_with_it_and_only_once(subject: Subject) -> None:
    claimed = await subject.held()
    spawn = [JobSpec(kind="work", payload=n) for n in range(3)]
    assert await subject.store.finish([done(claimed, spawn=spawn)]) == [DONE]
    assert await subject.store.finish([done(claimed, spawn=spawn)]) == [REPEATED]
    assert [c.payload for c in await subject.claim(10)] == [0, 1, 2]


async def test_a_stale_end_spawns_nothing(subject: Subject) -> None:
    claimed = await subject.held()
    await subject.store.cancel(claimed.job_id, actor="ann")
    assert await subject.store.finish([done(claimed, spawn=[JobSpec(kind="work")])]) == [STALE]
    assert await subject.claim(10) == []


async def test_the_last_end_of_a_group_opens_what_follows_once(subject: Subject) -> None:
    group = GroupSpec(name="g", on_success=[JobSpec(kind="elsewhere", payload="after")])
    await subject.plane.open_group(group, [JobSpec(kind="work")] * 6)
    claimed = await subject.claim(6)
    await asyncio.gather(*(subject.store.finish([done(c)]) for c in claimed))
    assert [c.payload for c in await subject.claim(10, queue="other")] == ["after"]


async def test_a_group_waits_for_what_its_members_spawn(subject: Subject) -> None:
    group = GroupSpec(name="g", on_success=[JobSpec(kind="elsewhere")])
    group_id, _ = await subject.plane.open_group(group, [JobSpec(kind="work")])
    plan = await subject.claim_one()
    assert plan.group_id == group_id
    await subject.store.finish([done(plan, spawn=[JobSpec(kind="work", group_id=group_id)])])
    assert await subject.claim(queue="other") == []
    await subject.store.finish([done(await subject.claim_one())])
    await subject.claim_one(queue="other")


async def test_a_member_that_fails_ends_the_waiting_ones_and_opens_the_other_way(
    subject: Subject,
) -> None:
    group = GroupSpec(
        name="g",
        on_success=[JobSpec(kind="elsewhere", payload="good")],
        on_failure=[JobSpec(kind="elsewhere", payload="bad")],
    )
    _, [_, running, waiting] = await subject.plane.open_group(group, [JobSpec(kind="work")] * 3)
    broken, other = await subject.claim(2)
    assert other.job_id == running.job_id
    await subject.store.finish([failed(broken)])
    assert await subject.status(waiting.job_id) is Status.CANCELLED
    assert await subject.claim(queue="other") == []
    assert await subject.store.finish([done(other)]) == [DONE]
    assert [c.payload for c in await subject.claim(10, queue="other")] == ["bad"]


@pytest.mark.parametrize("state", ["ready", "running", "parked", "retrying"])
async def test_a_cancel_ends_a_job_whatever_it_is_doing(subject: Subject, state: str) -> None:
    job_id = await subject.add()
    if state != "ready":
        claimed = await subject.claim_one()
        if state == "parked":
            await subject.store.park([Parking(fence=claimed.fence, state={}, wake_in=1)])
        if state == "retrying":
            await subject.store.finish([failed(claimed, retry_in=1)])
    cancelled = await subject.store.cancel(job_id, actor="ann", reason="a change of mind")
    assert (cancelled.job_id, cancelled.newly) == (job_id, True)
    view = await subject.store.job(job_id)
    assert (view.status, view.error["message"]) == (Status.CANCELLED, "a change of mind")
    await subject.clock.advance(3600)
    await subject.plane.reap()
    assert await subject.claim(10) == []
    assert await subject.status(job_id) is Status.CANCELLED


async def test_a_second_cancel_changes_nothing(subject: Subject) -> None:
    job_id = await subject.add()
    await subject.store.cancel(job_id, actor="ann", reason="first")
    assert (await subject.store.cancel(job_id, actor="bob", reason="second")).newly is False
    assert (await subject.store.job(job_id)).error["message"] == "first"


async def test_what_is_over_cannot_be_cancelled(subject: Subject) -> None:
    claimed = await subject.held()
    await subject.store.finish([done(claimed)])
    with pytest.raises(InvalidState) as refused:
        await subject.store.cancel(claimed.job_id, actor="ann")
    assert refused.value.details == {"status": "succeeded"}


async def test_a_job_that_is_not_there_is_not_found(subject: Subject) -> None:
    for job_id in (999, 2**53 - 1):
        with pytest.raises(NotFound):
            await subject.store.job(job_id)
        with pytest.raises(NotFound):
            await subject.store.cancel(job_id, actor="ann")


async def test_a_worker_is_listed_from_its_first_beat_to_its_farewell(subject: Subject) -> None:
    await subject.store.renew(beat(worker="ann"))
    assert await subject.workers() == ["ann"]
    await subject.store.farewell("ann", SESSION)
    assert await subject.workers() == []
