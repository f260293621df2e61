"""The one right to write: an algorithm holds it from its start to however it ends."""

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

    def acquire(self, wanted: Holding) -> None:
        """Take it, or say who has it."""
        with self._guard:
            if (held := self._holding) is not None:
                raise ResourceLocked(
                    f"{held.holder_username} runs {held.algorithm_name}; one algorithm writes at a time.",
                    hint="Wait for it, or cancel it.",
                    holder_name=held.holder_username,
                    algorithm=held.algorithm_name,
                    execution_id=held.execution_id,
                )
            self._holding = wanted

    def release(self, execution_id: str) -> None:
        """Give it back; what another execution holds stays."""
        with self._guard:
            if self._holding is not None and self._holding.execution_id == execution_id:
                self._holding = None
