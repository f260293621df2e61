"""The built-in probe, in all its ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.jobs.model import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.worker import Worker
    from tests.worker.conftest import Jobs


@pytest.mark.parametrize("block", [None, "thread", "loop", "process"])
async def test_a_probe_takes_its_steps_in_whatever_way(
    jobs: Jobs, working: Callable[..., Worker], block: str | None
) -> None:
    working()
    view = await jobs.over(await jobs.add("probe", steps=2, seconds_per_step=0.01, block=block))
    assert (view.status, view.result) == (Status.SUCCEEDED, {"steps": 2, "attempt": 1})


async def test_a_probe_fails_where_and_as_often_as_it_is_told(
    jobs: Jobs, working: Callable[..., Worker]
) -> None:
    working()
    view = await jobs.over(await jobs.add("probe", steps=3, fail_at_step=2, fail_attempts=1))
    assert (view.status, view.result) == (Status.SUCCEEDED, {"steps": 3, "attempt": 2})
    assert view.attempts[0].detail["message"] == "Step 2 failed as requested, in attempt 1."
