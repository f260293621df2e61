"""The storm that every test run goes through, and proof that its checker can fail."""

from __future__ import annotations

import copy
import os
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.chaos.checker import judge
from tests.chaos.faults_run import run_faults
from tests.chaos.history import History
from tests.chaos.nats_faults import NATS_FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEDULES = int(os.environ.get("PENSTOCK_CHAOS_SCHEDULES", "200"))
NATS_SCHEDULES = 40
T0 = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.timeout(1800)
async def test_no_storm_doubles_an_end_loses_a_job_or_leaks_a_lock(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(1_000_000)
    with capsys.disabled():
        print(  # noqa: T201
            f"\nchaos: {SCHEDULES} schedules from seed {seed} (make chaos SEED={seed} replays them)"
        )
    folder = short_dir / "chaos"
    folder.mkdir()
    report = await run_faults(folder, seed=seed, schedules=SCHEDULES)
    judgement = report.judgement
    with capsys.disabled():
        print(  # noqa: T201
            f"chaos: {judgement.jobs} jobs, {judgement.attempts} attempts,"
            f" {judgement.stale_refused} stale writes refused"
        )
        print(f"chaos: {judgement.taken_over} attempts taken over by a worker of the same name")  # noqa: T201
    assert judgement.faults == []
    assert judgement.jobs > SCHEDULES
    assert judgement.stale_refused >= SCHEDULES, "the storm was too mild to prove anything"
    assert judgement.taken_over >= SCHEDULES // 20, "too few workers came back under their name"


@pytest.mark.timeout(900)
async def test_no_storm_does_so_where_jobs_are_announced_by_nats(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """NATS is killed, cut off and filled, and its streams are deleted, beside all other faults."""
    seed = random.randrange(1_000_000)
    with capsys.disabled():
        print(f"\nchaos: {NATS_SCHEDULES} schedules with NATS from seed {seed}")  # noqa: T201
    folder = short_dir / "chaos-nats"
    folder.mkdir()
    report = await run_faults(folder, seed=seed, schedules=NATS_SCHEDULES, with_nats=True)
    assert report.judgement.faults == []
    assert report.judgement.jobs > NATS_SCHEDULES
    assert report.faults.keys() & {fault.__name__ for fault in NATS_FAULTS}


def good() -> History:
    """One job ended by its second attempt; its first was told stale. One group, fired. One
    cancelled job."""
    return History(
        accepted={1: {}, 2: {}},
        cancelled={2},
        verdicts={(1, "a"): {"stale"}, (1, "b"): {"done"}},
        stale=1,
        outcomes=[
            {
                "job_id": 1,
                "attempt_id": "b",
                "attempt_no": 2,
                "status": 10,
                "claimed_at": T0,
                "finished_at": T0 + timedelta(seconds=5),
            },
            {
                "job_id": 2,
                "attempt_id": None,
                "attempt_no": 0,
                "status": 12,
                "claimed_at": None,
                "finished_at": T0 + timedelta(seconds=9),
            },
            {
                "job_id": 3,
                "attempt_id": "c",
                "attempt_no": 1,
                "status": 10,
                "claimed_at": T0,
                "finished_at": T0 + timedelta(seconds=9),
            },
        ],
        attempts=[
            {
                "job_id": 1,
                "attempt_id": "a",
                "attempt_no": 1,
                "claimed_at": T0 - timedelta(seconds=5),
                "ended_at": T0,
            }
        ],
        jobs=[
            {
                "job_id": 1,
                "kind": "storm.work",
                "lock_key": "x",
                "max_attempts": 2,
                "created_at": T0,
                "payload": "{}",
            },
            {
                "job_id": 2,
                "kind": "storm.work",
                "lock_key": "x",
                "max_attempts": 2,
                "created_at": T0 + timedelta(seconds=6),
                "payload": "{}",
            },
            {
                "job_id": 3,
                "kind": "storm.after",
                "lock_key": None,
                "max_attempts": 2,
                "created_at": T0,
                "payload": '{"group": "g"}',
            },
        ],
        fired=[{"group_id": 1, "name": "g", "status": 10}],
    )


def _second_end(h: History) -> None:
    h.outcomes.append(dict(h.outcomes[0]))


def _two_winners(h: History) -> None:
    h.verdicts[1, "a"] = {"done"}


def _lost(h: History) -> None:
    h.outcomes = [o for o in h.outcomes if o["job_id"] != 1]


def _still_live(h: History) -> None:
    h.live.append({"job_id": 1, "status": 0, "lock_key": None})


def _lock_left(h: History) -> None:
    h.live.append({"job_id": 1, "status": 1, "lock_key": "x"})


def _lock_shared(h: History) -> None:
    h.jobs[1]["created_at"] = T0 + timedelta(seconds=1)


def _gate_twice(h: History) -> None:
    h.jobs.append(dict(h.jobs[2]))


def _gate_never(h: History) -> None:
    h.fired[0]["status"] = 0


def _gate_for_nothing(h: History) -> None:
    h.jobs[2]["kind"] = "storm.work"


def _cancel_undone(h: History) -> None:
    h.outcomes[1]["status"] = 10


def _too_many_attempts(h: History) -> None:
    h.outcomes[0]["attempt_no"] = 3


def _fence_twice(h: History) -> None:
    h.attempts.append(dict(h.attempts[0]))


def _superseded_won(h: History) -> None:
    h.outcomes[0]["attempt_id"] = "a"


def _stale_wrote(h: History) -> None:
    h.verdicts[1, "b"] = {"stale"}


def test_a_sound_history_is_found_sound() -> None:
    assert judge(good()).faults == []


@pytest.mark.parametrize(
    "damage",
    [
        _second_end,
        _two_winners,
        _lost,
        _still_live,
        _lock_left,
        _lock_shared,
        _gate_twice,
        _gate_never,
        _gate_for_nothing,
        _cancel_undone,
        _too_many_attempts,
        _fence_twice,
        _superseded_won,
        _stale_wrote,
    ],
    ids=lambda damage: damage.__name__.strip("_"),
)
def test_the_checker_sees_what_a_broken_kernel_would_leave_behind(
    damage: Callable[[History], None],
) -> None:
    history = copy.deepcopy(good())
    damage(history)
    assert judge(history).faults
