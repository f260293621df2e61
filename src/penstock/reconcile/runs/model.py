"""A run: one recipe, at one moment, from sources to evidence; and the states it goes through."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class RunStatus(enum.StrEnum):
    """A terminal one never changes; `executing` is `ready` with the match in a worker's hands."""

    STAGING = "staging"
    READY = "ready"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    run_id: int
    recipe_id: str | None
    recipe_version: int | None
    recipe: Mapping[str, Any]
    parameters: Mapping[str, Any]
    owner_username: str
    status: RunStatus
    inputs: Mapping[str, Any]
    staging_group: int | None
    match_group: int | None
    match_job: int | None
    retry_of: int | None
    callback_url: str | None
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    created_at: datetime
    updated_at: datetime
    ready_at: datetime | None
    finished_at: datetime | None
    deadline: datetime

    @property
    def groups(self) -> list[int]:
        return [group for group in (self.staging_group, self.match_group) if group is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: rows that were read and, where it is known of how many, the share and the
    seconds to come."""

    stage: str
    rows: int
    percent: float | None
    eta_seconds: float | None
    jobs: int
    jobs_over: int
