"""The context of one attempt to run an action: file names, cancellation check, clock and steps."""

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

    from penstock.maintenance.tables.ownership.storage import Listed, TableLocation

MARK = "penstock"
FENCED = "x"
"""Prefix of the attempt id in names of files that only the current holder of the job can commit. No
attempt id begins with it."""
_FENCED = re.compile(rf"(.*/)?(penstock-\d+-{FENCED}|[^/]*\.{MARK}{FENCED}).*")


def _nothing() -> None:
    pass


def _no_step(_name: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionContext:
    """`check` raises when the attempt must stop; `step` is called after each named step, for tests
    to stop a worker there."""

    job_id: int
    attempt: str
    fenced: bool = False
    """Whether commits go through the control plane, which refuses them once the job is lost.

    Otherwise another attempt may still be able to commit: the table may also be in a catalog of
    another Penstock, or in one of ours under another name and lock.
    """
    check: Callable[[], None] = _nothing
    step: Callable[[str], None] = _no_step
    now: Callable[[], datetime] = SYSTEM.now
    ticks: Callable[[], float] = time.monotonic
    started: float = field(default_factory=time.monotonic)

    @property
    def name(self) -> str:
        """The name prefix of every file that this attempt writes."""
        return f"penstock-{self.job_id}-{self._label}"

    @property
    def mark(self) -> str:
        """The part of a metadata file's name before its suffix, where other engines allow only
        letters and digits."""
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
        """Whether the attempt that wrote a file, according to its name, can no longer commit it."""
        name = file.path.removeprefix(location.path).lstrip("/")
        at_once = exact and _FENCED.fullmatch(name) is not None
        return self.now() - file.modified > timedelta(seconds=0 if at_once else DAY_SECONDS)

    def summary(self, action: str) -> dict[str, str]:
        """Snapshot summary properties that identify the job and the attempt."""
        return {
            "app-name": "penstock",
            "penstock.job-id": str(self.job_id),
            "penstock.attempt-id": self.attempt,
            "penstock.action": action,
        }
