"""How long to leave alone what works elsewhere, before it is asked after again."""

from __future__ import annotations

_DELAYS = (2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 89.0)
_LONGEST_DELAY = 90.0


def poll_delay(polls: int, patience: float) -> float:
    """Seconds to wait after so many polls; none before the first, which starts the work.

    `patience` is for how many seconds it is kept there though nobody asks.
    """
    if polls == 0:
        return 0.0
    delay = _DELAYS[polls - 1] if polls <= len(_DELAYS) else _LONGEST_DELAY
    return min(delay, patience / 3)
