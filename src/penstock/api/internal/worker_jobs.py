"""The kernel's verbs for workers, over HTTP. Thin: a body becomes the kernel's words, its answer
becomes JSON.

Batches answer 200 with one verdict an item: a stale attempt is an answer, not an error of the call.
"""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from penstock.api.errors import INTERNAL, declare
from penstock.api.permissions import Inside
from penstock.api.requests.request_bodies import PayloadRoute
from penstock.api.schema.envelope import Data, Reply
from penstock.api.services import Services, ServicesDep
from penstock.jobs import http_bodies, wire
from penstock.jobs.limits import MAX_JOB_ID
from penstock.jobs.model import Claimed, Release, Verdict
from penstock.kit import logging
from penstock.kit.errors import Conflict, Draining, InvalidState, NotFound, ResourceLocked
from penstock.kit.json_value import JsonObject, JsonValue

router = APIRouter(
    prefix="/api/internal/jobs",
    tags=["internal"],
    route_class=PayloadRoute,
    dependencies=[Inside],
    responses=declare(*INTERNAL),
)
log = logging.get(__name__)


class Enqueued(BaseModel):
    job_id: int = Field(examples=[1])
    created: bool


class EnqueuedJobs(BaseModel):
    jobs: list[Enqueued]


class Fence(BaseModel):
    job_id: int = Field(examples=[1])
    attempt_id: UUID


class ClaimedJob(Fence):
    kind: str = Field(examples=["probe"])
    queue: str = Field(examples=["default"])
    payload: JsonValue
    state: JsonValue = Field(description="State saved by the attempt that parked the job.")
    attempt_no: int
    max_attempts: int
    lease_seconds: int
    seconds_left: float
    waited: float
    polls: int
    unhandled: int = Field(
        description="How many workers in a row postponed it for lack of a handler."
    )
    group_id: int | None
    lock_key: str | None
    trace: str | None


class ClaimedJobs(BaseModel):
    jobs: list[ClaimedJob]


class Verdicts(BaseModel):
    verdicts: list[Verdict]


class Exchanged(ClaimedJobs, Verdicts):
    pass


class Registered(BaseModel):
    requeued: int = Field(
        description="Attempts of an earlier process with this name that were requeued."
    )
    failed: int = Field(description="Attempts that failed because no retries were left.")
    shared: bool = Field(description="Two live processes use this name: nothing was requeued.")


class Renewal(BaseModel):
    lost: list[Fence]
    cancelled: list[Fence]
    superseded: bool = Field(
        description="Another process registered this worker's name and took over its attempts."
    )


class Written(BaseModel):
    written: list[bool] = Field(description="False: the fence was rotated and nothing was written.")


class Cancelled(BaseModel):
    job_id: int = Field(examples=[1])
    newly: bool


class Nothing(BaseModel):
    pass


@router.post(
    "/enqueue",
    summary="Enqueue jobs, all or none",
    response_model=Data[EnqueuedJobs],
    responses=declare(ResourceLocked, Conflict, InvalidState, *INTERNAL, Draining),
)
async def enqueue(body: http_bodies.EnqueueBody, services: ServicesDep) -> Reply:
    added = await services.store.enqueue([job.value() for job in body.jobs])
    return _data({"jobs": [wire.dump_enqueued(a) for a in added]})


@router.post(
    "/register",
    summary="Start as a worker, in the place of an earlier process of its name",
    response_model=Data[Registered],
    responses=declare(Conflict, *INTERNAL),
)
async def register(body: http_bodies.RegistrationBody, services: ServicesDep) -> Reply:
    """Call once, before the first claim; idempotent. Attempts of an earlier process with this name
    are requeued."""
    return _data(wire.dump_registered(await services.store.register(body.value())))


@router.post(
    "/claim", summary="Claim jobs, waiting for the first", response_model=Data[ClaimedJobs]
)
async def claim(body: http_bodies.ClaimBody, request: Request, services: ServicesDep) -> Reply:
    """Most urgent first. Nothing is claimed for a caller who disconnects while waiting."""
    async with services.polls.line(request, worker=body.worker, session=body.session) as line:
        claimed = await services.store.claim(
            body.worker,
            body.queues,
            body.limit,
            wait=body.wait_seconds,
            session=body.session,
            line=line,
        )
    return _data({"jobs": await _handed_over(claimed, request, services)})


@router.post(
    "/exchange", summary="Finish and claim in one round trip", response_model=Data[Exchanged]
)
async def exchange(
    body: http_bodies.ExchangeBody, request: Request, services: ServicesDep
) -> Reply:
    """Outcomes are recorded before the wait begins."""
    endings = [ending.value() for ending in body.endings]
    async with services.polls.line(request, worker=body.worker, session=body.session) as line:
        done = await services.store.exchange(
            endings,
            body.worker,
            body.queues,
            body.limit,
            wait=body.wait_seconds,
            session=body.session,
            line=line,
        )
    return _data(
        {"verdicts": done.verdicts, "jobs": await _handed_over(done.claimed, request, services)}
    )


@router.post("/finish", summary="Write the ends of attempts", response_model=Data[Verdicts])
async def finish(body: http_bodies.FinishBody, services: ServicesDep) -> Reply:
    """An outcome is written once: the same attempt again is `repeated`, a write under a rotated
    fence is `stale`."""
    return _data(
        {"verdicts": await services.store.finish([ending.value() for ending in body.endings])}
    )


@router.post("/renew", summary="Extend the leases of a worker", response_model=Data[Renewal])
async def renew(body: http_bodies.HeartbeatBody, services: ServicesDep) -> Reply:
    """A worker's heartbeat: renews its leases and returns the attempts that it must abandon."""
    return _data(wire.dump_renewal(await services.store.renew(body.value())))


@router.post("/progress", summary="Show how far attempts are", response_model=Data[Written])
async def progress(body: http_bodies.ProgressBody, services: ServicesDep) -> Reply:
    return _data(
        {"written": await services.store.progress([update.value() for update in body.updates])}
    )


@router.post("/park", summary="Give jobs up without ending them", response_model=Data[Written])
async def park(body: http_bodies.ParkBody, services: ServicesDep) -> Reply:
    """Their work continues on an external engine; any worker may check again after `wake_in`
    seconds."""
    return _data(
        {"written": await services.store.park([parking.value() for parking in body.parkings])}
    )


@router.post("/release", summary="Hand jobs back, uncounted", response_model=Data[Written])
async def release(body: http_bodies.ReleaseBody, services: ServicesDep) -> Reply:
    return _data(
        {"written": await services.store.release([released.value() for released in body.releases])}
    )


@router.post(
    "/cancel",
    summary="End a job at once and for good",
    response_model=Data[Cancelled],
    responses=declare(NotFound, InvalidState),
)
async def cancel(body: http_bodies.CancelBody, services: ServicesDep) -> Reply:
    return _data(
        wire.dump_cancelled(
            await services.store.cancel(body.job_id, actor=body.actor, reason=body.reason)
        )
    )


@router.post("/farewell", summary="Take a worker off the list", response_model=Data[Nothing])
async def farewell(body: http_bodies.LeaveBody, services: ServicesDep) -> Reply:
    await services.store.farewell(body.worker, body.session)
    return _data({})


@router.get(
    "/{job_id:int}",
    summary="Show a job in the kernel's words",
    response_model=Data[JsonObject],
    responses=declare(NotFound),
)
async def job(
    job_id: Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])], services: ServicesDep
) -> Reply:
    return _data(wire.dump_job(await services.store.job(job_id)))


async def _handed_over(
    claimed: Sequence[Claimed], request: Request, services: Services
) -> list[wire.Document]:
    """The claims as sent; if the caller has disconnected, they are released without counting an
    attempt."""
    if claimed and await request.is_disconnected():
        log.info("claim_given_back", jobs=[c.job_id for c in claimed])
        await services.store.release(
            [
                Release(fence=c.fence, reason="The worker disconnected before it received the job.")
                for c in claimed
            ]
        )
        return []
    return [wire.dump_claimed(c) for c in claimed]


def _data(data: object) -> Reply:
    return Reply({"data": data})
