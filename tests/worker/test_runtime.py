"""What becomes of what handlers answer, and of those that do not."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.model import JobSpec, Status
from penstock.kit.errors import InvalidInput, PermissionDenied, Unavailable
from penstock.worker import Handlers, Worker
from penstock.worker.task_runner import MAX_UNHANDLED
from tests.worker.conftest import until
from tests.worker.worker_process import HANDLERS, KINDS, open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from penstock.jobs.store import PgJobStore
    from tests.worker.conftest import Jobs

    Working = Callable[..., Worker]


async def test_a_result_is_written_and_counted(jobs: Jobs, working: Working) -> None:
    worker = working()
    view = await jobs.over(await jobs.add("nap", seconds=0))
    assert (view.status, view.result) == (Status.SUCCEEDED, {"napped": 0, "attempt": 1})
    assert (
        b'penstock_worker_jobs_completed_total{status="succeeded",type="nap"} 1.0'
        in worker.metrics.text()
    )


async def test_an_error_of_ours_that_is_not_retryable_fails_at_once_and_without_its_secret(
    jobs: Jobs, working: Working
) -> None:
    working()
    view = await jobs.over(await jobs.add("bad"))
    assert (view.status, view.attempt_no) == (Status.FAILED, 1)
    assert view.error == {
        "code": "VALIDATION_FAILED",
        "message": "postgresql://me:[redacted]@db/x is no place for this.",
        "type": "InvalidInput",
        "retryable": False,
    }


async def test_any_other_error_is_tried_again_until_the_attempts_are_used_up(
    jobs: Jobs, working: Working
) -> None:
    working()
    lucky, unlucky = await jobs.add("flaky", failures=2), await jobs.add("flaky", failures=3)
    assert (await jobs.over(lucky)).result == 3
    view = await jobs.over(unlucky)
    assert (view.status, view.attempt_no) == (Status.FAILED, 3)
    assert view.error == {
        "code": "INTERNAL",
        "message": "Bearer [redacted] was refused",
        "type": "ConnectionError",
        "retryable": True,
    }


async def test_a_parked_job_comes_back_with_its_state_and_uses_no_attempt(
    jobs: Jobs, working: Working
) -> None:
    working()
    view = await jobs.over(await jobs.add("poll", polls=2))
    assert (view.result, view.attempt_no) == (2, 1)
    assert [a.how for a in view.attempts] == ["parked", "parked", "succeeded"]


async def test_a_result_over_the_limit_fails_its_job_and_says_so(
    jobs: Jobs, working: Working
) -> None:
    working(max_result_bytes=1000)
    fits, too_big = await jobs.add("big", bytes=998), await jobs.add("big", bytes=999)
    assert (await jobs.over(fits)).status is Status.SUCCEEDED
    view = await jobs.over(too_big)
    assert (view.status, view.attempt_no, view.error["code"]) == (
        Status.FAILED,
        1,
        "PAYLOAD_TOO_LARGE",
    )
    assert view.error["message"] == "The result has 1,001 bytes; at most 1,000 are taken."


async def test_an_answer_that_the_store_refuses_fails_alone(jobs: Jobs, working: Working) -> None:
    """Its limit is lower than ours here, and a kind that is spawned does not exist."""
    working(max_result_bytes=10**9)
    good = [await jobs.add("nap", seconds=0.05) for _ in range(5)]
    big = await jobs.add("big", bytes=2 * 1024 * 1024)
    spawns = await jobs.add("spawn", kind="nobody-knows-it")
    assert [(await jobs.over(job)).status for job in good] == [Status.SUCCEEDED] * 5
    assert (await jobs.over(big)).error["code"] == "PAYLOAD_TOO_LARGE"
    view = await jobs.over(spawns)
    assert view.status is Status.FAILED
    assert "nobody-knows-it" in view.error["message"]


async def test_what_a_result_spawns_is_run_as_well(jobs: Jobs, working: Working) -> None:
    worker = working()
    await jobs.over(await jobs.add("spawn", kind="nap"))

    async def both() -> bool:
        return worker.metrics.tally["succeeded"] == 2

    await until(both)


async def test_a_kind_without_a_handler_is_left_to_others_and_fails_in_the_end(
    jobs: Jobs, working: Working
) -> None:
    young, old = await jobs.add("unheard-of"), await jobs.add("unheard-of")
    async with jobs.connection() as connection:
        await connection.execute(
            "UPDATE penstock.live SET unhandled = $1 WHERE job_id = $2", MAX_UNHANDLED, old
        )
        await connection.execute("UPDATE penstock.live SET polls = 1000 WHERE job_id = $1", young)
    working()
    assert (await jobs.over(old)).error["code"] == "INVALID_STATE"
    view = await jobs.until(young, Status.PARKED)
    assert (view.attempt_no, view.polls) == (0, 1001)
    async with jobs.connection() as connection:
        assert (
            await connection.fetchval(
                "SELECT unhandled FROM penstock.live WHERE job_id = $1", young
            )
            == 1
        )


async def test_a_job_past_its_timeout_is_cancelled_and_fails(jobs: Jobs, working: Working) -> None:
    worker = working()
    spec = JobSpec(kind="nap", payload={"seconds": 60}, timeout=timedelta(seconds=1))
    [added] = await jobs.store.enqueue([spec])
    view = await jobs.over(added.job_id, within=5)
    assert (view.status, view.error["code"]) == (Status.FAILED, "DEADLINE_EXCEEDED")
    assert worker.metrics.tally["failed"] == 1


async def test_a_handler_that_ignores_its_deadline_fails_all_the_same(
    jobs: Jobs, working: Working
) -> None:
    worker = working()
    spec = JobSpec(kind="stubborn", payload={"seconds": 4}, timeout=timedelta(seconds=1))
    [added] = await jobs.store.enqueue([spec])
    view = await jobs.over(added.job_id)
    assert view.error["code"] == "DEADLINE_EXCEEDED"
    assert worker.metrics.tally["failed"] == 1


async def test_progress_arrives_while_the_job_runs_and_rows_are_counted(
    jobs: Jobs, working: Working
) -> None:
    worker = working()
    job = await jobs.add("talk", seconds=60)

    async def arrived() -> bool:
        return (await jobs.store.job(job)).progress is not None

    await until(arrived, within=5)
    progress = (await jobs.store.job(job)).progress
    assert progress == {"rows": 20, "percent": 50, "phase": "second half"}
    assert b'penstock_worker_rows_processed_total{type="talk"} 20.0' in worker.metrics.text()


async def test_fifty_jobs_wait_side_by_side(jobs: Jobs, working: Working) -> None:
    worker = working(slots=60)
    many = await jobs.store.enqueue([JobSpec(kind="nap", payload={"seconds": 0.5})] * 60)

    async def all_at_once() -> bool:
        return b"penstock_worker_active_jobs 60.0" in worker.metrics.text()

    await until(all_at_once)
    assert [(await jobs.over(j.job_id)).status for j in many] == [Status.SUCCEEDED] * 60


async def test_slots_are_never_overdrawn(jobs: Jobs, working: Working) -> None:
    worker = working(slots=3)
    many = await jobs.store.enqueue([JobSpec(kind="nap", payload={"seconds": 0.01})] * 50)
    most = 0

    async def done() -> bool:
        nonlocal most
        most = max(most, worker.busy)
        return worker.metrics.tally["succeeded"] == len(many)

    await until(done)
    assert most == 3


async def test_an_answer_does_not_wait_behind_a_long_poll(jobs: Jobs, working: Working) -> None:
    working(slots=10)
    job = await jobs.add("nap", seconds=0.5)
    await jobs.until(job, Status.RUNNING)
    assert (await jobs.over(job, within=3)).status is Status.SUCCEEDED


async def test_short_jobs_are_ended_and_claimed_in_one_call(
    database: str, jobs: Jobs, working: Working
) -> None:
    calls: Counter[str] = Counter()

    class Counting:
        def __init__(self, store: PgJobStore) -> None:
            self._store = store

        def __getattr__(self, verb: str) -> object:
            calls[verb] += 1
            return getattr(self._store, verb)

    @asynccontextmanager
    async def counting() -> AsyncIterator[Counting]:
        async with open_store(database) as store:
            yield Counting(store)

    await jobs.store.enqueue([JobSpec(kind="nap", payload={"seconds": 0})] * 1000)
    worker = working(open_store=counting, slots=100)

    async def done() -> bool:
        return worker.metrics.tally["succeeded"] == 1000

    await until(done)
    assert calls["exchange"] + calls["claim"] + calls["finish"] <= 15


async def test_a_refusal_of_the_first_call_is_a_wrong_setting_and_ends_the_worker() -> None:
    class Refusing:
        async def register(self, registration: object) -> None:
            raise PermissionDenied("This token may not register.")

        async def farewell(self, *_: object) -> None:
            return None

    @asynccontextmanager
    async def refusing() -> AsyncIterator[Refusing]:
        yield Refusing()

    worker = Worker(refusing, HANDLERS, KINDS, name="w", queues=["default"])
    with pytest.raises(PermissionDenied):
        await asyncio.wait_for(worker.run(), 10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"queues": []}, "at least one queue"),
        ({"slots": 0}, "slots"),
        ({"name": "no name"}, "not a valid name"),
    ],
)
def test_a_worker_that_makes_no_sense_is_refused(changed: dict[str, object], message: str) -> None:
    fields = {"name": "w", "queues": ["default"], **changed}
    with pytest.raises(InvalidInput, match=message):
        Worker(lambda: open_store(""), Handlers(), KINDS, **fields)


async def test_run_for_one_job_does_exactly_one(jobs: Jobs, database: str) -> None:
    pair = [await jobs.add("nap", seconds=0) for _ in range(2)]
    summary = await once(database, wait=5)
    assert (summary.counts, summary.lost, summary.failed) == ({"succeeded": 1}, 0, False)
    assert {(await jobs.store.job(job)).status for job in pair} == {Status.SUCCEEDED, Status.READY}


async def test_run_for_one_job_that_does_not_come_is_no_failure(jobs: Jobs, database: str) -> None:
    summary = await once(database, wait=0.2)
    assert (summary.counts, summary.failed) == ({}, False)


async def test_run_for_one_job_from_nowhere_is_an_error(pg: object) -> None:
    with pytest.raises(Unavailable):
        await once("postgresql:///nothing?host=/nowhere", wait=0.2)


async def once(dsn: str, *, wait: float) -> object:
    worker = Worker(
        lambda: open_store(dsn), HANDLERS, KINDS, name="once", queues=["default"], once=wait
    )
    return await asyncio.wait_for(worker.run(), 15)
