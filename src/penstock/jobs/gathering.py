"""Enqueues that come while one like them is on its way to the database go together in the next statement.

Each caller is answered when its own jobs are committed, so nothing is promised earlier than without it; what is shared
is the commit. A caller who is alone waits for nobody. A statement that the database refuses is sent again for each
caller alone, so that only the one whose jobs are at fault hears of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import asyncpg

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

MOST_ROWS = 1000
MOST_BYTES = 4 * 1024 * 1024
R = TypeVar("R")


@dataclass(slots=True)
class _Call:
    payloads: Sequence[str]
    answer: asyncio.Future[Any]

    @property
    def size(self) -> int:
        return sum(map(len, self.payloads))


class Gathering(Generic[R]):
    """`send` inserts payloads of one shape and answers with one record a payload, in their order."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, list[_Call]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(
        self, shape: Hashable, payloads: Sequence[str], send: Callable[[Sequence[str]], Awaitable[list[R]]]
    ) -> list[R]:
        if (queue := self._waiting.get(shape)) is not None:
            call = _Call(payloads, asyncio.get_running_loop().create_future())
            queue.append(call)
            answer: list[R] = await call.answer
            return answer
        self._waiting[shape] = []
        try:
            return await send(payloads)
        finally:
            self._go_on(shape, send)

    async def finish(self) -> None:
        """Wait for what is still on its way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _go_on(self, shape: Hashable, send: Callable[[Sequence[str]], Awaitable[list[R]]]) -> None:
        if not (queue := self._waiting[shape]):
            del self._waiting[shape]
            return
        task = asyncio.create_task(self._send(shape, _next(queue), send))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(
        self, shape: Hashable, calls: Sequence[_Call], send: Callable[[Sequence[str]], Awaitable[list[R]]]
    ) -> None:
        try:
            await _together(calls, send)
        finally:
            self._go_on(shape, send)


def _next(queue: list[_Call]) -> list[_Call]:
    """As many as one statement should carry, and at least one, taken from the queue's head."""
    rows = size = count = 0
    for call in queue:
        rows, size = rows + len(call.payloads), size + call.size
        if count and (rows > MOST_ROWS or size > MOST_BYTES):
            break
        count += 1
    taken = queue[:count]
    del queue[:count]
    return taken


async def _together(calls: Sequence[_Call], send: Callable[[Sequence[str]], Awaitable[list[R]]]) -> None:
    try:
        added = await send([payload for call in calls for payload in call.payloads])
    except asyncpg.DataError as e:
        if len(calls) == 1:
            _fail(calls, e)
        else:
            for call in calls:
                await _together([call], send)
    except BaseException as e:
        _fail(calls, e)
        if not isinstance(e, Exception):
            raise
    else:
        records = iter(added)
        for call in calls:
            mine = list(islice(records, len(call.payloads)))
            if not call.answer.done():
                call.answer.set_result(mine)


def _fail(calls: Sequence[_Call], error: BaseException) -> None:
    for call in calls:
        if call.answer.done():
            continue
        if isinstance(error, asyncio.CancelledError):
            call.answer.cancel()
        else:
            call.answer.set_exception(error)
