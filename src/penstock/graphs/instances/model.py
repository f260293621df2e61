"""An instance (a graph server of one snapshot) and its state machine."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NotRequired, TypeAlias, TypedDict, get_args

from penstock.graphs.errors import InvalidStateTransition
from penstock.launchers.contract import Handle

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from penstock.kit.json_value import JsonObject

Backend: TypeAlias = Literal["ladybug", "ryugraph", "falkordb"]
Phase: TypeAlias = Literal[
    "pod_scheduled", "downloading", "loading_schema", "loading_data", "ready", "failed"
]
StepStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
DEFAULT_BACKEND: Backend = "ladybug"
LEAST_CPU, MOST_CPU = 1, 8
LEAST_MEMORY, MOST_MEMORY = 2, 32
GIB = 1024**3


class InstanceStatus(enum.StrEnum):
    WAITING = "waiting_for_snapshot"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"
    SUSPENDED = "suspended"
    RESUMING = "resuming"

    @property
    def launching(self) -> bool:
        return self in (InstanceStatus.STARTING, InstanceStatus.RESUMING)

    @property
    def lives(self) -> bool:
        """Whether an instance in this status has, or is about to have, a process."""
        return self.launching or self is InstanceStatus.RUNNING


class StepReport(TypedDict):
    name: str
    type: NotRequired[str | None]
    status: StepStatus
    row_count: NotRequired[int | None]


class ProgressReport(TypedDict):
    """What a graph server reports while it loads; kept in the row until the next report."""

    phase: Phase
    current_step: str | None
    progress_percent: int
    steps: list[StepReport]


NO_REPORT = ProgressReport(phase="pod_scheduled", current_step=None, progress_percent=0, steps=[])


class ErrorCode(enum.StrEnum):
    """Why an instance failed."""

    STARTUP_FAILED = "STARTUP_FAILED"
    MAPPING_FETCH_ERROR = "MAPPING_FETCH_ERROR"
    SCHEMA_CREATE_ERROR = "SCHEMA_CREATE_ERROR"
    DATA_LOAD_ERROR = "DATA_LOAD_ERROR"
    DATABASE_ERROR = "DATABASE_ERROR"
    FALKORDB_SCHEMA_CREATE_ERROR = "FALKORDB_SCHEMA_CREATE_ERROR"
    FALKORDB_DATABASE_ERROR = "FALKORDB_DATABASE_ERROR"
    OOM_KILLED = "OOM_KILLED"
    UNEXPECTED_TERMINATION = "UNEXPECTED_TERMINATION"
    SNAPSHOT_FAILED = "SNAPSHOT_FAILED"
    STARTUP_TIMEOUT = "STARTUP_TIMEOUT"


_S = InstanceStatus
_STEPS: Mapping[InstanceStatus, frozenset[InstanceStatus]] = {
    _S.WAITING: frozenset({_S.STARTING, _S.FAILED, _S.STOPPING}),
    _S.STARTING: frozenset({_S.RUNNING, _S.FAILED, _S.STOPPING}),
    _S.RUNNING: frozenset({_S.STOPPING, _S.FAILED, _S.SUSPENDED}),
    _S.SUSPENDED: frozenset({_S.RESUMING, _S.STOPPING}),
    _S.RESUMING: frozenset({_S.RUNNING, _S.FAILED, _S.STOPPING}),
    _S.FAILED: frozenset({_S.RESUMING, _S.STOPPING}),
    _S.STOPPING: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an instance failed; the first failure is kept."""

    code: ErrorCode
    message: str
    phase: str | None = None
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    instance_id: int
    snapshot_id: int | None
    snapshot_name: str | None
    mapping_id: int | None
    mapping_version: int | None
    owner_username: str
    wrapper_type: str
    name: str
    description: str | None
    status: InstanceStatus
    url_slug: str
    place: str
    launch: int
    placed: bool
    launched_at: datetime | None
    force_stop: bool
    progress: ProgressReport | None
    error_code: str | None
    error_message: str | None
    failed_phase: str | None
    stack_trace: str | None
    created_at: datetime
    updated_at: datetime
    status_at: datetime
    started_at: datetime | None
    last_activity_at: datetime | None
    expires_at: datetime | None
    ttl: timedelta | None
    inactivity_timeout: timedelta | None
    memory_usage_bytes: int | None
    disk_usage_bytes: int | None
    query_count: int
    cpu_cores: int
    memory_gb: int
    node_count: int | None
    edge_count: int | None

    @property
    def handle(self) -> Handle:
        return Handle(instance_id=self.instance_id, launch=self.launch)

    @property
    def loading_phase(self) -> Phase | None:
        """As last reported by its graph server."""
        return None if self.progress is None else self.progress["phase"]

    @property
    def memory_bytes(self) -> int:
        return self.memory_gb * GIB

    def check(self, status: InstanceStatus) -> None:
        check_step(self.instance_id, self.status, status)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSummary:
    """An instance in the list of its owner."""

    instance_id: int
    name: str
    status: InstanceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    event_id: int
    instance_id: int
    event_type: str
    actor: str | None
    details: JsonObject
    created_at: datetime


def check_step(instance_id: int, now: InstanceStatus, target: InstanceStatus) -> None:
    if target not in _STEPS[now]:
        possible = ", ".join(sorted(_STEPS[now])) or "none"
        raise InvalidStateTransition(
            f"Instance {instance_id} is {now}; it cannot become {target}.",
            hint=f"Possible from here: {possible}.",
            status=str(now),
            wanted=str(target),
        )
