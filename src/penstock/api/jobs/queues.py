"""Routes of queues, workers, the drain switch and the audit log."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Page
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import ServicesDep
from penstock.jobs.http_bodies import Body, Text
from penstock.kit.errors import PayloadTooLarge
from penstock.kit.json_value import JsonValue

router = APIRouter(prefix="/api", tags=["operations"], route_class=StrictRoute)


class View(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class Queue(View):
    queue: str = Field(examples=["default"])
    ready: int
    running: int
    parked: int
    scheduled: int
    oldest_wait: float | None = Field(
        description="How long the most urgent ready job has waited, in seconds."
    )
    estimated: bool = Field(
        description="Whether the count is an estimate because the queue is too large to count."
    )


class Worker(View):
    name: str
    started_at: datetime
    seen_at: datetime
    running: int
    slots: int
    queues: list[str]
    version: str
    seconds_ago: float


class Drain(View):
    draining: bool
    reason: str
    changed_at: datetime
    changed_by: str


class DrainBody(Body):
    draining: Annotated[StrictBool, Field(examples=[False])]
    reason: Annotated[Text, Field(examples=["Upgrade"])] = ""


class AuditEntry(View):
    at: datetime
    actor: str = Field(examples=["operator"])
    action: str = Field(examples=["job.cancel"])
    subject: str = Field(examples=["job:1"])
    detail: JsonValue


class QueueQuery(Page):
    sort_by: Literal["queue"] = "queue"
    sort_order: Literal["asc", "desc"] = "asc"


class WorkerQuery(Page):
    sort_by: Literal["seen_at"] = "seen_at"


class AuditQuery(Page):
    sort_by: Literal["at", "created_at"] = "at"
    subject: (
        Annotated[Text, Field(description="Such as job:1, or system.", examples=["system"])] | None
    ) = None


@router.get("/queues", summary="List queues", responses=declare(*PUBLIC))
async def queues(
    query: Annotated[QueueQuery, Query()], request: Request, services: ServicesDep, _: Permit
) -> Listing[Queue]:
    """Counts waiting, running, parked and scheduled jobs of each queue that is not empty."""
    rows = [Queue.model_validate(q) for q in await services.browser.queues()]
    return query.cut(rows if query.ascending else rows[::-1], request)


@router.get("/workers", summary="List workers", responses=declare(*PUBLIC))
async def workers(
    query: Annotated[WorkerQuery, Query()], request: Request, services: ServicesDep, _: Permit
) -> Listing[Worker]:
    """Workers seen in the last five minutes."""
    rows = [Worker.model_validate(w) for w in await services.browser.workers()]
    return query.cut(rows[::-1] if query.ascending else rows, request)


@router.get("/drain", summary="Is the system draining?", responses=declare(*PUBLIC))
async def drain(services: ServicesDep, _: Permit) -> Data[Drain]:
    """While draining, no new jobs are accepted; queued and running jobs continue."""
    return Data(data=Drain.model_validate(dict(await services.store.control())))


@router.put(
    "/drain", summary="Stop or resume accepting jobs", responses=declare(*PUBLIC, PayloadTooLarge)
)
async def set_drain(body: DrainBody, services: ServicesDep, grant: Permit) -> Data[Drain]:
    """Applies to every control plane of the deployment at once."""
    control = await services.store.drain(body.draining, actor=grant.username, reason=body.reason)
    return Data(data=Drain.model_validate(dict(control)))


@router.get("/audit", summary="List the audit log", responses=declare(*PUBLIC))
async def audit(
    query: Annotated[AuditQuery, Query()], request: Request, services: ServicesDep, _: Permit
) -> Listing[AuditEntry]:
    """Newest first: actor, action, subject and time."""
    entries, total = await services.browser.audit(
        query.subject, offset=query.offset, limit=query.limit, ascending=query.ascending
    )
    return query.of([AuditEntry.model_validate(e) for e in entries], total, request)
