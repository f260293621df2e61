"""Maintenance policies: which tables to maintain, when and with which actions. No I/O."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from datetime import time, timedelta
from typing import TYPE_CHECKING, Required, TypedDict
from zoneinfo import ZoneInfo

from penstock.kit.errors import InvalidInput
from penstock.maintenance.actions.model import Action, Name, parse

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.kit.json_value import JsonObject
    from penstock.maintenance.payloads import TableName

DEFAULT_ACTIONS = (
    Name.EXPIRE_SNAPSHOTS,
    Name.REWRITE_DATA_FILES,
    Name.REWRITE_POSITION_DELETE_FILES,
    Name.REWRITE_MANIFESTS,
)

# The functional form: "from" is a keyword.
Window = TypedDict("Window", {"from": str, "to": str})


class Definition(TypedDict, total=False):
    """A policy as an operator writes it and the database stores it; see `PolicyBody`."""

    name: Required[str]
    pattern: Required[str]
    enabled: bool
    health_below: int
    every_seconds: int
    commits: int
    window: Window
    zone: str
    max_jobs: int
    actions: list[str | JsonObject]


FIRST_PAUSE, LONGEST_PAUSE = timedelta(hours=1), timedelta(days=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy for tables whose name `catalog.db.table` matches `pattern`. Any trigger is enough;
    without one, the trigger is a health score below 80."""

    name: str
    pattern: str
    enabled: bool = True
    health_below: int | None = None
    every: timedelta | None = None
    commits: int | None = None
    window: tuple[time, time] | None = None
    zone: str = "UTC"
    max_jobs: int = 10
    """Maximum number of jobs per pass."""
    actions: tuple[Action, ...] = field(default_factory=lambda: parse(DEFAULT_ACTIONS))

    def fits(self, name: TableName) -> bool:
        return fnmatch.fnmatchcase(str(name), self.pattern)

    def open_at(self, now: datetime) -> bool:
        if self.window is None:
            return True
        at = now.astimezone(ZoneInfo(self.zone)).time()
        begins, ends = self.window
        return begins <= at < ends if begins <= ends else at >= begins or at < ends

    def due(self, *, score: int, since: timedelta | None, commits: int | None) -> str | None:
        """The reason why maintenance is due, or None. `since` is the time since the last
        maintenance; None if there was none."""
        below = (
            80
            if self.health_below is None and self.every is None and self.commits is None
            else self.health_below
        )
        if below is not None and score < below:
            return f"health {score} is below {below}"
        if self.every is not None and (since is None or since >= self.every):
            return "never maintained" if since is None else f"last maintained {since} ago"
        if self.commits is not None and commits is not None and commits >= self.commits:
            return f"{commits} commits since the last time"
        return None


def pause_after(jobs_in_vain: int) -> timedelta:
    """The backoff after consecutive jobs that failed or found nothing to do."""
    return (
        min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** max(0, jobs_in_vain - 1))
        if jobs_in_vain
        else timedelta(0)
    )


def read(definition: Definition) -> Policy:
    window = definition.get("window")
    zone = str(definition.get("zone", "UTC"))
    try:
        ZoneInfo(zone)
        times = (
            None
            if window is None
            else (time.fromisoformat(window["from"]), time.fromisoformat(window["to"]))
        )
    except (KeyError, ValueError, OSError) as e:
        raise InvalidInput(
            f"Policy {definition['name']}: the window must have times such as 22:00 and 06:00, in "
            "a known time zone."
        ) from e
    every = definition.get("every_seconds")
    return Policy(
        name=definition["name"],
        pattern=definition["pattern"],
        enabled=definition.get("enabled", True),
        health_below=definition.get("health_below"),
        every=None if every is None else timedelta(seconds=every),
        commits=definition.get("commits"),
        window=times,
        zone=zone,
        max_jobs=definition.get("max_jobs", 10),
        actions=parse(definition.get("actions") or DEFAULT_ACTIONS),
    )
