"""Enqueues that come at about the same time go to the database together and share a commit.

A statement leaves one pass of the event loop after its first caller came, so those who ask in the
same pass go along; whoever comes while it is on its way goes with the next one. Each caller is
answered when its own jobs are committed, so nothing is promised earlier than without it. A
statement that the database refuses is sent again for each caller alone, so that only the one whose
jobs are at fault hears of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import asyncpg

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

MOST_ROWS = 1000
MOST_BYTES = 4 * 1024 * 1024


class Row(Protocol):
    @property
    def payload(self) -> str: ...


RowT = TypeVar("RowT", bound=Row)
Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Call(Generic[RowT]):
    rows: Sequence[RowT]
    answer: asyncio.Future[Any]

    @property
    def size(self) -> int:
        return sum(len(row.payload) for row in self.rows)


class EnqueueBatcher(Generic[RowT, Answer]):
    """`send` inserts rows of one shape and returns one answer a row, in their order."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, list[_Call[RowT]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(
        self,
        shape: Hashable,
        rows: Sequence[RowT],
        send: Callable[[Sequence[RowT]], Awaitable[Sequence[Answer]]],
    ) -> list[Answer]:
        call = _Call(rows, asyncio.get_running_loop().create_future())
        calls = self._waiting.get(shape)
        if calls is None:
            self._waiting[shape] = [call]
            task = asyncio.create_task(self._run(shape, send))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            calls.append(call)
        answers: list[Answer] = await call.answer
        return answers

    async def finish(self) -> None:
        """Wait for what is still on its way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(
        self, shape: Hashable, send: Callable[[Sequence[RowT]], Awaitable[Sequence[Answer]]]
    ) -> None:
        """One statement after the other, until a pass of the loop brings no caller."""
        calls = self._waiting[shape]
        try:
            while calls:
                await _send_together(_next(calls), send)
                # Callers who were answered just now often have more to enqueue.
                await asyncio.sleep(0)
        finally:
            del self._waiting[shape]
            _fail(calls, asyncio.CancelledError())


def _next(calls: list[_Call[RowT]]) -> list[_Call[RowT]]:
    """As many as one statement should carry, and at least one, taken from the head."""
    rows = size = count = 0
    for call in calls:
        rows, size = rows + len(call.rows), size + call.size
        if count and (rows > MOST_ROWS or size > MOST_BYTES):
            break
        count += 1
    taken = calls[:count]
    del calls[:count]
    return taken


async def _send_together(
    calls: Sequence[_Call[RowT]], send: Callable[[Sequence[RowT]], Awaitable[Sequence[Answer]]]
) -> None:
    try:
        answers = await send([row for call in calls for row in call.rows])
    except asyncpg.DataError as e:
        if len(calls) == 1:
            _fail(calls, e)
        else:
            for call in calls:
                await _send_together([call], send)
    except BaseException as e:
        _fail(calls, e)
        if not isinstance(e, Exception):
            raise
    else:
        remaining = iter(answers)
        for call in calls:
            own = list(islice(remaining, len(call.rows)))
            if not call.answer.done():
                call.answer.set_result(own)


def _fail(calls: Sequence[_Call[RowT]], error: BaseException) -> None:
    for call in calls:
        if call.answer.done():
            continue
        if isinstance(error, asyncio.CancelledError):
            call.answer.cancel()
        else:
            call.answer.set_exception(error)
