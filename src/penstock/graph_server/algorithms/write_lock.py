"""The graph's write lock: an algorithm that writes holds it from its first step until it ends.

Only in this process; queries read beside it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit.errors import ResourceLocked

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    holder_id: str
    holder_username: str
    algorithm_name: str
    algorithm_type: str
    execution_id: str
    acquired_at: datetime


class WriteLock:
    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._holding: Holding | None = None

    @property
    def holding(self) -> Holding | None:
        return self._holding

    def acquire(self, request: Holding) -> None:
        """Acquire the lock, or raise ResourceLocked with its holder."""
        with self._guard:
            if (holder := self._holding) is not None:
                raise ResourceLocked(
                    (
                        f"{holder.holder_username} runs {holder.algorithm_name}; one algorithm "
                        "writes at a time."
                    ),
                    hint="Wait for it or cancel it.",
                    holder_name=holder.holder_username,
                    algorithm=holder.algorithm_name,
                    execution_id=holder.execution_id,
                )
            self._holding = request

    def release(self, execution_id: str) -> None:
        """Release the lock if this execution holds it."""
        with self._guard:
            if self._holding is not None and self._holding.execution_id == execution_id:
                self._holding = None
