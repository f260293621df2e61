"""Internal API of the jobs that stage sources for reconciliation runs."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, Strict

from penstock.api.errors import INTERNAL, declare
from penstock.api.permissions import Inside
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import HasReconciliation, ServicesDep
from penstock.jobs.http_bodies import Body, Id
from penstock.jobs.limits import MAX_BATCH, MAX_WAIT

router = APIRouter(
    prefix="/api/internal/runs/chunks",
    tags=["internal"],
    route_class=StrictRoute,
    dependencies=[Inside],
    responses=declare(*INTERNAL),
)


class ChunksBody(Body):
    jobs: Annotated[list[Id], Field(min_length=1, max_length=MAX_BATCH, examples=[[1, 2]])]
    wait_seconds: Annotated[float, Strict(), Field(ge=0, le=MAX_WAIT)] = 0


class EndedChunk(BaseModel):
    job_id: int = Field(examples=[1])
    status: int = Field(description="As in the kernel: 10 succeeded, 11 failed, 12 cancelled.")


class EndedChunks(BaseModel):
    jobs: list[EndedChunk]


@router.post("/ended", summary="Wait for the ends of chunk jobs")
async def ended(
    body: ChunksBody, request: Request, services: ServicesDep, it: HasReconciliation
) -> Data[EndedChunks]:
    """Those of the jobs that are over; waits up to `wait_seconds` for the first of them."""
    async with services.polls.line(request) as line:
        statuses = await it.chunk_ends.ended(body.jobs, wait=body.wait_seconds, line=line)
    jobs = [EndedChunk(job_id=job_id, status=status) for job_id, status in statuses.items()]
    return Data(data=EndedChunks(jobs=jobs))
