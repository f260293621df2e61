"""Waiting for notifications without consuming those of others.

The notifier wakes one waiter at a time, which wakes the next when it found work. A claimer that
takes only some of a queue's jobs may find nothing although there is work; if it consumed the
wake-up, the job would wait for the next poll. So such a claimer listens on the side: it sees every
notification of its queues, and none is lost on it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.jobs.notifier import Line, Notifier


class Waiters:
    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._waiting: dict[asyncio.Future[None], frozenset[str]] = {}
        notifier.on_notification(self._rang)

    async def wait(
        self, queues: Sequence[str], timeout: float, *, heard: int, line: Line | None = None
    ) -> bool:
        """Wait until one of the queues is announced or the handle is closed; False when the time
        is up.
        """
        if self._notifier.heard(queues) != heard:
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
