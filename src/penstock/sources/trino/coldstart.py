"""Retries for a cold cluster, whose first query fails with a timeout.

A query that fails with a timeout, by type or text, is retried twice, five seconds apart; the failed
query has been cancelled by then. Every other error is final.
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
    """The retry state of one call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._retries = 0

    async def pause(self, error: PenstockError) -> None:
        """Wait before the next try; raises if the error is final."""
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
    name, kind = error.details.get("error_name"), error.details.get("error_type")
    text = f"{type(error).__name__} {name} {kind} {error.message}"
    return "timeout" in text.lower() or "timed out" in text.lower()
