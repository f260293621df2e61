"""A run: one execution of a recipe, from sources to evidence, and its states. Values only."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from penstock.kit.json_value import JsonValue
    from penstock.reconcile.evidence.document import RunResult
    from penstock.reconcile.recipes.model import RecipeDocument
    from penstock.reconcile.runs.side_input import SideInput


class RunStatus(enum.StrEnum):
    """A terminal status never changes; `executing` is `ready` with the match job running."""

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
    recipe: RecipeDocument
    parameters: Mapping[str, JsonValue]
    owner_username: str
    status: RunStatus
    inputs: Mapping[str, SideInput]
    staging_group: int | None
    match_group: int | None
    match_job: int | None
    retry_of: int | None
    callback_url: str | None
    result: RunResult | None
    error: Mapping[str, JsonValue] | None
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
    """Progress of a run: the rows read and, if the total is known, the percentage and remaining
    seconds."""

    stage: str
    rows: int
    percent: float | None
    eta_seconds: float | None
    jobs: int
    jobs_over: int
