"""The small parts of a worker, each alone."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson
import pytest

from penstock.jobs.handler import Stop
from penstock.jobs.model import Claimed, Fence, ProgressUpdate
from penstock.kit.backoff import RECONNECT, Backoff, ReconnectBackoff
from penstock.kit.errors import InvalidInput, NotFound, Unavailable
from penstock.worker import Handlers
from penstock.worker.attempt import Attempt, HeldAttempts, Phase
from penstock.worker.failure import MAX_MESSAGE, describe, failed
from penstock.worker.probe import plan, probe
from penstock.worker.progress import Progress
from tests.worker.worker_process import policy

if TYPE_CHECKING:
    from collections.abc import Sequence

RNG = random.Random(1)


def attempt(job_id: int = 1) -> Attempt:
    job = Claimed(
        fence=Fence(job_id=job_id, attempt_id=uuid4()),
        kind="nap",
        raw_payload="{}",
        attempt_no=1,
        max_attempts=3,
        lease_seconds=2,
        seconds_left=60.0,
        waited=0.0,
        queue="default",
    )
    return Attempt(job, policy("nap"), 0.0)


@pytest.mark.parametrize(
    ("error", "code", "retried"),
    [
        (InvalidInput("no"), "VALIDATION_FAILED", False),
        (NotFound("no"), "RESOURCE_NOT_FOUND", False),
        (Unavailable("no"), "UNAVAILABLE", True),
        (KeyError("no"), "INTERNAL", True),
    ],
)
def test_an_error_says_by_itself_whether_it_is_tried_again(
    error: Exception, code: str, retried: bool
) -> None:
    failure = failed(error, policy("nap", backoff=Backoff(base=10)), 1, RNG)
    assert (failure.error["code"], failure.error["retryable"]) == (code, retried)
    assert (failure.retry_in is not None) is retried


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x" * 10_000, ""])
def test_any_message_can_be_stored(text: str) -> None:
    message = describe(ValueError(text))["message"]
    assert "\\u0000" not in orjson.dumps(message).decode()
    assert 0 < len(message) <= MAX_MESSAGE


def test_patience_grows_has_a_limit_and_starts_anew_after_a_success() -> None:
    patience = ReconnectBackoff(random.Random(1))
    pauses = [patience.failed("claim", OSError("away")) for _ in range(20)]
    assert pauses[0] <= 0.1
    assert RECONNECT.cap / 2 <= pauses[-1] <= RECONNECT.cap
    patience.succeeded()
    assert patience.failed("claim", OSError("away")) <= 0.1


def test_only_the_first_answer_of_an_attempt_counts() -> None:
    attempts, one = HeldAttempts(), attempt()
    attempts.add([one])
    first, second = failed(KeyError(), one.policy, 1, RNG), failed(KeyError(), one.policy, 1, RNG)
    assert attempts.end(one, first)
    assert not attempts.end(one, second)
    assert one.writing is first
    assert attempts.remove([one]) == [one]
    assert attempts.remove([one]) == []
    assert one.phase is Phase.GONE


def test_the_first_reason_to_stop_stands_and_late_children_are_killed() -> None:
    class Child:
        killed = 0

        def kill(self) -> None:
            self.killed += 1

    one, early, late = attempt(), Child(), Child()
    one.adopt(early)
    one.stop(Stop.LOST)
    one.stop(Stop.SHUTDOWN)
    one.adopt(late)
    assert one.stopped is Stop.LOST
    assert one.event().is_set()
    assert (early.killed, late.killed) == (1, 1)


class Written:
    def __init__(self) -> None:
        self.calls: list[Sequence[ProgressUpdate]] = []
        self.away = False

    async def progress(self, updates: Sequence[ProgressUpdate]) -> list[bool]:
        if self.away:
            raise Unavailable("away")
        self.calls.append(updates)
        return [True] * len(updates)


async def test_progress_of_many_jobs_is_one_call_with_the_latest_of_each() -> None:
    progress, store, pair = Progress(), Written(), [attempt(1), attempt(2)]
    for step in range(100):
        for one in pair:
            progress.note(one, {"rows": step})
    assert await progress.run_once(store) == 2
    assert [u.progress for u in store.calls[0]] == [{"rows": 99}] * 2
    assert await progress.run_once(store) == 0


async def test_progress_that_could_not_be_written_is_retried_unless_there_is_newer() -> None:
    progress, store, (old, new) = Progress(), Written(), (attempt(1), attempt(2))
    progress.note(old, {"rows": 1})
    progress.note(new, {"rows": 1})
    store.away = True
    await progress.run_once(store)
    progress.note(new, {"rows": 2})
    store.away = False
    await progress.run_once(store)
    assert {u.fence.job_id: u.progress["rows"] for u in store.calls[0]} == {1: 1, 2: 2}


async def test_progress_that_cannot_be_written_at_all_or_comes_too_late_is_dropped() -> None:
    progress, store, (huge, gone, good) = (
        Progress(),
        Written(),
        (attempt(1), attempt(2), attempt(3)),
    )
    progress.note(huge, {"phase": "x" * 100_000})
    progress.note(gone, {"rows": 1})
    progress.note(good, {"rows": 1})
    gone.stop(Stop.CANCELLED)
    assert await progress.run_once(store) == 1


def test_a_kind_has_one_handler() -> None:
    handlers = Handlers({"probe": probe})
    with pytest.raises(InvalidInput, match="already"):
        handlers.add("probe", probe)
    assert list(handlers) == ["probe"]


@pytest.mark.parametrize(
    "payload",
    [
        {"steps": -1},
        {"steps": 1.5},
        {"steps": 10**9},
        {"seconds_per_step": -1},
        {"block": "all"},
        {"pace": 1},
        [1],
    ],
)
def test_a_probe_that_makes_no_sense_is_refused(payload: object) -> None:
    with pytest.raises(InvalidInput):
        plan(payload)
