"""Waiting for the bell without taking anybody's turn.

The bell wakes one waiter a ring, who passes the baton on when it found work. Whoever takes only
some of a queue's jobs may find nothing although there is work; were it to hold the baton, the job
would wait for the next poll. So such a claimer listens beside the others: it hears every ring of
its queues, and no ring is lost on it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.jobs.notifier import Line, Notifier


class Waiters:
    def __init__(self, bell: Notifier) -> None:
        self._bell = bell
        self._waiting: dict[asyncio.Future[None], frozenset[str]] = {}
        bell.on_ring(self._rang)

    async def wait(
        self, queues: Sequence[str], timeout: float, *, heard: int, line: Line | None = None
    ) -> bool:
        """Until one of the queues is rung for, the line is hung up, or (False) the time is up."""
        if self._bell.heard(queues) != heard:
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if line is not None:
            line.hold(waiter)
        self._waiting[waiter] = frozenset(queues)
        try:
            await asyncio.wait_for(waiter, timeout)
        except TimeoutError:
            return False
        finally:
            del self._waiting[waiter]
        return True

    def _rang(self, queue: str, _order_key: int) -> None:
        for waiter, theirs in self._waiting.items():
            if queue in theirs and not waiter.done():
                waiter.set_result(None)
