"""The values of the kernel: jobs, fences, endings, verdicts and views."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

JobId: TypeAlias = int
AttemptId: TypeAlias = "UUID"
Json: TypeAlias = Any


class Status(enum.IntEnum):
    """Below 10 the job has a live row, from 10 on it has an outcome and is over."""

    READY = 0
    RUNNING = 1
    PARKED = 2
    SCHEDULED = 3
    SUCCEEDED = 10
    FAILED = 11
    CANCELLED = 12

    @property
    def over(self) -> bool:
        return self >= Status.SUCCEEDED

    @property
    def word(self) -> str:
        """The status as people see it: a scheduled job is a queued one that is not due yet."""
        return "queued" if self in (Status.READY, Status.SCHEDULED) else self.name.lower()


class Fence(NamedTuple):
    """The right to write one attempt's outcome; only `claim` makes one.

    A tuple, as is `Claimed`: the hot path makes and hashes one a job, and a dataclass would do that
    in Python.
    """

    job_id: JobId
    attempt_id: AttemptId


@dataclass(slots=True, kw_only=True)
class JobSpec:
    """A job to be done. Fields that are None are taken from the policy of its kind.

    Treated as immutable; not frozen, because that would triple the cost of construction.
    """

    kind: str
    payload: Json = field(default_factory=dict)
    queue: str | None = None
    priority: int | None = None
    run_in: timedelta | None = None
    deadline_in: timedelta | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    group_id: int | None = None
    lock_key: str | None = None
    unique_key: str | None = None
    retry_of: JobId | None = None
    created_by: str | None = None
    trace: str | None = None


class Enqueued(NamedTuple):
    """`created` is False when a job with the same unique key was there already; then `job_id` is
    that one's."""

    job_id: JobId
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """Jobs that belong together, and what follows when the last of them is over.

    `on_success` and `on_failure` are enqueued by the gate; `gate` names a handler of the control
    plane that runs in the same transaction.
    """

    name: str
    gate: str | None = None
    payload: Json = field(default_factory=dict)
    on_success: Sequence[JobSpec] = ()
    on_failure: Sequence[JobSpec] = ()
    deadline_in: timedelta | None = timedelta(seconds=7200)


class Claimed(NamedTuple):
    """One attempt: a job claimed by one worker, with the fence that its writes must show."""

    fence: Fence
    queue: str
    kind: str
    raw_payload: str
    attempt_no: int
    max_attempts: int
    lease_seconds: int
    seconds_left: float
    waited: float
    polls: int = 0
    unhandled: int = 0
    raw_state: str | None = None
    group_id: int | None = None
    lock_key: str | None = None
    trace: str | None = None

    @property
    def job_id(self) -> JobId:
        return self.fence.job_id

    @property
    def payload(self) -> Json:
        return orjson.loads(self.raw_payload)

    def log_fields(self) -> dict[str, object]:
        fields: dict[str, object] = {"job_id": self.job_id, "attempt_id": self.fence.attempt_id}
        return fields if self.trace is None else fields | {"trace": self.trace}

    @property
    def state(self) -> Json:
        """What the attempt that parked the job left behind."""
        return None if self.raw_state is None else orjson.loads(self.raw_state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """`spawn` is enqueued in the transaction that records the end: a plan's chunks cannot be
    doubled or lost."""

    result: Json = None
    spawn: Sequence[JobSpec] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """`retry_in` asks for another attempt after a pause; without attempts left the failure is
    final."""

    error: Json
    retry_in: float | None = None


Outcome: TypeAlias = Succeeded | Failed
WORKER_STOPPED = "WORKER_STOPPED"
DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
CUT_SHORT = frozenset({WORKER_STOPPED, DEADLINE_EXCEEDED})
"""Codes of ends that come from outside the handler: it may not have stopped what it had running
elsewhere."""


class Ending(NamedTuple):
    fence: Fence
    outcome: Outcome


class Verdict(enum.StrEnum):
    """What became of an attempt's last write."""

    DONE = "done"
    REPEATED = "repeated"
    """It had been written before: the reply was lost, not the write."""
    RETRYING = "retrying"
    STALE = "stale"
    """The fence was rotated: nothing was written."""

    @property
    def accepted(self) -> bool:
        return self is not Verdict.STALE


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    verdicts: Sequence[Verdict]
    claimed: Sequence[Claimed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parking:
    fence: Fence
    state: Json
    wake_in: float
    unhandled: bool = False
    """The worker has no handler for the kind and leaves the job to another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    fence: Fence
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressUpdate:
    fence: Fence
    progress: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A process that starts work under a worker's name; `session` is a random id of the process."""

    worker: str
    session: UUID
    queues: Sequence[str]
    slots: int
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What an earlier process of the same name left running, all of it taken over at once.

    `requeued` of its attempts go back to the queue, `failed` had no attempt left. With `shared`,
    two live processes have used the name lately, and nothing was taken over.
    """

    requeued: int = 0
    failed: int = 0
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A worker's heartbeat: its name, its session and every attempt that it holds."""

    worker: str
    session: UUID
    queues: Sequence[str]
    slots: int
    version: str
    held: Sequence[Fence] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """Attempts that must stop: `lost` to another attempt or the reaper, `cancelled` by a person.

    `superseded`: another process registered under the worker's name, and what ran here until then
    was taken over.
    """

    lost: Sequence[Fence] = ()
    cancelled: Sequence[Fence] = ()
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """`newly` is False when the job had been cancelled before."""

    job_id: JobId
    newly: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """The result of a reaper's pass; `kinds` are the kinds of the requeued jobs."""

    requeued: int = 0
    failed: int = 0
    expired: int = 0
    groups_fired: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.requeued + self.failed + self.expired + self.groups_fired

    def __add__(self, other: Reaped) -> Reaped:
        return Reaped(
            requeued=self.requeued + other.requeued,
            failed=self.failed + other.failed,
            expired=self.expired + other.expired,
            groups_fired=self.groups_fired + other.groups_fired,
            kinds=Counter(self.kinds) + Counter(other.kinds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    attempt_id: AttemptId | None
    attempt_no: int
    worker: str | None
    claimed_at: datetime | None
    ended_at: datetime | None
    how: str
    detail: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as people see it; `attempts` is filled for one job, not in lists."""

    job_id: JobId
    kind: str
    queue: str
    priority: int
    status: Status
    attempt_no: int
    max_attempts: int
    created_at: datetime
    created_by: str | None
    payload: Json
    group_id: int | None
    lock_key: str | None
    unique_key: str | None
    retry_of: JobId | None
    worker: str | None
    claimed_at: datetime | None
    lease_until: datetime | None
    wake_at: datetime | None
    deadline: datetime | None
    finished_at: datetime | None
    polls: int
    progress: Json
    result: Json
    error: Json
    trace: str | None
    attempts: Sequence[AttemptView] = ()
