"""A cluster that sleeps answers its first query with a timeout.

An error whose type or text says timeout is tried again twice, five seconds apart; by then the query
before it has been cancelled. Every other error is final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.sources.errors import SourceError
from penstock.sources.trino.failure import error_type

if TYPE_CHECKING:
    from penstock.kit.clock import Clock
    from penstock.kit.errors import PenstockError

RETRIES, PAUSE = 2, 5.0

log = logging.get("sources.trino")


class ColdStart:
    """The patience of one call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._retries = 0

    async def pause(self, error: PenstockError) -> None:
        """Wait until it is worth another try; raises when it is not."""
        if not _says_timeout(error):
            raise error
        if self._retries == RETRIES:
            raise SourceError(
                f"Direct export failed after {RETRIES} retries: {error_type(error)}",
                hint=error.message,
                **error.details,
            ) from None
        self._retries += 1
        log.warning("trino_cold_start", retry=self._retries, error_type=error_type(error))
        await self._clock.sleep(PAUSE)


def _says_timeout(error: PenstockError) -> bool:
    told = f"{type(error).__name__} {error.details.get('error_name')} {error.details.get('error_type')} {error.message}"
    return "timeout" in told.lower() or "timed out" in told.lower()
