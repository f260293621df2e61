"""Internal API of export workers: claim, poll and update export jobs.

Every update carries its attempt_id; an update of an expired attempt changes nothing.
"""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field, Strict

from penstock.api.errors import INTERNAL, declare
from penstock.api.pagination import Moment
from penstock.api.permissions import Inside
from penstock.api.requests.request_bodies import PayloadRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import Graphs, HasGraphs, ServicesDep
from penstock.graphs.snapshots.export_job import ExportJob, Word
from penstock.graphs.snapshots.payloads import QUEUE, JobType, Mode
from penstock.graphs.snapshots.worker_adapter import Change
from penstock.jobs.http_bodies import Body, Name, Text, Whole
from penstock.jobs.limits import MAX_JOB_ID, MAX_WAIT
from penstock.kit.errors import NotFound, StaleAttempt

router = APIRouter(
    prefix="/api/internal/export-jobs",
    tags=["internal"],
    route_class=PayloadRoute,
    dependencies=[Inside],
    responses=declare(*INTERNAL),
)
UPDATING = declare(NotFound, StaleAttempt, *INTERNAL)
MAX_CLAIM = 100
MAX_NUMBER = 2**63 - 1
JobId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]
Limit = Annotated[int, Query(ge=1, le=MAX_CLAIM)]
Count = Annotated[Whole, Field(ge=0, le=MAX_NUMBER)]
Uri = Annotated[str, Field(min_length=1, max_length=8000, pattern=r"^[^\x00]*$")]
Message = Annotated[str, Field(max_length=8000, pattern=r"^[^\x00]*$")]


class Source(BaseModel):
    """The data source. POST /api/internal/jobs/{id}/source returns its credentials while the worker
    holds the job."""

    data_source_id: int
    type: str = Field(examples=["trino"])


class Shown(BaseModel):
    """An export job."""

    id: int = Field(examples=[1])
    snapshot_id: int
    job_type: JobType
    entity_name: str = Field(examples=["Customer"])
    status: Word
    mode: Mode
    sql: str
    column_names: list[str]
    starburst_catalog: str | None
    starburst_role: str | None
    gcs_path: str = Field(description="The entity's own folder, with a trailing slash.")
    source: Source
    attempts: int
    created_at: datetime
    claimed_by: str | None
    claimed_at: datetime | None
    starburst_query_id: str | None
    next_uri: str | None
    next_poll_at: datetime | None
    poll_count: int
    submitted_at: datetime | None
    rows_so_far: int | None
    row_count: int | None
    size_bytes: int | None
    completed_at: datetime | None
    error_message: str | None


class Held(Shown):
    """An export job claimed by the caller."""

    attempt_id: UUID | None = Field(description="Required in every update.")
    lease_seconds: int


class Claimed(BaseModel):
    claimed: int
    jobs: list[Held]


class Due(BaseModel):
    jobs: list[Held]


class Attempts(BaseModel):
    attempts: list[str]


class ClaimBody(Body):
    worker_id: Annotated[Name, Field(examples=["export-worker-abc123"])]
    limit: Annotated[Whole, Field(ge=1, le=MAX_CLAIM)] = 10
    wait_seconds: Annotated[float, Strict(), Field(ge=0, le=MAX_WAIT)] = 0


class UpdateBody(Body):
    """`attempt_id` and the fields to update. The control plane sets the completion time itself."""

    attempt_id: UUID
    status: (
        Annotated[Literal["submitted", "completed", "failed"], Field(examples=["completed"])] | None
    ) = None
    starburst_query_id: Annotated[Text, Field(min_length=1)] | None = None
    next_uri: Uri | None = None
    next_poll_at: Moment | None = None
    poll_count: Annotated[Whole, Field(ge=0, le=1_000_000)] | None = None
    submitted_at: Moment | None = None
    row_count: Count | None = None
    size_bytes: Count | None = None
    completed_at: Moment | None = None
    error_message: Message | None = None
    rows_so_far: Count | None = None

    def value(self) -> Change:
        fields = self.model_dump(exclude={"attempt_id", "completed_at", "starburst_query_id"})
        return Change(**fields, query_id=self.starburst_query_id)


@router.post("/claim", summary="Claim pending export jobs", responses=declare(*INTERNAL))
async def claim(
    body: ClaimBody, request: Request, services: ServicesDep, graphs: HasGraphs
) -> Data[Claimed]:
    """Most urgent first; waits up to `wait_seconds` for the first job. Jobs claimed for a caller
    who disconnected are released."""
    async with services.polls.line(request) as line:
        claimed = await graphs.face.claim(
            body.worker_id, body.limit, wait=body.wait_seconds, line=line
        )
    jobs = await _handed_over(claimed, request, graphs)
    return Data(data=Claimed(claimed=len(jobs), jobs=jobs))


@router.get("/pollable", summary="Take submitted jobs whose query is due for polling")
async def pollable(
    request: Request, graphs: HasGraphs, limit: Limit = 10, worker_id: Name = "poller"
) -> Data[Due]:
    """Each job goes to one caller only, with a new attempt_id."""
    claimed = await graphs.face.poll(worker_id, limit)
    return Data(data=Due(jobs=await _handed_over(claimed, request, graphs)))


@router.get("/attempts", summary="List the attempts whose files may still be needed")
async def attempts(graphs: HasGraphs) -> Data[Attempts]:
    """For the storage sweep, which deletes files that no manifest names and no attempt can still
    commit."""
    return Data(data=Attempts(attempts=await graphs.exports.live_attempts(QUEUE)))


@router.get("/{job_id:int}", summary="Show an export job", responses=declare(NotFound))
async def job(job_id: JobId, graphs: HasGraphs) -> Data[Shown]:
    return Data(data=shown(await graphs.exports.get(job_id), graphs))


@router.patch("/{job_id:int}", summary="Update an export job", responses=UPDATING)
@router.put("/{job_id:int}", summary="Update an export job", responses=UPDATING)
async def update(job_id: JobId, body: UpdateBody, graphs: HasGraphs) -> Data[Shown]:
    """A submitted job, or one whose query is still running, can be polled by any worker from
    `next_poll_at`."""
    changed = await graphs.face.update(job_id, body.attempt_id, body.value())
    return Data(data=shown(changed, graphs))


async def _handed_over(jobs: list[ExportJob], request: Request, graphs: Graphs) -> list[Held]:
    if jobs and await request.is_disconnected():
        await graphs.face.give_back(jobs, "The worker disconnected before it received the job.")
        return []
    return [
        Held(
            **shown(job, graphs).model_dump(),
            attempt_id=job.attempt_id,
            lease_seconds=job.lease_seconds,
        )
        for job in jobs
    ]


def shown(job: ExportJob, graphs: Graphs) -> Shown:
    export, query = job.order.wanted, job.query
    return Shown(
        id=job.job_id,
        snapshot_id=job.order.snapshot_id,
        job_type=export.entity.job_type,
        entity_name=export.entity.name,
        status=job.status,
        mode=export.mode,
        sql=export.sql,
        column_names=[column.name for column in export.columns],
        starburst_catalog=export.starburst_catalog,
        starburst_role=export.starburst_role,
        gcs_path=graphs.path(job.order.prefix),
        source=Source(data_source_id=job.order.data_source_id, type=job.order.source_type),
        attempts=job.attempts,
        created_at=job.created_at,
        claimed_by=job.claimed_by,
        claimed_at=job.claimed_at,
        starburst_query_id=query.query_id if query else None,
        next_uri=query.next_uri if query and job.completed_at is None else None,
        next_poll_at=job.next_poll_at,
        poll_count=query.poll_count if query else 0,
        submitted_at=datetime.fromisoformat(query.submitted_at) if query else None,
        rows_so_far=job.rows_so_far,
        row_count=job.row_count,
        size_bytes=job.size_bytes,
        completed_at=job.completed_at,
        error_message=job.error_message,
    )
