"""SIGTERM, as an orchestrator sends it: state is tidy within two seconds of the grace, whatever the
handlers do."""

from __future__ import annotations

from signal import SIGINT, SIGKILL, SIGTERM
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.model import Status

if TYPE_CHECKING:
    from tests.worker.conftest import Hands, Jobs


async def test_an_idle_worker_leaves_at_once_and_takes_its_name_off_the_list(
    jobs: Jobs, hands: Hands
) -> None:
    hand = await hands.hire(grace_seconds=30)
    await hand.event("worker_started")
    hand.send(SIGTERM)
    assert await hand.exit_code(within=5) == 0
    assert await jobs.workers() == []


async def test_short_work_ends_within_the_grace_and_nothing_new_is_claimed(
    jobs: Jobs, hands: Hands
) -> None:
    hand = await hands.hire(grace_seconds=30, slots=1)
    first = await jobs.add("nap", seconds=1.0)
    await jobs.until(first, Status.RUNNING)
    hand.send(SIGTERM)
    await hand.event("worker_stops")
    second = await jobs.add("nap", seconds=0)
    assert await hand.exit_code() == 0
    assert (await jobs.store.job(first)).status is Status.SUCCEEDED
    assert (await jobs.store.job(second)).status is Status.READY


@pytest.mark.parametrize("kind", ["nap", "stuck-thread", "stuck-loop", "stubborn"])
async def test_long_work_is_handed_back_after_the_grace(
    jobs: Jobs, hands: Hands, kind: str
) -> None:
    hand = await hands.hire(grace_seconds=0.5)
    # The handler's hour is longer than a test may take: nobody waited for its end.
    job = await jobs.add(kind, seconds=3600)
    await jobs.until(job, Status.RUNNING)
    hand.send(SIGTERM)
    assert await hand.exit_code() == 1
    view = await jobs.store.job(job)
    assert (view.status, view.attempt_no) == (Status.READY, 0)
    assert [a.how for a in view.attempts] == ["released"]


@pytest.mark.parametrize("kind", ["strict"])
async def test_a_kind_that_must_not_be_repeated_fails_in_these_words(
    jobs: Jobs, hands: Hands, kind: str
) -> None:
    hand = await hands.hire(grace_seconds=0.2)
    job = await jobs.add(kind, seconds=60)
    await jobs.until(job, Status.RUNNING)
    hand.send(SIGTERM)
    assert await hand.exit_code() == 1
    view = await jobs.store.job(job)
    assert view.status is Status.FAILED
    assert view.error["message"] == "Worker received SIGTERM"


async def test_a_kind_that_fails_has_no_grace_and_others_have_theirs(
    jobs: Jobs, hands: Hands
) -> None:
    hand = await hands.hire(grace_seconds=30)
    strict, nap = await jobs.add("strict", seconds=60), await jobs.add("nap", seconds=5.0)
    for job in (strict, nap):
        await jobs.until(job, Status.RUNNING)
    hand.send(SIGTERM)
    await jobs.until(strict, Status.FAILED)
    assert (await jobs.store.job(nap)).status is Status.RUNNING
    assert await hand.exit_code() == 1
    assert (await jobs.store.job(nap)).status is Status.SUCCEEDED


async def test_a_second_signal_does_not_wait_for_the_grace(jobs: Jobs, hands: Hands) -> None:
    hand = await hands.hire(grace_seconds=300)
    job = await jobs.add("nap", seconds=60)
    await jobs.until(job, Status.RUNNING)
    hand.send(SIGINT)
    await hand.event("worker_stops")
    hand.send(SIGTERM)
    assert await hand.exit_code(within=5) == 1
    assert (await jobs.store.job(job)).status is Status.READY


async def test_a_worker_that_ended_all_it_had_begun_exits_with_zero(
    jobs: Jobs, hands: Hands
) -> None:
    """Jobs that failed on their own, were parked, or came too late to be begun were not given
    up."""
    hand = await hands.hire(grace_seconds=30, slots=4)
    bad, polled = await jobs.add("bad"), await jobs.add("poll", polls=2)
    for job in (bad, polled):
        await jobs.over(job)
    last = await jobs.add("nap", seconds=1.0)
    await jobs.until(last, Status.RUNNING)
    hand.send(SIGTERM)
    assert await hand.exit_code() == 0
    assert (await jobs.store.job(last)).status is Status.SUCCEEDED
    assert hand.events("worker_left")[0]["given_up"] == 0


async def test_a_worker_that_cannot_write_its_will_exits_with_one(jobs: Jobs, hands: Hands) -> None:
    hand = await hands.hire(grace_seconds=0.1)
    job = await jobs.add("nap", seconds=60)
    await jobs.until(job, Status.RUNNING)
    async with jobs.unwritable():
        hand.send(SIGTERM)
        assert await hand.exit_code() == 1
    assert (await jobs.store.job(job)).status is Status.RUNNING


async def test_a_killed_worker_loses_its_job_to_the_next_one(jobs: Jobs, hands: Hands) -> None:
    first = await hands.hire(name="first")
    job = await jobs.add("nap", seconds=60)
    await jobs.until(job, Status.RUNNING)
    first.send(SIGKILL)
    await first.exit_code()
    await jobs.until(job, Status.READY, reap=True)
    await hands.hire(name="second")
    view = await jobs.until(job, Status.RUNNING)
    assert (view.worker, view.attempt_no) == ("second", 2)
