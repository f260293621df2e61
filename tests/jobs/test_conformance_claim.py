from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest

from penstock.jobs import queue_watch
from penstock.jobs.model import JobSpec, Parking, ProgressUpdate, Release, Status
from penstock.kit.errors import InvalidInput
from tests.jobs.conformance import DONE, Subject, beat, done, failed


async def test_the_most_urgent_goes_first_and_then_the_oldest(subject: Subject) -> None:
    low, normal, urgent, normal_too = [await subject.add(priority=p) for p in (9, 5, 0, 5)]
    claimed = await subject.claim(10)
    assert [c.job_id for c in claimed] == [urgent, normal, normal_too, low]


async def test_a_job_that_waited_long_enough_goes_before_a_more_urgent_one(
    subject: Subject,
) -> None:
    old = await subject.add(priority=9)
    await subject.clock.advance(9 * 60 - 10)
    urgent = await subject.add(priority=0)
    await subject.clock.advance(20)
    young = await subject.add(priority=0)
    assert [c.job_id for c in await subject.claim(10)] == [urgent, old, young]


async def test_a_claim_makes_an_attempt_with_a_fence_of_its_own(subject: Subject) -> None:
    job_id = await subject.add()
    claimed = await subject.claim_one(worker="ann")
    assert (claimed.job_id, claimed.attempt_no, claimed.polls, claimed.state) == (
        job_id,
        1,
        0,
        None,
    )
    view = await subject.store.job(job_id)
    assert (view.status, view.worker) == (Status.RUNNING, "ann")
    assert view.lease_until is not None
    [attempt] = view.attempts
    assert (attempt.attempt_id, attempt.how, attempt.ended_at) == (
        claimed.fence.attempt_id,
        "running",
        None,
    )
    await subject.store.release([Release(fence=claimed.fence, reason="")])
    assert (await subject.claim_one()).fence != claimed.fence


async def test_a_claim_takes_no_more_than_its_limit_and_no_job_twice(subject: Subject) -> None:
    ids = [await subject.add() for _ in range(5)]
    first, second = await asyncio.gather(subject.claim(3), subject.claim(3))
    assert sorted(c.job_id for c in [*first, *second]) == ids
    assert len(first) <= 3
    assert len(second) <= 3


async def test_a_claim_of_nothing_is_nothing(subject: Subject) -> None:
    await subject.add()
    assert await subject.claim(0) == []


async def test_a_claim_over_several_queues_begins_with_the_oldest_head(subject: Subject) -> None:
    later = await subject.add(queue="b", priority=5)
    sooner = await subject.add(queue="a", priority=1)
    claimed = await subject.store.claim("w1", ["b", "a", "empty"], 10)
    assert [(c.job_id, c.queue) for c in claimed] == [(sooner, "a"), (later, "b")]
    await subject.add(queue="unheard")
    assert await subject.store.claim("w1", ["a", "b"], 10) == []


async def test_a_claim_that_waits_in_vain_comes_back_empty_in_time(subject: Subject) -> None:
    started = time.monotonic()
    assert await subject.store.claim("w1", ["default"], 1, wait=0.2) == []
    assert time.monotonic() - started >= 0.2


async def test_who_waits_is_woken_and_need_not_look_again(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 25.0)
    for n in range(5):
        waiting = asyncio.create_task(subject.store.claim("w1", ["default"], 1, wait=25))
        await _settled()
        job_id = await subject.add(payload=n)
        async with asyncio.timeout(20):
            [claimed] = await waiting
        assert claimed.job_id == job_id


async def test_a_job_that_comes_between_the_look_and_the_wait_is_not_missed(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An enqueue at every moment of a claim's way: none may have to wait for the next look by
    itself."""
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 25.0)
    for delay in range(12):
        waiting = asyncio.create_task(subject.store.claim("w1", ["default"], 1, wait=25))
        await asyncio.sleep(delay / 1000)
        await subject.plane.enqueue([JobSpec(kind="work")])
        async with asyncio.timeout(20):
            assert len(await waiting) == 1


async def test_one_job_wakes_many_and_is_given_to_one(subject: Subject) -> None:
    waiting = [
        asyncio.create_task(subject.store.claim(f"w{n}", ["default"], 1, wait=0.6))
        for n in range(8)
    ]
    await _settled()
    await subject.add()
    assert sum([len(await w) for w in waiting]) == 1


async def test_many_jobs_wake_everybody_who_waits(subject: Subject) -> None:
    waiting = [
        asyncio.create_task(subject.store.claim(f"w{n}", ["default"], 1, wait=10)) for n in range(8)
    ]
    await _settled()
    await subject.store.enqueue([JobSpec(kind="work")] * 8)
    assert [len(await w) for w in waiting] == [1] * 8


async def test_who_waits_is_woken_when_a_job_that_was_put_off_is_due(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 25.0)
    await subject.add(run_in=timedelta(seconds=0.3))
    async with asyncio.timeout(20):
        assert len(await subject.store.claim("w1", ["default"], 1, wait=25)) == 1


async def test_a_parked_job_keeps_its_state_and_costs_no_attempt(subject: Subject) -> None:
    claimed = await subject.held(max_attempts=1)
    assert await subject.store.park(
        [Parking(fence=claimed.fence, state={"query": "q1"}, wake_in=30)]
    ) == [True]
    assert await subject.status(claimed.job_id) is Status.PARKED
    assert await subject.claim() == []
    await subject.clock.advance(31)
    again = await subject.claim_one(worker="w2")
    assert (again.state, again.polls, again.attempt_no) == ({"query": "q1"}, 1, 1)
    assert await subject.store.finish([done(again)]) == [DONE]


async def test_a_job_that_is_parked_for_no_time_can_be_claimed_at_once(subject: Subject) -> None:
    claimed = await subject.held()
    await subject.store.park([Parking(fence=claimed.fence, state=None, wake_in=0)])
    assert (await subject.claim_one()).state is None


async def test_a_released_job_goes_back_to_its_place_uncounted(subject: Subject) -> None:
    first, second = [await subject.add(max_attempts=1) for _ in range(2)]
    claimed = await subject.claim_one()
    assert await subject.store.release([Release(fence=claimed.fence, reason="SIGTERM")]) == [True]
    again = await subject.claim(2)
    assert [c.job_id for c in again] == [first, second]
    assert again[0].attempt_no == 1
    history = (await subject.store.job(first)).attempts
    assert [(a.how, a.detail) for a in history if a.how == "released"] == [
        ("released", {"reason": "SIGTERM"})
    ]


async def test_a_retry_comes_after_its_pause_and_counts(subject: Subject) -> None:
    claimed = await subject.held(max_attempts=2)
    await subject.store.finish([failed(claimed, {"code": "FLAKY"}, retry_in=30)])
    assert await subject.claim() == []
    await subject.clock.advance(31)
    assert (await subject.claim_one()).attempt_no == 2


async def test_a_lapsed_lease_gives_the_job_to_another(subject: Subject) -> None:
    claimed = await subject.held()
    await subject.lapse()
    again = await subject.claim_one(worker="w2")
    assert (again.job_id, again.attempt_no) == (claimed.job_id, 2)
    assert [a.how for a in (await subject.store.job(again.job_id)).attempts] == [
        "lapsed",
        "running",
    ]


async def test_a_job_whose_attempts_are_used_up_fails(subject: Subject) -> None:
    claimed = await subject.held(kind="once")
    await subject.lapse()
    view = await subject.store.job(claimed.job_id)
    assert (view.status, view.error["code"]) == (Status.FAILED, "ATTEMPTS_USED_UP")
    assert await subject.claim() == []


async def test_a_renewed_lease_does_not_lapse(subject: Subject) -> None:
    claimed = await subject.held()
    await subject.clock.advance(50)
    renewal = await subject.store.renew(beat(claimed.fence))
    assert (list(renewal.lost), list(renewal.cancelled)) == ([], [])
    await subject.clock.advance(50)
    assert (await subject.plane.reap()).total == 0
    assert await subject.store.finish([done(claimed)]) == [DONE]


async def test_progress_is_shown_while_the_job_runs(subject: Subject) -> None:
    claimed = await subject.held()
    assert await subject.store.progress(
        [ProgressUpdate(fence=claimed.fence, progress={"rows": 7})]
    ) == [True]
    assert (await subject.store.job(claimed.job_id)).progress == {"rows": 7}


async def test_a_claim_names_its_queues(subject: Subject) -> None:
    with pytest.raises(InvalidInput):
        await subject.store.claim("w1", [], 1)


async def _settled() -> None:
    """Long enough for a claim to have looked, found nothing and begun to wait."""
    await asyncio.sleep(0.05)


async def test_workers_without_a_handler_are_counted_until_one_has_it(subject: Subject) -> None:
    await subject.add()
    counts = []
    for unhandled in (True, True, False, True):
        claimed = await subject.claim_one()
        counts.append((claimed.polls, claimed.unhandled))
        parking = Parking(fence=claimed.fence, state=claimed.state, wake_in=0, unhandled=unhandled)
        assert await subject.store.park([parking]) == [True]
    assert counts == [(0, 0), (1, 1), (2, 2), (3, 0)]
