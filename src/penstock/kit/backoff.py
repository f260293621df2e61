"""How to wait for a control plane that is away: longer each time, never very long, and not all
workers at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.kit.errors import PenstockError

if TYPE_CHECKING:
    import random

log = logging.get(__name__)
FIRST = 0.1
FACTOR = 2.0
LONGEST = 5.0


class ReconnectBackoff:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._failures = 0

    def failed(self, what: str, error: Exception) -> float:
        """How long to wait before the next try."""
        pause = min(LONGEST, FIRST * FACTOR ** min(self._failures, 20)) * self._rng.uniform(
            0.5, 1.0
        )
        self._failures += 1
        message = error.message if isinstance(error, PenstockError) else str(error)
        log.warning(
            "call_failed",
            call=what,
            tries=self._failures,
            error=type(error).__name__,
            message=message,
        )
        return pause

    def succeeded(self) -> None:
        if self._failures:
            log.info("calls_succeed_again", tries=self._failures)
            self._failures = 0
