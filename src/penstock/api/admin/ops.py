"""Operator routes: trigger background loops, and show their status and the system state."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from penstock.api.errors import PUBLIC, declare
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import HasOperations, Loops, ServicesDep
from penstock.jobs.http_bodies import Body, Key
from penstock.kit.errors import InvalidInput, PayloadTooLarge
from penstock.kit.loop import Loop
from penstock.operations.loop_status import LoopView

router = APIRouter(
    prefix="/api/ops", tags=["operations"], route_class=StrictRoute, responses=declare(*PUBLIC)
)


class TriggerBody(Body):
    job_name: Annotated[Key, Field(examples=["lifecycle"])]
    reason: Annotated[Key, Field(examples=["After the upgrade"])]


class Triggered(BaseModel):
    job_name: str = Field(examples=["lifecycle"])
    triggered_at: datetime
    triggered_by: str = Field(examples=["operator"])
    reason: str
    status: Literal["queued"] = "queued"


class JobStatus(BaseModel):
    name: str = Field(examples=["lifecycle"])
    next_run: datetime | None
    last_run: datetime | None
    last_status: str | None = Field(examples=["success"])


class JobsStatus(BaseModel):
    jobs: list[JobStatus]


class InstanceState(BaseModel):
    total: int = Field(examples=[1])
    by_status: dict[str, int]
    without_pod_name: int


class SnapshotState(BaseModel):
    total: int = Field(examples=[1])
    by_status: dict[str, int]


class ExportState(BaseModel):
    by_status: dict[str, int]


class State(BaseModel):
    instances: InstanceState
    snapshots: SnapshotState
    export_jobs: ExportState


@router.post(
    "/jobs/trigger",
    summary="Run a background loop now",
    responses=declare(*PUBLIC, PayloadTooLarge),
)
async def trigger(
    body: TriggerBody, services: ServicesDep, operations: HasOperations, grant: Permit
) -> Data[Triggered]:
    """At most once a minute per loop, across all control planes; the pass starts once the loop's
    lock is free."""
    loop = _loop(services.loops, body.job_name)
    at = await operations.board.ask(loop.name, actor=grant.username, reason=body.reason)
    loop.trigger()
    return Data(
        data=Triggered(
            job_name=loop.name, triggered_at=at, triggered_by=grant.username, reason=body.reason
        )
    )


@router.get("/jobs/status", summary="Show the status of the background loops")
async def status(services: ServicesDep, operations: HasOperations, _: Permit) -> Data[JobsStatus]:
    """The last pass of each loop, on any control plane."""
    noted = await operations.board.views()
    return Data(
        data=JobsStatus(jobs=[_status(loop, noted.get(loop.name)) for loop in services.loops])
    )


@router.get("/state", summary="Count instances, snapshots and export jobs by status")
async def state(operations: HasOperations, _: Permit) -> Data[State]:
    instances = await operations.overview.instances()
    snapshots = await operations.overview.snapshots_by_status()
    return Data(
        data=State(
            instances=InstanceState(
                total=instances.total,
                by_status=instances.by_status,
                without_pod_name=instances.without_pod_name,
            ),
            snapshots=SnapshotState(total=sum(snapshots.values()), by_status=snapshots),
            export_jobs=ExportState(by_status=await operations.overview.exports_by_status()),
        )
    )


def _loop(loops: Loops, name: str) -> Loop[Any]:
    match = next((loop for loop in loops if loop.name == name), None)
    if match is None:
        names = sorted(loop.name for loop in loops)
        raise InvalidInput(
            "There is no background loop with this name.",
            hint=f"Known: {', '.join(names)}.",
            known=names,
        )
    return match


def _status(loop: Loop[Any], noted: LoopView | None) -> JobStatus:
    """Fast loops do not record each pass in the database; this process's own last pass may be
    newer."""
    last_run = noted.last_run if noted else None
    last_status = noted.last_status if noted else None
    if loop.last_run is not None:
        own = datetime.fromtimestamp(loop.last_run, UTC)
        if last_run is None or own > last_run:
            last_run, last_status = own, loop.last_status
    next_run = None if last_run is None else last_run + timedelta(seconds=loop.every)
    return JobStatus(name=loop.name, next_run=next_run, last_run=last_run, last_status=last_status)
