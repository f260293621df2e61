"""Long-running work: jobs, recipe runs and algorithm executions, and their progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - the decoder reads the fields' types
from typing import Any

from penstock.client.words import (  # noqa: TC001 - the decoder reads the fields' types
    JobStatus,
    MaintenanceStatus,
    RunStatus,
)

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that `events()` tells: where the work is now."""

    status: str
    percent: float = 0.0
    step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A job; what a list leaves out (payload, result, attempts) is there after `refresh()`."""

    id: int
    kind: str = ""
    queue: str = ""
    priority: int = 0
    status: JobStatus = "queued"
    attempt_no: int = 0
    max_attempts: int = 0
    created_at: datetime | None = None
    created_by: str | None = None
    group_id: int | None = None
    lock_key: str | None = None
    unique_key: str | None = None
    retry_of: int | None = None
    worker: str | None = None
    claimed_at: datetime | None = None
    lease_until: datetime | None = None
    wake_at: datetime | None = None
    deadline: datetime | None = None
    finished_at: datetime | None = None
    polls: int = 0
    progress: Any = None
    error: Any = None
    payload: Any = None
    result: Any = None
    trace: str | None = None
    lock: Raw | None = None
    attempts: tuple[Raw, ...] = ()
    maintenance_status: MaintenanceStatus | None = None
    raw: Raw = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run of a recipe."""

    run_id: int
    recipe_id: str | None = None
    recipe_version: int | None = None
    name: str = ""
    status: RunStatus = "staging"
    progress: Raw = field(default_factory=dict)
    owner: str = ""
    parameters: Raw = field(default_factory=dict)
    totals: Raw | None = None
    rules: tuple[Raw, ...] | None = None
    timings: Raw | None = None
    evidence_sha256: str | None = None
    error: Raw | None = None
    retry_of: int | None = None
    callback_secret: str | None = field(default=None, repr=False)
    created_at: datetime | None = None
    ready_at: datetime | None = None
    finished_at: datetime | None = None
    raw: Raw = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionInfo:
    """One run of an algorithm."""

    execution_id: str
    algorithm_name: str = ""
    algorithm_type: str = ""
    status: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    node_label: str | None = None
    result_property: str | None = None
    nodes_updated: int | None = None
    duration_ms: int | None = None
    elapsed_ms: int | None = None
    progress_percent: float | None = None
    error_message: str | None = None
    result: Raw = field(default_factory=dict)
    raw: Raw = field(default_factory=dict, repr=False)
