"""One attempt at work on a table: its names, its brakes, and the steps that tests stop it at."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.kit.clock import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

MARK = "penstock"


def _nothing() -> None:
    pass


def _no_step(_name: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`check` raises when the attempt must stop; `step` is called at each named step, after what it names is done."""

    job_id: int
    attempt: str
    check: Callable[[], None] = _nothing
    step: Callable[[str], None] = _no_step
    now: Callable[[], datetime] = SYSTEM.now
    ticks: Callable[[], float] = time.monotonic
    started: float = field(default_factory=time.monotonic)

    @property
    def name(self) -> str:
        """What everything that this attempt writes is called by."""
        return f"penstock-{self.job_id}-{self.attempt}"

    @property
    def mark(self) -> str:
        """What a metadata file is called by before its ending, where other engines allow letters and digits only."""
        return f"{MARK}{self.attempt}"

    @property
    def now_ms(self) -> int:
        return int(self.now().timestamp() * 1000)

    @property
    def seconds(self) -> float:
        return self.ticks() - self.started

    def summary(self, action: str) -> dict[str, str]:
        """What a snapshot says of who made it."""
        return {
            "app-name": "penstock",
            "penstock.job-id": str(self.job_id),
            "penstock.attempt-id": self.attempt,
            "penstock.action": action,
        }
