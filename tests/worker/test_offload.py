"""Work in child processes: what comes back, and that nothing of it outlives its job."""

from __future__ import annotations

import os
import time
from signal import SIGKILL
from typing import TYPE_CHECKING

import psutil
import pytest

from penstock.jobs.model import Status
from penstock.kit.errors import InvalidInput
from penstock.worker.child_calls import Child, ChildDied
from tests.worker import errands
from tests.worker.conftest import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.worker.conftest import Hands, Jobs


def run(work: object, *args: object) -> object:
    child = Child(None, work, args)
    try:
        return child.answer()
    finally:
        child.kill()


def test_a_value_comes_back_and_prints_do_not_disturb_it() -> None:
    assert run(errands.chatter) == "the answer"


def test_an_error_comes_back_as_itself_with_where_it_was_raised() -> None:
    with pytest.raises(InvalidInput, match="not like this") as raised:
        run(errands.complain, "not like this")
    assert raised.value.hint == "do not"
    assert "in complain" in raised.value.__notes__[0]


def test_a_value_that_cannot_travel_is_an_error() -> None:
    with pytest.raises(Exception, match=r"pickle|local object"):
        run(errands.untransferable)


def test_a_child_that_dies_is_an_error_that_names_the_signal() -> None:
    with pytest.raises(ChildDied, match="exit code -9"):
        run(errands.vanish)


def test_a_killed_child_is_reaped() -> None:
    child = Child(None, time.sleep, (60,))
    child.kill()
    child.kill()
    with pytest.raises(ChildDied):
        child.answer()
    assert not psutil.pid_exists(child.pid)


async def pids_in(file: Path) -> list[int]:
    async def written() -> bool:
        return file.exists() and len(file.read_text().split()) == 2

    await until(written)
    return [int(pid) for pid in file.read_text().split()]


async def gone(*pids: int) -> None:
    async def they_are() -> bool:
        return not any(alive(pid) for pid in pids)

    await until(they_are)


def alive(pid: int) -> bool:
    try:
        status: str = psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return False
    return status != psutil.STATUS_ZOMBIE


async def test_a_cancelled_jobs_child_and_grandchild_are_killed(
    jobs: Jobs, hands: Hands, tmp_path: Path
) -> None:
    hand = await hands.hire()
    job = await jobs.add("child", seconds=60, file=str(tmp_path / "pids"))
    pids = await pids_in(tmp_path / "pids")
    await jobs.store.cancel(job, actor="a person")
    await gone(*pids)
    assert await hand.event("job_cancelled")


async def test_a_killed_workers_child_dies_with_it(
    jobs: Jobs, hands: Hands, tmp_path: Path
) -> None:
    hand = await hands.hire()
    await jobs.add("child", seconds=60, file=str(tmp_path / "pids"))
    child, grandchild = await pids_in(tmp_path / "pids")
    hand.send(SIGKILL)
    await gone(child)
    os.kill(grandchild, SIGKILL)


async def test_a_childs_answer_becomes_the_jobs_result(
    jobs: Jobs, hands: Hands, tmp_path: Path
) -> None:
    await hands.hire()
    job = await jobs.add("child", seconds=0.1, file=str(tmp_path / "pids"))
    view = await jobs.over(job)
    assert (view.status, view.result) == (Status.SUCCEEDED, "the child came back")
