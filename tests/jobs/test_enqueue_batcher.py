"""Enqueues that share a commit: each caller gets its own answer, and its own fault."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.jobs import enqueue_batcher
from penstock.jobs.enqueue_batcher import EnqueueBatcher

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Row:
    payload: str


class Database:
    """Remembers each statement, and answers when it is let to."""

    def __init__(self) -> None:
        self.batcher: EnqueueBatcher[Row, str] = EnqueueBatcher()
        self.statements: list[list[str]] = []
        self.may_answer = asyncio.Event()
        self.refused: str | None = None

    async def send(self, rows: Sequence[Row]) -> list[str]:
        payloads = [row.payload for row in rows]
        self.statements.append(payloads)
        await self.may_answer.wait()
        if self.refused in payloads:
            raise asyncpg.DataError(f"{self.refused} is refused")
        return [f"id of {payload}" for payload in payloads]

    def enqueue(self, *payloads: str, shape: str = "shape") -> asyncio.Task[list[str]]:
        rows = [Row(payload) for payload in payloads]
        return asyncio.create_task(self.batcher.add(shape, rows, self.send))

    async def until_statement(self, number: int) -> None:
        while len(self.statements) < number:  # noqa: ASYNC110 - a pass of the loop at a time
            await asyncio.sleep(0)

    async def after_first(self, *calls: Sequence[str]) -> list[list[str] | BaseException]:
        """What the callers hear of whom all but the first came while its statement was on its
        way.
        """
        tasks = [self.enqueue(*calls[0])]
        await self.until_statement(1)
        tasks += [self.enqueue(*call) for call in calls[1:]]
        await asyncio.sleep(0)
        self.may_answer.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        await self.batcher.finish()
        return answers


async def test_a_caller_alone_gets_a_statement_alone() -> None:
    database = Database()
    assert await database.after_first(["a", "b"]) == [["id of a", "id of b"]]
    assert database.statements == [["a", "b"]]


async def test_callers_of_one_pass_of_the_loop_share_a_statement() -> None:
    database = Database()
    database.may_answer.set()
    answers = await asyncio.gather(*(database.enqueue(name) for name in "abc"))
    assert answers == [["id of a"], ["id of b"], ["id of c"]]
    assert database.statements == [["a", "b", "c"]]


async def test_producers_that_enqueue_again_and_again_stay_together() -> None:
    database = Database()
    database.may_answer.set()

    async def produce(name: str) -> None:
        for number in range(3):
            await database.batcher.add("shape", [Row(f"{name}{number}")], database.send)

    await asyncio.gather(*(produce(name) for name in "abc"))
    assert database.statements == [[f"{name}{number}" for name in "abc"] for number in range(3)]


async def test_those_who_come_meanwhile_share_the_next_statement_and_get_their_own_answers() -> (
    None
):
    database = Database()
    answers = await database.after_first(["a"], ["b", "c"], ["d"])
    assert answers == [["id of a"], ["id of b", "id of c"], ["id of d"]]
    assert database.statements == [["a"], ["b", "c", "d"]]


async def test_a_refusal_is_heard_by_the_one_at_fault_alone() -> None:
    database = Database()
    database.refused = "c"
    first, second, third, fourth = await database.after_first(["a"], ["b"], ["c"], ["d"])
    assert (first, second, fourth) == (["id of a"], ["id of b"], ["id of d"])
    assert isinstance(third, asyncpg.DataError)
    assert database.statements == [["a"], ["b", "c", "d"], ["b"], ["c"], ["d"]]


async def test_a_caller_that_goes_away_takes_nobody_with_it() -> None:
    database = Database()
    first, gone, other = (database.enqueue(name) for name in "abc")
    await database.until_statement(1)
    gone.cancel()
    first.cancel()
    await asyncio.sleep(0)
    database.may_answer.set()
    assert await other == ["id of c"]
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(asyncio.CancelledError):
        await gone


@pytest.mark.parametrize(("limit", "statements"), [(3, 2), (2, 3)])
async def test_a_statement_has_its_most_rows(
    monkeypatch: pytest.MonkeyPatch, limit: int, statements: int
) -> None:
    monkeypatch.setattr(enqueue_batcher, "MOST_ROWS", limit)
    database = Database()
    await database.after_first(["a"], ["b"], ["c"], ["d"])
    assert len(database.statements) == statements


async def test_a_statement_has_its_most_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueue_batcher, "MOST_BYTES", 10)
    database = Database()
    await database.after_first(["a"], ["x" * 5], ["y" * 5], ["z"], ["w" * 11])
    assert database.statements == [["a"], ["x" * 5, "y" * 5], ["z"], ["w" * 11]]


async def test_different_shapes_do_not_wait_for_each_other() -> None:
    database = Database()
    red, blue = database.enqueue("red", shape="red"), database.enqueue("blue", shape="blue")
    await database.until_statement(2)
    assert database.statements == [["red"], ["blue"]]
    database.may_answer.set()
    assert [await red, await blue] == [["id of red"], ["id of blue"]]
