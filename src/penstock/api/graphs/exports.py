"""Export jobs of all snapshots: list, retry and cancel."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from penstock.api.errors import PUBLIC, declare
from penstock.api.jobs.jobs import CancelReason
from penstock.api.pagination import Page
from penstock.api.permissions import Grant, Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Meta, request_id
from penstock.api.services import HasGraphs, HasOperations, Operations, ServicesDep
from penstock.graphs.errors import InvalidStateTransition
from penstock.graphs.snapshots.export_job import Word
from penstock.graphs.snapshots.payloads import JobType
from penstock.graphs.snapshots.repository import MAX_ID
from penstock.jobs.limits import MAX_JOB_ID
from penstock.kit.errors import Draining, InvalidState, NotFound, PayloadTooLarge
from penstock.operations.overview import ExportSummary

router = APIRouter(prefix="/api", tags=["exports"], route_class=StrictRoute)
JobId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]
CHANGES = declare(*PUBLIC, NotFound, InvalidState, InvalidStateTransition, Draining)


class Export(BaseModel):
    id: int = Field(examples=[1])
    snapshot_id: int = Field(examples=[1])
    entity_type: JobType
    entity_name: str = Field(examples=["Customer"])
    status: Word
    claimed_at: datetime | None
    claimed_by: str | None
    attempts: int
    error_message: str | None


class Exports(BaseModel):
    jobs: list[Export]


class ExportPage(BaseModel):
    data: Exports
    meta: Meta


class ExportQuery(Page):
    sort_by: Literal["created_at", "id"] = "created_at"
    status: Word | None = None
    snapshot_id: Annotated[int, Field(ge=1, le=MAX_ID)] | None = None


@router.get("/exports", summary="List exports", responses=declare(*PUBLIC))
@router.get("/export-jobs", summary="List export jobs", responses=declare(*PUBLIC))
@router.get(
    "/ops/export-jobs", summary="List export jobs, for operators", responses=declare(*PUBLIC)
)
async def exports(
    query: Annotated[ExportQuery, Query()], request: Request, operations: HasOperations, _: Permit
) -> ExportPage:
    """The export jobs of all snapshots, newest first."""
    jobs, total = await operations.overview.export_jobs(
        status=query.status,
        snapshot_id=query.snapshot_id,
        offset=query.offset,
        limit=query.limit,
        ascending=query.ascending,
    )
    meta = Meta(total=total, offset=query.offset, limit=query.limit, request_id=request_id(request))
    return ExportPage(data=Exports(jobs=[_view(job) for job in jobs]), meta=meta)


@router.post("/exports/{job_id}/retry", summary="Export again what failed", responses=CHANGES)
async def retry(
    job_id: JobId, graphs: HasGraphs, operations: HasOperations, grant: Permit
) -> Data[Export]:
    """Retries its whole snapshot: all entities that did not complete are exported again. Returns
    the new job that replaces the failed one."""
    failed = await _reached(job_id, operations, grant)
    if failed.status != "failed":
        raise InvalidState(
            f"Export job {job_id} is {failed.status}; only a failed job can be retried."
        )
    await graphs.rights.check_snapshot(failed.snapshot_id, grant.username, is_admin=grant.is_admin)
    entity = (await graphs.exports.get(job_id)).order.wanted.entity
    jobs = await graphs.exports.retry(failed.snapshot_id)
    again = next(job for job in jobs if job.order.wanted.entity == entity)
    return Data(data=_view(await operations.overview.export_job(again.job_id)))


@router.post(
    "/exports/{job_id}/cancel",
    summary="Cancel an export",
    responses=declare(*PUBLIC, NotFound, InvalidState, PayloadTooLarge),
)
async def cancel(
    job_id: JobId,
    services: ServicesDep,
    operations: HasOperations,
    grant: Permit,
    body: CancelReason | None = None,
) -> Data[Export]:
    """Cancels it at once; its snapshot fails, and can be retried."""
    await _reached(job_id, operations, grant)
    await services.store.cancel(job_id, actor=grant.username, reason=body.reason if body else "")
    return Data(data=_view(await operations.overview.export_job(job_id)))


async def _reached(job_id: int, operations: Operations, grant: Grant) -> ExportSummary:
    job = await operations.overview.export_job(job_id)
    grant.over(job.owner_username)
    return job


def _view(job: ExportSummary) -> Export:
    return Export(
        id=job.job_id,
        snapshot_id=job.snapshot_id,
        entity_type=job.entity_type,
        entity_name=job.entity_name,
        status=job.status,
        claimed_at=job.claimed_at,
        claimed_by=job.claimed_by,
        attempts=job.attempts,
        error_message=job.error_message,
    )
