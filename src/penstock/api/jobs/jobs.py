"""Public routes of jobs: list, show, enqueue, cancel and retry."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Moment, Page
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import PayloadRoute
from penstock.api.schema.envelope import Data, Listing, Reply
from penstock.api.services import ServicesDep
from penstock.jobs import model
from penstock.jobs.browser import Filter, StatusFilter, StatusWord
from penstock.jobs.http_bodies import Body, JobBody, Name, Text
from penstock.jobs.limits import MAX_JOB_ID
from penstock.jobs.model import JobView, Status
from penstock.kit.errors import (
    Conflict,
    Draining,
    InvalidState,
    NotFound,
    PayloadTooLarge,
    ResourceLocked,
)
from penstock.kit.json_value import JsonValue
from penstock.maintenance.payloads import MAINTENANCE, REMOTE

router = APIRouter(prefix="/api/jobs", tags=["jobs"], route_class=PayloadRoute)
JobId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]


MaintenanceStatus = Literal["pending", "running", "completed", "failed", "cancelled"]
_OF_MAINTENANCE: dict[Status, MaintenanceStatus] = {
    Status.READY: "pending",
    Status.SCHEDULED: "pending",
    Status.RUNNING: "running",
    Status.PARKED: "running",
    Status.SUCCEEDED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
}
"""A parked job counts as running: its statement runs on an external engine."""


class JobSummary(BaseModel):
    """A job in a list."""

    id: int = Field(validation_alias="job_id", examples=[1])
    kind: str = Field(examples=["probe"])
    queue: str = Field(examples=["default"])
    priority: int = Field(examples=[5])
    status: StatusWord
    attempt_no: int
    max_attempts: int
    created_at: datetime
    created_by: str | None
    group_id: int | None
    lock_key: str | None
    unique_key: str | None
    retry_of: int | None = Field(description="The job that this one retries.")
    worker: str | None
    claimed_at: datetime | None
    lease_until: datetime | None
    wake_at: datetime | None = Field(description="When a scheduled or parked job is due.")
    deadline: datetime | None
    finished_at: datetime | None
    polls: int
    progress: JsonValue
    error: JsonValue


class Attempt(BaseModel):
    """One claim of the job; `attempt_id` is its fence."""

    model_config = ConfigDict(from_attributes=True)

    attempt_id: UUID | None
    attempt_no: int
    worker: str | None
    claimed_at: datetime | None
    ended_at: datetime | None
    how: str = Field(examples=["succeeded"])
    detail: JsonValue


class Lock(BaseModel):
    key: str
    held: bool = Field(description="Until the job is over.")


class JobDetail(JobSummary):
    payload: JsonValue
    result: JsonValue
    trace: str | None
    lock: Lock | None
    attempts: list[Attempt]
    maintenance_status: MaintenanceStatus | None = Field(
        description="For a maintenance job, its status in the terms of maintenance clients;"
        " else null."
    )


class Enqueued(BaseModel):
    id: int = Field(examples=[1])
    created: bool = Field(description="False: it already existed, and `id` is the existing job.")


class Cancelled(BaseModel):
    id: int = Field(examples=[1])
    status: Literal["cancelled"] = "cancelled"
    newly: bool = Field(description="False: it was already cancelled.")


class CancelReason(Body):
    reason: Annotated[Text, Field(examples=["No longer needed"])] = ""


class JobQuery(Page):
    sort_by: Literal["created_at", "id"] = "created_at"
    status: Annotated[
        StatusFilter | None,
        Field(description="`pending` is an alias of queued, `completed` of succeeded."),
    ] = None
    kind: Name | None = None
    queue: Name | None = None
    group_id: Annotated[int, Field(ge=1, le=MAX_JOB_ID)] | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None

    def filter(self) -> Filter:
        return Filter(**{name: getattr(self, name) for name in Filter.__slots__})


@router.get("", summary="List jobs", response_model=Listing[JobSummary], responses=declare(*PUBLIC))
async def list_jobs(
    query: Annotated[JobQuery, Query()], request: Request, services: ServicesDep, _: Permit
) -> Reply:
    """Newest first, without payloads and results."""
    page, total = await services.browser.jobs(
        query.filter(), offset=query.offset, limit=query.limit, ascending=query.ascending
    )
    return query.reply(page, total, request)


@router.post(
    "",
    summary="Enqueue a job",
    status_code=201,
    response_model=Data[Enqueued],
    responses=declare(*PUBLIC, PayloadTooLarge, ResourceLocked, Conflict, InvalidState, Draining)
    | {
        200: {
            "model": Data[Enqueued],
            "description": "A job with this unique key already exists.",
        }
    },
)
async def enqueue(body: JobBody, services: ServicesDep, grant: Permit) -> Reply:
    """409 with the holder if the job's lock is held; 503 while the system drains."""
    added = await services.store.submit(body.value(), actor=grant.username)
    content = {"data": {"id": added.job_id, "created": added.created}}
    return Reply(content, status_code=201 if added.created else 200)


@router.get("/{job_id}", summary="Show a job", responses=declare(*PUBLIC, NotFound))
async def show(job_id: JobId, services: ServicesDep, _: Permit) -> Data[JobDetail]:
    """Includes every attempt with its fence, and the lock."""
    return Data(data=detail(await services.store.job(job_id)))


@router.post(
    "/{job_id}/cancel",
    summary="Cancel a job",
    responses=declare(*PUBLIC, NotFound, InvalidState, PayloadTooLarge),
)
async def cancel(
    job_id: JobId, services: ServicesDep, grant: Permit, body: CancelReason | None = None
) -> Data[Cancelled]:
    """Cancels it at once, in any state; a running worker learns of it at its next write."""
    reason = body.reason if body else ""
    done = await services.store.cancel(job_id, actor=grant.username, reason=reason)
    return Data(data=Cancelled(id=done.job_id, newly=done.newly))


@router.post(
    "/{job_id}/retry",
    summary="Retry a job",
    status_code=201,
    responses=declare(*PUBLIC, NotFound, InvalidState, ResourceLocked, Draining)
    | {
        200: {
            "model": Data[Enqueued],
            "description": "It was already retried; `id` is the new job.",
        }
    },
)
async def retry(
    job_id: JobId, response: Response, services: ServicesDep, grant: Permit
) -> Data[Enqueued]:
    """Creates a new job with the same payload for a failed or cancelled one, since a finished job
    never changes."""
    return _enqueued(await services.store.retry(job_id, actor=grant.username), response)


def _enqueued(added: model.Enqueued, response: Response) -> Data[Enqueued]:
    if not added.created:
        response.status_code = 200
    return Data(data=Enqueued(id=added.job_id, created=added.created))


def detail(view: JobView) -> JobDetail:
    lock = None if view.lock_key is None else Lock(key=view.lock_key, held=not view.status.over)
    maintenance = maintenance_status(view.status) if view.kind in (MAINTENANCE, REMOTE) else None
    return JobDetail.model_validate(
        _values(view) | {"lock": lock, "maintenance_status": maintenance}
    )


def maintenance_status(status: Status) -> MaintenanceStatus:
    return _OF_MAINTENANCE[status]


def _values(view: JobView) -> dict[str, object]:
    return {name: getattr(view, name) for name in JobView.__slots__} | {"status": view.status.word}
