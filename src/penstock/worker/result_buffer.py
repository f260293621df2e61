"""The outbox: answers between a handler's end and their delivery. It belongs to the event loop's
thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.worker.attempt import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.worker.attempt import Attempt


class ResultBuffer:
    """`news` is set when there is something to deliver, or room for another job."""

    def __init__(self) -> None:
        self._attempts: list[Attempt] = []
        self.news = asyncio.Event()

    def put(self, attempt: Attempt) -> None:
        self._attempts.append(attempt)
        self.news.set()

    def take(self) -> list[Attempt]:
        attempts, self._attempts = self._attempts, []
        return attempts

    def put_back(self, attempts: Sequence[Attempt]) -> None:
        """What of these could not be delivered comes first next time, and its lease is kept alive."""
        kept = [a for a in attempts if a.phase is Phase.ENDED]
        for attempt in kept:
            attempt.undelivered = True
        self._attempts = kept + self._attempts
