"""How long to wait before the next try: longer each time, up to a limit, and not all processes at
once."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from penstock.kit import logging
from penstock.kit.errors import PenstockError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.get(__name__)
T = TypeVar("T")
MOST_EXPONENT = 64
"""Past any cap; a power of more could leave the range of a float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses between tries: base, then times factor, up to a cap; each is multiplied by a random
    number between `least` and `most`."""

    base: float = 2.0
    factor: float = 3.0
    cap: float = 300.0
    least: float = 0.9
    most: float = 1.1

    def pause(self, try_no: int, rng: random.Random) -> float:
        """After the first try, the second, …"""
        exponent = min(MOST_EXPONENT, max(0, try_no - 1))
        return min(self.cap, self.base * self.factor**exponent) * rng.uniform(self.least, self.most)


RECONNECT = Backoff(base=0.1, factor=2.0, cap=5.0, least=0.5, most=1.0)
"""For a control plane that is away."""


class ReconnectBackoff:
    """The tries of one caller, from failure to success; each failure is logged."""

    def __init__(self, rng: random.Random, backoff: Backoff = RECONNECT) -> None:
        self._rng = rng
        self._backoff = backoff
        self._failures = 0

    def failed(self, what: str, error: Exception) -> float:
        """How long to wait before the next try."""
        self._failures += 1
        message = error.message if isinstance(error, PenstockError) else str(error)
        log.warning(
            "call_failed",
            call=what,
            tries=self._failures,
            error=type(error).__name__,
            message=message,
        )
        return self._backoff.pause(self._failures, self._rng)

    def succeeded(self) -> None:
        if self._failures:
            log.info("calls_succeed_again", tries=self._failures)
            self._failures = 0


async def retrying(call_name: str, call: Callable[[], Awaitable[T]], *, seconds: float) -> T:
    """Call until it answers, but for no longer than this while it is unavailable."""
    backoff = ReconnectBackoff(random.Random())  # noqa: S311 - it spreads pauses
    until = time.monotonic() + seconds
    while True:
        try:
            return await call()
        except Unavailable as e:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(backoff.failed(call_name, e))
