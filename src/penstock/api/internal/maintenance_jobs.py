"""Internal API of maintenance workers; every read and write is fenced by the attempt that holds the
job."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from penstock.api.errors import INTERNAL, declare
from penstock.api.permissions import Inside
from penstock.api.requests.request_bodies import PayloadRoute
from penstock.api.schema.envelope import Data, Reply
from penstock.api.services import HasMaintenance, ServicesDep
from penstock.jobs.http_bodies import Body
from penstock.jobs.limits import MAX_JOB_ID
from penstock.jobs.model import Fence
from penstock.jobs.store import PgJobStore
from penstock.kit.errors import NotFound, StaleAttempt
from penstock.kit.json_value import JsonObject
from penstock.maintenance.actions.model import Ended, Name
from penstock.maintenance.errors import NoSuchTable
from penstock.maintenance.payloads import CANCEL_REMOTE, EMBEDDED, MAINTENANCE, REMOTE, Order

router = APIRouter(
    prefix="/api/internal/maintenance",
    tags=["internal"],
    route_class=PayloadRoute,
    dependencies=[Inside],
    responses=declare(NotFound, StaleAttempt, *INTERNAL),
)
JobId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]
Location = Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00]*$")]


class Holding(Body):
    attempt_id: UUID

    def fence(self, job_id: int) -> Fence:
        return Fence(job_id=job_id, attempt_id=self.attempt_id)


class Swap(Holding):
    old: Location
    new: Location


class OutcomeBody(BaseModel):
    """One schema for all engines; other fields are stored unchanged."""

    model_config = {"extra": "allow"}

    action: Name
    status: Ended


class Ending(Holding):
    outcome: OutcomeBody


class EndedActions(BaseModel):
    outcomes: list[JsonObject]


class CatalogCredentials(BaseModel):
    name: str
    type: str
    uri: str | None
    shared: bool = Field(
        description="It is in the job store's database: read and swap the pointer here."
    )
    properties: dict[str, str]
    engine: dict[str, str] | None = Field(description="Connection settings of a remote engine.")


class Held(BaseModel):
    held: Literal[True] = True


class Pointer(BaseModel):
    metadata_location: str


class Moved(BaseModel):
    moved: bool = Field(description="False: another commit changed the table first.")


class OtherTable(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    catalog: str
    db: str
    table: str
    metadata_location: str | None = Field(description="Of a table in the job store's database.")
    location: str | None = Field(description="Of another catalog's table, as last seen.")


class OtherTables(BaseModel):
    tables: list[OtherTable]


@router.post(
    "/{job_id:int}/catalog",
    summary="Get what opens a job's catalog",
    response_model=Data[CatalogCredentials],
)
async def catalog(
    job_id: JobId, body: Holding, services: ServicesDep, maintenance: HasMaintenance
) -> Reply:
    order = await _order(services.store, job_id)
    async with services.store.fenced_transaction(body.fence(job_id)):
        config = maintenance.service.pool.catalogs.get(order.name.catalog)
    shown = CatalogCredentials(
        name=config.name,
        type=config.type,
        uri=config.uri,
        shared=config.shared,
        properties=dict(config.properties),
        engine=None
        if order.engine == EMBEDDED
        else dict(maintenance.service.pool.catalogs.engines[order.engine]),
    )
    answer = Reply({"data": shown.model_dump()})
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.post("/{job_id:int}/hold", summary="Ask whether the attempt still holds its job")
async def hold(
    job_id: JobId, body: Holding, services: ServicesDep, _: HasMaintenance
) -> Data[Held]:
    async with services.store.fenced_transaction(body.fence(job_id)):
        return Data(data=Held())


@router.post("/{job_id:int}/pointer", summary="Get where the metadata of a job's table is")
async def pointer(
    job_id: JobId, body: Holding, services: ServicesDep, maintenance: HasMaintenance
) -> Data[Pointer]:
    order = await _order(services.store, job_id)
    async with services.store.fenced_transaction(body.fence(job_id)) as tx:
        location = await maintenance.service.store.pointer(tx, order.name)
    if location is None:
        raise NoSuchTable(f"There is no table {order.name}.")
    return Data(data=Pointer(metadata_location=location))


@router.post("/{job_id:int}/swap", summary="Commit to a job's table")
async def swap(
    job_id: JobId, body: Swap, services: ServicesDep, maintenance: HasMaintenance
) -> Data[Moved]:
    """The fence check and the swap are one transaction: a worker that lost its job cannot
    commit."""
    order = await _order(services.store, job_id)
    async with services.store.fenced_transaction(body.fence(job_id)) as tx:
        moved = await maintenance.service.store.swap(tx, order.name, body.old, body.new)
    return Data(data=Moved(moved=moved))


@router.post("/{job_id:int}/neighbours", summary="List tables that may share a job's storage")
async def neighbours(
    job_id: JobId, body: Holding, services: ServicesDep, maintenance: HasMaintenance
) -> Data[OtherTables]:
    order = await _order(services.store, job_id)
    async with services.store.fenced_transaction(body.fence(job_id)) as tx:
        shared = maintenance.service.pool.catalogs.shared
        tables = await maintenance.service.store.other_tables(tx, order.name, shared)
    return Data(data=OtherTables(tables=[OtherTable.model_validate(table) for table in tables]))


@router.post("/{job_id:int}/actions", summary="Report the outcome of an action")
async def action_ended(
    job_id: JobId, body: Ending, services: ServicesDep, maintenance: HasMaintenance
) -> Data[Held]:
    async with services.store.fenced_transaction(body.fence(job_id)) as tx:
        result: JsonObject = body.outcome.model_dump(mode="json")
        await maintenance.service.store.action_ended(tx, job_id, body.attempt_id, result)
    return Data(data=Held())


@router.post(
    "/{job_id:int}/ended-actions", summary="List the actions that earlier attempts completed"
)
async def ended_actions(
    job_id: JobId, body: Holding, services: ServicesDep, maintenance: HasMaintenance
) -> Data[EndedActions]:
    """Actions that a worker taking over from a dead one can skip; of an action reported twice, the
    last outcome."""
    async with services.store.fenced_transaction(body.fence(job_id)):
        rows = await maintenance.service.store.actions(job_id)
    last = {row["action"]: row["result"] for row in rows if row["attempt_id"] != body.attempt_id}
    return Data(data=EndedActions(outcomes=list(last.values())))


async def _order(store: PgJobStore, job_id: int) -> Order:
    view = await store.job(job_id)
    if view.kind not in (MAINTENANCE, REMOTE, CANCEL_REMOTE):
        raise NotFound(f"Job {job_id} is not a maintenance job.")
    return Order.read(view.payload["payload"] if view.kind == CANCEL_REMOTE else view.payload)
