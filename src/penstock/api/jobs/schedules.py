"""Routes of schedules, which enqueue jobs by a cron expression."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field, StrictBool

from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Page
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import PayloadRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import ServicesDep
from penstock.jobs import scheduler
from penstock.jobs.http_bodies import NAME_PATTERN, Body, JobBody, Text
from penstock.jobs.wire import dump_spec
from penstock.kit.errors import NotFound, PayloadTooLarge
from penstock.kit.json_value import JsonObject

router = APIRouter(prefix="/api/schedules", tags=["schedules"], route_class=PayloadRoute)
ScheduleName = Annotated[str, Path(pattern=NAME_PATTERN, max_length=200, examples=["nightly"])]


class Schedule(BaseModel):
    name: str = Field(examples=["nightly"])
    cron: str = Field(examples=["0 3 * * *"])
    zone: str = Field(examples=["Europe/Vienna"])
    enabled: bool
    next_at: datetime | None
    last_at: datetime | None
    last_job: int | None
    job: JsonObject = Field(description="The job's fields; the rest are its kind's defaults.")


class ScheduleBody(Body):
    cron: Annotated[Text, Field(max_length=200, examples=["0 3 * * *"])]
    zone: Annotated[
        Text, Field(max_length=64, description="A time zone's name.", examples=["Europe/Vienna"])
    ] = "UTC"
    enabled: Annotated[StrictBool, Field(examples=[True])] = True
    job: JobBody


class ScheduleQuery(Page):
    sort_by: Literal["name"] = "name"
    sort_order: Literal["asc", "desc"] = "asc"


class Dropped(BaseModel):
    name: str = Field(examples=["nightly"])


@router.get("", summary="List schedules", responses=declare(*PUBLIC))
async def list_schedules(
    query: Annotated[ScheduleQuery, Query()], request: Request, services: ServicesDep, _: Permit
) -> Listing[Schedule]:
    """Includes the time of the next tick and the last job."""
    rows = [_schedule(s) for s in await services.schedules.all()]
    return query.cut(rows if query.ascending else rows[::-1], request)


@router.get("/{name}", summary="Show a schedule", responses=declare(*PUBLIC, NotFound))
async def show(name: ScheduleName, services: ServicesDep, _: Permit) -> Data[Schedule]:
    return Data(data=_schedule(await services.schedules.get(name)))


@router.put(
    "/{name}", summary="Add or replace a schedule", responses=declare(*PUBLIC, PayloadTooLarge)
)
async def put(
    name: ScheduleName, body: ScheduleBody, services: ServicesDep, grant: Permit
) -> Data[Schedule]:
    """Its next tick counts from now. Each tick enqueues at most one job; missed ticks enqueue one
    together."""
    schedule = scheduler.Schedule(
        name=name, cron=body.cron, zone=body.zone, enabled=body.enabled, spec=body.job.value()
    )
    return Data(data=_schedule(await services.schedules.put(schedule, actor=grant.username)))


@router.delete("/{name}", summary="Drop a schedule", responses=declare(*PUBLIC, NotFound))
async def drop(name: ScheduleName, services: ServicesDep, grant: Permit) -> Data[Dropped]:
    """Keeps the jobs that it enqueued."""
    await services.schedules.drop(name, actor=grant.username)
    return Data(data=Dropped(name=name))


def _schedule(schedule: scheduler.Schedule) -> Schedule:
    return Schedule(
        name=schedule.name,
        cron=schedule.cron,
        zone=schedule.zone,
        enabled=schedule.enabled,
        next_at=schedule.next_at,
        last_at=schedule.last_at,
        last_job=schedule.last_job,
        job=dump_spec(schedule.spec),
    )
