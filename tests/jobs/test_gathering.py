"""Enqueues that share a commit: each caller gets its own answer, and its own fault."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.jobs import gathering
from penstock.jobs.gathering import Gathering

if TYPE_CHECKING:
    from collections.abc import Sequence


class Desk:
    """Stands for the database: remembers each statement, and answers when it is let to."""

    def __init__(self) -> None:
        self.statements: list[list[str]] = []
        self.open = asyncio.Event()
        self.refuse: str | None = None

    async def send(self, payloads: Sequence[str]) -> list[str]:
        self.statements.append(list(payloads))
        await self.open.wait()
        if self.refuse in payloads:
            raise asyncpg.DataError(f"{self.refuse} is refused")
        return [f"id of {payload}" for payload in payloads]


async def _ask(desk: Desk, *calls: Sequence[str]) -> list[list[str] | BaseException]:
    gathered: Gathering[str] = Gathering()
    tasks = [asyncio.ensure_future(gathered.add("shape", call, desk.send)) for call in calls]
    await asyncio.sleep(0)
    desk.open.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    await gathered.finish()
    return answers


async def test_whoever_is_alone_waits_for_nobody() -> None:
    desk = Desk()
    assert await _ask(desk, ["a", "b"]) == [["id of a", "id of b"]]
    assert desk.statements == [["a", "b"]]


async def test_those_who_come_meanwhile_share_the_next_statement_and_get_their_own_answers() -> None:
    desk = Desk()
    assert await _ask(desk, ["a"], ["b", "c"], ["d"]) == [["id of a"], ["id of b", "id of c"], ["id of d"]]
    assert desk.statements == [["a"], ["b", "c", "d"]]


async def test_a_refusal_is_heard_by_the_one_at_fault_alone() -> None:
    desk = Desk()
    desk.refuse = "c"
    first, second, third, fourth = await _ask(desk, ["a"], ["b"], ["c"], ["d"])
    assert (first, second, fourth) == (["id of a"], ["id of b"], ["id of d"])
    assert isinstance(third, asyncpg.DataError)
    assert desk.statements == [["a"], ["b", "c", "d"], ["b"], ["c"], ["d"]]


async def test_a_caller_that_goes_away_takes_nobody_with_it() -> None:
    desk, gathered = Desk(), Gathering[str]()
    leader, gone, other = (asyncio.ensure_future(gathered.add("shape", [name], desk.send)) for name in "abc")
    await asyncio.sleep(0)
    gone.cancel()
    leader.cancel()
    desk.open.set()
    assert await other == ["id of c"]
    with pytest.raises(asyncio.CancelledError):
        await leader


@pytest.mark.parametrize(("limit", "statements"), [(3, 2), (2, 3)])
async def test_a_statement_has_its_most_rows(monkeypatch: pytest.MonkeyPatch, limit: int, statements: int) -> None:
    monkeypatch.setattr(gathering, "MOST_ROWS", limit)
    desk = Desk()
    await _ask(desk, ["a"], ["b"], ["c"], ["d"])
    assert len(desk.statements) == statements


async def test_a_statement_has_its_most_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "MOST_BYTES", 10)
    desk = Desk()
    await _ask(desk, ["a"], ["x" * 5], ["y" * 5], ["z"], ["w" * 11])
    assert desk.statements == [["a"], ["x" * 5, "y" * 5], ["z"], ["w" * 11]]


async def test_different_shapes_do_not_wait_for_each_other() -> None:
    desk, gathered = Desk(), Gathering[str]()
    one, two = (asyncio.ensure_future(gathered.add(shape, [shape], desk.send)) for shape in ("red", "blue"))
    await asyncio.sleep(0)
    assert desk.statements == [["red"], ["blue"]]
    desk.open.set()
    assert [await one, await two] == [["id of red"], ["id of blue"]]
