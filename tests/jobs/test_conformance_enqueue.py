from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.jobs.model import GroupSpec, JobSpec, Status
from penstock.kit.errors import Conflict, Draining, InvalidInput, InvalidState, ResourceLocked
from tests.jobs.conformance import DONE, Subject, done, failed

EVERYTHING = {
    "text": "Grüße, 水, 🌊",
    "deep": [{"a": [1, 2.5, None, True]}],
    "big": 2**53,
    "backslash": "\\u0000",
}


async def test_jobs_come_back_in_their_order_with_ids_of_their_own(subject: Subject) -> None:
    added = await subject.store.enqueue([JobSpec(kind="work", payload={"n": n}) for n in range(5)])
    assert all(a.created for a in added)
    assert len({a.job_id for a in added}) == 5
    claimed = await subject.claim(10)
    assert [(c.job_id, c.payload["n"]) for c in claimed] == [
        (a.job_id, n) for n, a in enumerate(added)
    ]


async def test_an_empty_batch_makes_nothing(subject: Subject) -> None:
    assert await subject.store.enqueue([]) == []


async def test_what_a_spec_says_is_what_its_claimer_and_its_reader_get(subject: Subject) -> None:
    spec = JobSpec(
        kind="work",
        payload=EVERYTHING,
        queue="special",
        priority=3,
        max_attempts=7,
        timeout=timedelta(seconds=90),
        deadline_in=timedelta(hours=1),
        lock_key="table:a",
        unique_key="a-1",
        created_by="ann",
        trace="00-abc-01",
    )
    [added] = await subject.store.enqueue([spec])
    claimed = await subject.claim_one(queue="special")
    assert claimed.payload == EVERYTHING
    assert (claimed.kind, claimed.queue, claimed.max_attempts) == ("work", "special", 7)
    assert (claimed.lock_key, claimed.trace, claimed.lease_seconds) == ("table:a", "00-abc-01", 60)
    assert 80 < claimed.seconds_left <= 90
    view = await subject.store.job(added.job_id)
    assert view == await subject.plane.job(added.job_id)
    assert (view.payload, view.created_by, view.unique_key, view.status) == (
        EVERYTHING,
        "ann",
        "a-1",
        Status.RUNNING,
    )


async def test_a_payload_may_be_any_json(subject: Subject) -> None:
    for payload in (None, [], "text", 7, {"nested": {}}):
        assert (await subject.held(payload=payload)).payload == payload


async def test_one_bad_spec_refuses_the_whole_batch(subject: Subject) -> None:
    with pytest.raises(InvalidInput, match="nonsense"):
        await subject.store.enqueue([JobSpec(kind="work"), JobSpec(kind="nonsense")])
    assert await subject.claim(10) == []


async def test_a_unique_key_makes_one_job_also_within_a_batch_and_after_its_end(
    subject: Subject,
) -> None:
    spec = JobSpec(kind="work", unique_key="only")
    first, twin = await subject.store.enqueue([spec, spec])
    assert (first.created, twin.created, twin.job_id) == (True, False, first.job_id)
    await subject.store.finish([done(await subject.claim_one())])
    [again] = await subject.store.enqueue([spec])
    assert (again.created, again.job_id) == (False, first.job_id)
    assert await subject.claim(10) == []


async def test_a_lock_has_one_holder_who_is_named(subject: Subject) -> None:
    holder = await subject.add(lock_key="table:a", created_by="ann")
    with pytest.raises(ResourceLocked, match="table:a") as refused:
        await subject.add(lock_key="table:a")
    assert refused.value.details["lock_key"] == "table:a"
    assert refused.value.details["holder_job_id"] == holder
    assert refused.value.details["holder_name"] == "ann"
    assert refused.value.hint
    await subject.add(lock_key="table:b")


@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled", "lapsed"])
async def test_a_lock_is_free_once_its_job_is_over(subject: Subject, end: str) -> None:
    claimed = await subject.held(kind="once", lock_key="t")
    match end:
        case "succeeded":
            await subject.store.finish([done(claimed)])
        case "failed":
            await subject.store.finish([failed(claimed)])
        case "cancelled":
            await subject.store.cancel(claimed.job_id, actor="ann")
        case "lapsed":
            await subject.lapse()
    await subject.add(lock_key="t")


async def test_a_lock_is_kept_while_its_job_waits_for_another_attempt(subject: Subject) -> None:
    claimed = await subject.held(lock_key="t")
    await subject.store.finish([failed(claimed, retry_in=5)])
    with pytest.raises(ResourceLocked):
        await subject.add(lock_key="t")
    await subject.clock.advance(6)
    claimed = await subject.claim_one()
    assert await subject.store.finish([done(claimed)]) == [DONE]


async def test_two_jobs_of_one_call_cannot_want_one_lock(subject: Subject) -> None:
    with pytest.raises(Conflict):
        await subject.store.enqueue([JobSpec(kind="work", lock_key="t")] * 2)
    assert await subject.claim(10) == []


async def test_a_job_that_is_put_off_is_not_claimed_before_its_time(subject: Subject) -> None:
    job_id = await subject.add(run_in=timedelta(seconds=30))
    assert await subject.claim() == []
    assert await subject.status(job_id) is Status.SCHEDULED
    await subject.clock.advance(31)
    assert (await subject.claim_one()).job_id == job_id


async def test_a_job_that_waited_past_its_deadline_fails(subject: Subject) -> None:
    job_id = await subject.add(deadline_in=timedelta(seconds=10))
    await subject.clock.advance(11)
    await subject.plane.reap()
    view = await subject.store.job(job_id)
    assert (view.status, view.error["code"]) == (Status.FAILED, "DEADLINE_EXCEEDED")


async def test_a_group_that_is_not_there_cannot_be_joined(subject: Subject) -> None:
    with pytest.raises(InvalidState, match="Group 99"):
        await subject.add(group_id=99)


async def test_a_group_can_be_joined_while_it_is_open(subject: Subject) -> None:
    group_id, [first] = await subject.plane.open_group(
        GroupSpec(name="g", on_success=[JobSpec(kind="elsewhere")]), [JobSpec(kind="work")]
    )
    second = await subject.add(group_id=group_id)
    claimed = await subject.claim(2)
    assert [c.job_id for c in claimed] == [first.job_id, second]
    await subject.store.finish([done(claimed[0])])
    assert await subject.claim(queue="other") == []
    await subject.store.finish([done(claimed[1])])
    await subject.claim_one(queue="other")


async def test_draining_refuses_new_jobs_and_lets_the_old_ones_go_on(subject: Subject) -> None:
    job_id = await subject.add()
    await subject.plane.drain(True, actor="ann", reason="upgrade")
    with pytest.raises(Draining) as refused:
        await subject.add()
    assert refused.value.retryable
    claimed = await subject.claim_one()
    assert claimed.job_id == job_id
    spawned = JobSpec(kind="work", payload="spawned")
    assert await subject.store.finish([done(claimed, spawn=[spawned])]) == [DONE]
    assert (await subject.claim_one()).payload == "spawned"
    await subject.plane.drain(False, actor="ann")
    await subject.add()
