"""One attempt at work on a table: its names, its brakes, and the steps that tests stop it at."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.kit.clock import SYSTEM
from penstock.maintenance.actions.model import DAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from penstock.maintenance.tables.storage import Listed, TableLocation

MARK = "penstock"
FENCED = "x"
"""Before the attempt in the names of what only a holder of the job can commit. No attempt begins
with it."""
_FENCED = re.compile(rf"(.*/)?(penstock-\d+-{FENCED}|[^/]*\.{MARK}{FENCED}).*")


def _nothing() -> None:
    pass


def _no_step(_name: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`check` raises when the attempt must stop; `step` is called at each named step, after what it
    names is done."""

    job_id: int
    attempt: str
    fenced: bool = False
    """Whether it commits by way of the control plane: what it wrote is of no use once it lost its
    job.

    Other attempts may be alive whatever this control plane knows of them: the table may be in a
    catalog of another Penstock too, or in one of ours under another name and lock.
    """
    check: Callable[[], None] = _nothing
    step: Callable[[str], None] = _no_step
    now: Callable[[], datetime] = SYSTEM.now
    ticks: Callable[[], float] = time.monotonic
    started: float = field(default_factory=time.monotonic)

    @property
    def name(self) -> str:
        """What everything that this attempt writes is called by."""
        return f"penstock-{self.job_id}-{self._label}"

    @property
    def mark(self) -> str:
        """What a metadata file is called by before its ending, where other engines allow letters
        and digits only."""
        return f"{MARK}{self._label}"

    @property
    def _label(self) -> str:
        return f"{FENCED}{self.attempt}" if self.fenced else self.attempt

    @property
    def now_ms(self) -> int:
        return int(self.now().timestamp() * 1000)

    @property
    def seconds(self) -> float:
        return self.ticks() - self.started

    def is_over(self, location: TableLocation, file: Listed, *, exact: bool) -> bool:
        """Whether the attempt that wrote a file, by the file's name, cannot commit it any more."""
        name = file.path.removeprefix(location.path).lstrip("/")
        at_once = exact and _FENCED.fullmatch(name) is not None
        return self.now() - file.modified > timedelta(seconds=0 if at_once else DAY_SECONDS)

    def summary(self, action: str) -> dict[str, str]:
        """What a snapshot says of who made it."""
        return {
            "app-name": "penstock",
            "penstock.job-id": str(self.job_id),
            "penstock.attempt-id": self.attempt,
            "penstock.action": action,
        }
