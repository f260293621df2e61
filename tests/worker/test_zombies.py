"""A worker that was frozen, or blocked, and what its leases make of it."""

from __future__ import annotations

from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import TYPE_CHECKING

from penstock.jobs.model import Status
from tests.worker.conftest import until

if TYPE_CHECKING:
    from tests.worker.conftest import Hands, Jobs


async def test_a_frozen_worker_that_wakes_after_its_lease_harms_nothing(
    jobs: Jobs, hands: Hands
) -> None:
    zombie = await hands.hire(name="zombie")
    job = await jobs.add("nap", seconds=1.5)
    await jobs.until(job, Status.RUNNING)
    zombie.send(SIGSTOP)
    await jobs.until(job, Status.READY, reap=True)
    heir = await hands.hire(name="heir")
    done = await jobs.over(job)
    zombie.send(SIGCONT)
    stale = await zombie.event("stale_attempt")
    assert stale["job_id"] == job
    assert (done.worker, done.result["attempt"]) == ("heir", 2)
    assert (await jobs.store.job(job)).result == done.result
    for hand in (zombie, heir):
        hand.send(SIGTERM)
        assert await hand.exit_code() == 0
    assert (
        len([e for e in zombie.events("stale_attempt") if str(e["room"]).startswith("worker")]) == 1
    )


async def test_heartbeats_keep_a_job_alive_while_the_event_loop_is_blocked(
    jobs: Jobs, hands: Hands
) -> None:
    await hands.hire()
    job = await jobs.add("stuck-loop", seconds=4)
    view = await jobs.over(job, reap=True)
    assert (view.status, view.attempt_no) == (Status.SUCCEEDED, 1)
    assert [a.how for a in view.attempts] == ["succeeded"]


async def test_a_cancel_reaches_the_handler_with_the_next_heartbeat(
    jobs: Jobs, hands: Hands
) -> None:
    hand = await hands.hire()
    job = await jobs.add("stuck-thread", seconds=60)
    await jobs.until(job, Status.RUNNING)
    await jobs.store.cancel(job, actor="a person")
    assert (await hand.event("job_cancelled", within=3))["job_id"] == job
    await hand.event("handler_thread_left_behind", within=1)
    following = await jobs.add("nap", seconds=0)
    assert (await jobs.over(following)).status is Status.SUCCEEDED


async def test_a_worker_that_is_killed_and_started_again_has_its_jobs_back_at_once(
    jobs: Jobs, hands: Hands
) -> None:
    """The lease is an hour: only the registration of its successor can have freed the job."""
    first = await hands.hire(name="phoenix")
    job = await jobs.add("slow-lease", seconds=60)
    await jobs.until(job, Status.RUNNING)
    first.send(SIGKILL)
    await first.exit_code()
    second = await hands.hire(name="phoenix")
    assert (await second.event("worker_took_over"))["requeued"] == 1

    async def again() -> bool:
        return (await jobs.store.job(job)).attempt_no == 2

    await until(again)
    assert [a.how for a in (await jobs.store.job(job)).attempts] == ["lapsed", "running"]


async def test_two_live_workers_of_one_name_say_so_and_both_work(jobs: Jobs, hands: Hands) -> None:
    """The first loses what it ran when the second starts, once; nobody takes anything from anybody
    after that."""
    first = await hands.hire(name="twin", slots=1)
    job = await jobs.add("nap", seconds=60)
    await jobs.until(job, Status.RUNNING)
    second = await hands.hire(name="twin", slots=1)
    error = await first.event("worker_superseded")
    assert (error["level"], error["lost"]) == ("error", 1)
    assert [
        e["job_id"] for e in first.events("stale_attempt") if e["room"] == "worker.heartbeat"
    ] == [job]
    assert (await jobs.store.job(job)).attempt_no == 2

    following = await jobs.add("nap", seconds=0)
    assert (await jobs.over(following)).status is Status.SUCCEEDED
    # The row says so a moment before the worker has the answer, and writes it to its log.
    await first.event("job_ended")
    assert [e["job_id"] for e in first.events("job_ended")] == [following]
    third = await hands.hire(name="twin", slots=1)
    assert (await third.event("worker_name_shared"))["level"] == "error"
    assert (await jobs.store.job(job)).attempt_no == 2, "its second attempt goes on"
    assert second.events("job_ended") == []
