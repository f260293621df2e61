"""Buffers the outcomes of attempts until delivery. Used only in the event loop's thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.worker.attempt import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.worker.attempt import Attempt


class ResultBuffer:
    """`news` is set when there is an outcome to deliver, or a free slot."""

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
        """Return undelivered outcomes to the front; heartbeats keep their leases alive."""
        pending = [a for a in attempts if a.phase is Phase.ENDED]
        for attempt in pending:
            attempt.undelivered = True
        self._attempts = pending + self._attempts
