"""Adapter of the export worker API to the job kernel.

Claiming takes jobs that were never parked; polling takes parked jobs that are due. An update maps
to one of the kernel's fenced writes: a submitted or running query parks the job; `completed` and
`failed` end it; a row count alone is progress. An attempt that no longer holds the job changes
nothing and gets StaleAttempt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.graphs.snapshots.payloads import QUEUE, QueryState
from penstock.jobs.model import Ending, Failed, Fence, Parking, ProgressUpdate, Release, Succeeded
from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.errors import InvalidInput, StaleAttempt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from penstock.graphs.snapshots.export_job import ExportJob
    from penstock.graphs.snapshots.export_jobs import Exports
    from penstock.jobs.model import Claimed, Outcome
    from penstock.jobs.notifier import Line
    from penstock.jobs.store import PgJobStore

MAX_PAUSE = 100.0
"""A third of Trino's timeout for queries that are not polled."""
NewStatus: TypeAlias = Literal["submitted", "completed", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An update of a job by the attempt that holds it."""

    status: NewStatus | None = None
    query_id: str | None = None
    next_uri: str | None = None
    next_poll_at: datetime | None = None
    poll_count: int | None = None
    submitted_at: datetime | None = None
    row_count: int | None = None
    size_bytes: int | None = None
    error_message: str | None = None
    rows_so_far: int | None = None

    @property
    def polls(self) -> bool:
        """Whether the update says that the query still runs at Trino."""
        fields = (
            self.query_id,
            self.next_uri,
            self.next_poll_at,
            self.poll_count,
            self.submitted_at,
        )
        return self.status == "submitted" or (
            self.status is None and any(value is not None for value in fields)
        )


class ExportWorkerAdapter:
    def __init__(self, jobs: PgJobStore, exports: Exports, *, clock: Clock = SYSTEM) -> None:
        self._jobs = jobs
        self._exports = exports
        self._clock = clock

    async def claim(
        self, worker: str, limit: int, *, wait: float = 0, line: Line | None = None
    ) -> list[ExportJob]:
        claimed = await self._jobs.claim(worker, [QUEUE], limit, wait=wait, line=line, polled=False)
        return await self._with_fences(claimed)

    async def poll(self, worker: str, limit: int) -> list[ExportJob]:
        """Claim parked jobs that are due, with a new fence."""
        return await self._with_fences(await self._jobs.claim(worker, [QUEUE], limit, polled=True))

    async def give_back(self, jobs: Sequence[ExportJob], reason: str) -> None:
        fences = [
            Fence(job_id=job.job_id, attempt_id=job.attempt_id)
            for job in jobs
            if job.attempt_id is not None
        ]
        await self._jobs.release([Release(fence=fence, reason=reason) for fence in fences])

    async def update(self, job_id: int, attempt_id: UUID, change: Change) -> ExportJob:
        job = await self._exports.get(job_id)
        fence = Fence(job_id=job_id, attempt_id=attempt_id)
        if change.rows_so_far is not None:
            update = ProgressUpdate(fence=fence, progress={"rows": change.rows_so_far})
            _require_written(await self._jobs.progress([update]), fence)
        if change.polls:
            _require_written(await self._jobs.park([self._parking(fence, job, change)]), fence)
        elif change.status is not None:
            [verdict] = await self._jobs.finish(
                [Ending(fence=fence, outcome=_outcome(job, change))]
            )
            _require_written([verdict.accepted], fence)
        elif change.rows_so_far is None:
            raise InvalidInput("The update is empty.")
        return await self._exports.get(job_id)

    async def _with_fences(self, claimed: Sequence[Claimed]) -> list[ExportJob]:
        if not claimed:
            return []
        fences = {c.job_id: c.fence.attempt_id for c in claimed}
        jobs = await self._exports.these(list(fences))
        return [replace(job, attempt_id=fences[job.job_id]) for job in jobs]

    def _parking(self, fence: Fence, job: ExportJob, change: Change) -> Parking:
        query = self._query(job, change)
        pause = MAX_PAUSE
        if change.next_poll_at is not None:
            pause = (change.next_poll_at - self._clock.now()).total_seconds()
        return Parking(fence=fence, state=query.state(), wake_in=min(max(0.0, pause), MAX_PAUSE))

    def _query(self, job: ExportJob, change: Change) -> QueryState:
        old = job.query
        query_id = change.query_id or (old.query_id if old else None)
        next_uri = change.next_uri or (old.next_uri if old else None)
        if not query_id or not next_uri:
            raise InvalidInput(
                f"{job.order.entity}: a submitted job needs its starburst_query_id and next_uri."
            )
        base = old if old is not None and old.query_id == query_id else None
        submitted = change.submitted_at or self._clock.now()
        polls = (
            (base.poll_count if base else 0) + 1 if change.poll_count is None else change.poll_count
        )
        fresh = QueryState(
            query_id=query_id,
            next_uri=next_uri,
            poll_count=polls,
            submitted_at=submitted.astimezone(UTC).isoformat(),
        )
        if base is None:
            return replace(fresh, attempt_no=job.attempts)
        submitted_at = base.submitted_at if change.submitted_at is None else fresh.submitted_at
        return replace(
            base,
            next_uri=next_uri,
            poll_count=polls,
            submitted_at=submitted_at,
            attempt_no=job.attempts,
        )


def _require_written(answers: Sequence[bool], fence: Fence) -> None:
    if not all(answers):
        raise StaleAttempt(
            f"Export job {fence.job_id} is no longer held by attempt {fence.attempt_id}.",
            job_id=fence.job_id,
        )


def _outcome(job: ExportJob, change: Change) -> Outcome:
    if change.status == "failed":
        text = change.error_message or f"{job.order.entity}: failed without an error message."
        return Failed(error={"code": "EXPORT_FAILED", "message": text, "retryable": False})
    if change.row_count is None:
        raise InvalidInput(
            f"{job.order.entity}: a completed job needs its row_count.", field="row_count"
        )
    result: dict[str, object] = {"row_count": change.row_count, "size_bytes": change.size_bytes}
    if job.query is not None:
        result |= {"query": job.query.state(), "attempt": job.query.attempt}
    return Succeeded(result=result)
