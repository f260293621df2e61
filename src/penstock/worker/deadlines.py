"""Deadlines: one timer for all attempts, set for the earliest.

Jobs that end in time never touch the timer: when it fires, it checks all attempts and is set again.
An attempt past its deadline is stopped, gets a moment to clean up, and then fails even if its
handler has not returned.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from penstock.jobs.handler import Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.worker.attempt import Attempt, HeldAttempts

TIDY_SECONDS = 2.0


class Deadlines:
    def __init__(self, attempts: HeldAttempts, give_up: Callable[[Attempt], None]) -> None:
        self._attempts = attempts
        self._give_up = give_up
        self._at = float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, soonest: float) -> None:
        if soonest < self._at:
            self._set(soonest)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, at: float) -> None:
        self.close()
        self._at = at
        self._timer = asyncio.get_running_loop().call_later(
            max(0.0, at - time.monotonic()), self._look
        )

    def _look(self) -> None:
        now = time.monotonic()
        soonest = float("inf")
        for attempt in self._attempts.running():
            if (due := _due(attempt)) <= now:
                self._expire(attempt)
                due = now + TIDY_SECONDS
            soonest = min(soonest, due)
        self._at = float("inf")
        if soonest < self._at:
            self._set(soonest)

    def _expire(self, attempt: Attempt) -> None:
        if attempt.stopped is None:
            attempt.stop(Stop.DEADLINE)
        else:
            self._give_up(attempt)


def _due(attempt: Attempt) -> float:
    return attempt.deadline if attempt.stopped is None else attempt.deadline + TIDY_SECONDS
