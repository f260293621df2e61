"""Routes of Iceberg tables and their maintenance, under both `/tables` and `/api/tables`, and of
the policies.
"""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, cast
from uuid import UUID

import orjson
from asyncpg import Record
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from penstock.api.errors import PUBLIC, declare
from penstock.api.jobs.jobs import JobDetail, JobId, MaintenanceStatus, detail, maintenance_status
from penstock.api.pagination import Page
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import HasMaintenance, Maintenance, ServicesDep
from penstock.jobs.http_bodies import Body, Name, Text
from penstock.jobs.model import Status
from penstock.kit.errors import Conflict, Draining, NotFound, PayloadTooLarge, ResourceLocked
from penstock.kit.json_value import JsonObject, JsonValue
from penstock.maintenance.actions.model import parse
from penstock.maintenance.errors import CatalogUnavailable, Refused, TableUnreadable, UnknownAction
from penstock.maintenance.payloads import EMBEDDED, Order, OrderDocument
from penstock.maintenance.policies.model import Policy
from penstock.maintenance.repository import SeenTable
from penstock.maintenance.tables.assessment.tier import Tier

if TYPE_CHECKING:
    from penstock.maintenance.policies.model import Definition

IDENTIFIER = r"^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,199}$"
Db = Annotated[str, Path(pattern=IDENTIFIER, examples=["shop"])]
Table = Annotated[str, Path(pattern=IDENTIFIER.replace(".\\-", "\\-"), examples=["orders"])]
Catalog = Annotated[Name | None, Query(description="Default: the first configured catalog.")]
ActionName = Annotated[str, Field(max_length=200)]
GivenActions = Annotated[
    list[ActionName | Annotated[dict[ActionName, JsonValue], Field(max_length=50)]],
    Field(
        max_length=10,
        examples=[["expire_snapshots", {"name": "rewrite_data_files", "max_files": 500}]],
    ),
]
LOOKING = declare(*PUBLIC, NotFound, TableUnreadable, CatalogUnavailable)
RETRY_AFTER = "30"


class MaintenanceBody(Body):
    """Actions by name, or with options; they always run in the same fixed order."""

    actions: GivenActions
    catalog: Name | None = None
    engine: Annotated[Name, Field(examples=[EMBEDDED])] = EMBEDDED
    dry_run: StrictBool = False
    reason: Text = ""


class PlanBody(Body):
    actions: GivenActions
    catalog: Name | None = None


class TableView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    catalog: str
    db: str
    table: str
    enabled: bool | None = Field(description="Null for a table that cannot be read.")
    score: int | None = Field(description="Null for a table that cannot be read.")
    facts: JsonObject
    health: JsonObject
    error: str | None = Field(description="Why it cannot be read.")
    seen_at: datetime


class Facts(BaseModel):
    facts: JsonObject


class Health(BaseModel):
    """`issues` have a code, a severity, a message and evidence; figures that were not measured are
    null, not 0."""

    model_config = ConfigDict(extra="allow")

    score: int
    level: str
    tier: str
    issues: list[JsonObject]


class Recommendation(BaseModel):
    actions: list[str]
    policy: str | None
    due: str | None = Field(description="The trigger that fired.")
    skipped: str | None = Field(description="Why the planner leaves the table alone.")
    cadence_seconds: float | None
    score: int


class HistoryEntry(BaseModel):
    job_id: int
    created_at: datetime
    created_by: str | None
    policy: str | None
    actions: list[JsonValue]
    dry_run: bool
    status: str
    maintenance_status: MaintenanceStatus | None = Field(
        description="The status in the terms of maintenance clients; null if no longer known."
    )
    finished_at: datetime | None
    error: JsonValue


class Outcomes(BaseModel):
    outcomes: list[JsonObject]


class CacheOfCatalog(BaseModel):
    catalog: str
    tables: int
    oldest: datetime
    newest: datetime
    failed: int


class CacheStatus(BaseModel):
    catalogs: list[CacheOfCatalog]


class Refreshed(BaseModel):
    seen: int
    failed: int = Field(description="Tables that could not be read.")
    forgotten: int
    unavailable: list[str] = Field(description="Catalogs that were unreachable.")


class ActionView(BaseModel):
    action: str
    status: str
    attempt_id: UUID = Field(
        description="The attempt that ended it; a job with several attempts has several."
    )
    ended_at: datetime
    result: JsonObject


class TableQuery(Page):
    catalog: Name | None = None
    db: Annotated[str, Field(pattern=IDENTIFIER, examples=["shop"])] | None = None
    enabled: bool | None = None
    health: Literal["healthy", "warning", "critical", "unreadable"] | None = None


class HistoryQuery(Page):
    catalog: Name | None = None


async def list_tables(
    query: Annotated[TableQuery, Query()], request: Request, maintenance: HasMaintenance, _: Permit
) -> Listing[TableView]:
    """As of the last refresh: unreadable tables first, then by ascending health."""
    rows, total = await maintenance.service.store.tables(
        catalog=query.catalog,
        db=query.db,
        enabled=query.enabled,
        level=query.health,
        limit=query.limit,
        offset=query.offset,
    )
    return query.of([TableView.model_validate(row) for row in rows], total, request)


async def cache_status(maintenance: HasMaintenance, _: Permit) -> Data[CacheStatus]:
    rows = await maintenance.service.store.freshness()
    return Data(data=CacheStatus(catalogs=[CacheOfCatalog(**dict(row)) for row in rows]))


async def refresh(
    maintenance: HasMaintenance, _: Permit, catalog: Catalog = None
) -> Data[Refreshed]:
    """Rescans every table of the catalogs, including the manifests of unchanged ones."""
    return Data(data=Refreshed(**asdict(await maintenance.service.refresh(catalog, afresh=True))))


async def status(
    db: Db,
    table: Table,
    maintenance: HasMaintenance,
    _: Permit,
    catalog: Catalog = None,
    tier: Tier = Tier.MANIFESTS,
) -> Data[Facts]:
    facts, _health = await maintenance.service.look(
        maintenance.service.name(catalog, db, table), tier
    )
    return Data(data=Facts(facts=facts.to_json()))


async def health(
    db: Db,
    table: Table,
    maintenance: HasMaintenance,
    _: Permit,
    catalog: Catalog = None,
    tier: Tier = Tier.MANIFESTS,
) -> Data[Health]:
    _facts, assessment = await maintenance.service.look(
        maintenance.service.name(catalog, db, table), tier
    )
    return Data(data=Health.model_validate(assessment.to_json()))


async def recommendation(
    db: Db, table: Table, maintenance: HasMaintenance, _: Permit, catalog: Catalog = None
) -> Data[Recommendation]:
    """The recommended actions, their policy, and why the planner skips the table now."""
    name = maintenance.service.name(catalog, db, table)
    _facts, assessment = await maintenance.service.look(name, Tier.MANIFESTS)
    seen = await maintenance.service.store.seen(name)
    policy = await maintenance.policies.of(name)
    return Data(
        data=await _recommended(
            maintenance, seen, policy, [str(a) for a in assessment.actions], assessment.score
        )
    )


async def _recommended(
    maintenance: Maintenance,
    seen: SeenTable | None,
    policy: Policy | None,
    actions: list[str],
    score: int,
) -> Recommendation:
    verdict = (
        None
        if seen is None
        else await maintenance.planner.judge(seen, [] if policy is None else [policy])
    )
    cadence = None if policy is None or policy.every is None else policy.every.total_seconds()
    return Recommendation(
        actions=actions,
        policy=None if policy is None else policy.name,
        due=None if verdict is None else verdict.due,
        skipped=None if verdict is None else verdict.skipped,
        cadence_seconds=cadence,
        score=score,
    )


async def history(
    db: Db,
    table: Table,
    query: Annotated[HistoryQuery, Query()],
    request: Request,
    maintenance: HasMaintenance,
    _: Permit,
) -> Listing[HistoryEntry]:
    name = maintenance.service.name(query.catalog, db, table)
    rows, total = await maintenance.service.store.history(
        name, limit=query.limit, offset=query.offset
    )
    return query.of([_entry(row) for row in rows], total, request)


async def plan(
    db: Db, table: Table, body: PlanBody, maintenance: HasMaintenance, _: Permit
) -> Data[Outcomes]:
    """A dry run: what each action would do to the table now, with files and bytes. Nothing is
    written."""
    actions = parse(body.actions)
    outcomes = await maintenance.service.plan(
        maintenance.service.name(body.catalog, db, table), actions
    )
    return Data(data=Outcomes(outcomes=[outcome.to_json() for outcome in outcomes]))


async def maintain(
    db: Db,
    table: Table,
    body: MaintenanceBody,
    response: Response,
    services: ServicesDep,
    maintenance: HasMaintenance,
    grant: Permit,
) -> Data[JobDetail]:
    """Takes the table's lock and enqueues the job atomically; 409 with the holder if the lock is
    held."""
    await maintenance.service.check_open()
    order = Order(
        name=maintenance.service.name(body.catalog, db, table),
        actions=parse(body.actions),
        engine=body.engine,
        dry_run=body.dry_run,
        reason=body.reason,
    )
    job_id = await maintenance.service.submit(order, actor=grant.username)
    response.headers["Location"] = f"/api/jobs/{job_id}"
    response.headers["Retry-After"] = RETRY_AFTER
    return Data(data=detail(await services.store.job(job_id)))


def _entry(row: Record) -> HistoryEntry:
    order: OrderDocument = orjson.loads(row["payload"])
    state = row["status"] if row["status"] is not None else row["live"]
    return HistoryEntry(
        **{
            key: row[key] for key in ("job_id", "created_at", "created_by", "policy", "finished_at")
        },
        actions=order["actions"],
        dry_run=order["dry_run"],
        status="unknown" if state is None else Status(state).word,
        maintenance_status=None if state is None else maintenance_status(Status(state)),
        error=None if row["error"] is None else orjson.loads(row["error"]),
    )


def _router(prefix: str) -> APIRouter:
    router = APIRouter(prefix=prefix, tags=["tables"], route_class=StrictRoute)
    of_table = "/{db}/{table}"
    router.get("", summary="List tables", responses=LOOKING)(list_tables)
    router.get("/cache-status", summary="Show how fresh the list of tables is", responses=LOOKING)(
        cache_status
    )
    router.post("/refresh", summary="Rescan all tables", responses=LOOKING)(refresh)
    router.get(f"{of_table}/status", summary="Show a table's facts", responses=LOOKING)(status)
    router.get(f"{of_table}/health", summary="Show a table's health", responses=LOOKING)(health)
    router.get(f"{of_table}/recommendation", summary="Show what a table needs", responses=LOOKING)(
        recommendation
    )
    router.get(f"{of_table}/history", summary="List what was done to a table", responses=LOOKING)(
        history
    )
    router.post(
        f"{of_table}/plan",
        summary="Plan maintenance (dry run)",
        responses=declare(
            *PUBLIC,
            NotFound,
            UnknownAction,
            TableUnreadable,
            CatalogUnavailable,
            PayloadTooLarge,
        ),
    )(plan)
    router.post(
        f"{of_table}/maintenance",
        summary="Maintain a table",
        status_code=202,
        responses=declare(
            *PUBLIC,
            NotFound,
            UnknownAction,
            Refused,
            TableUnreadable,
            CatalogUnavailable,
            ResourceLocked,
            Conflict,
            Draining,
            PayloadTooLarge,
        ),
    )(maintain)
    return router


router, under_api = _router("/tables"), _router("/api/tables")

policies = APIRouter(prefix="/api", tags=["tables"], route_class=StrictRoute)


class Window(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    begins: Annotated[
        str, Field(alias="from", max_length=5, pattern=r"^\d\d:\d\d$", examples=["22:00"])
    ]
    ends: Annotated[
        str, Field(alias="to", max_length=5, pattern=r"^\d\d:\d\d$", examples=["06:00"])
    ]


class PolicyBody(Body):
    """Applies to tables whose name `catalog.db.table` matches the pattern; any trigger suffices."""

    name: Name
    pattern: Annotated[
        str, Field(min_length=1, max_length=600, pattern=r"^[^\x00]*$", examples=["lake.shop.*"])
    ]
    enabled: StrictBool = True
    health_below: Annotated[int, Field(ge=1, le=100)] | None = None
    every_seconds: Annotated[int, Field(ge=300, le=31_536_000)] | None = None
    commits: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    window: Window | None = None
    zone: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_+/\-]+$", examples=["UTC"])] = (
        "UTC"
    )
    max_jobs: Annotated[int, Field(ge=1, le=1000)] = 10
    actions: GivenActions | None = None


class PoliciesBody(Body):
    policies: Annotated[list[PolicyBody], Field(max_length=200)]


class PoliciesView(BaseModel):
    policies: list[JsonObject]


class RunView(BaseModel):
    run_id: int
    at: datetime
    assessed: int
    skipped: JsonValue
    healthy: int
    submitted: int
    completed: int
    failed: int


@policies.get("/maintenance/policies", summary="List the maintenance policies", responses=LOOKING)
async def list_policies(maintenance: HasMaintenance, _: Permit) -> Data[PoliciesView]:
    return Data(data=PoliciesView(policies=await maintenance.policies.definitions()))


@policies.put(
    "/maintenance/policies",
    summary="Replace the maintenance policies",
    responses=declare(*PUBLIC, NotFound, UnknownAction, PayloadTooLarge),
)
async def put_policies(
    body: PoliciesBody, maintenance: HasMaintenance, grant: Permit
) -> Data[PoliciesView]:
    """Replaces all of them; the first that matches a table applies to it."""
    documents = [
        cast("Definition", policy.model_dump(by_alias=True, exclude_none=True))
        for policy in body.policies
    ]
    await maintenance.policies.replace(documents, actor=grant.username)
    return Data(data=PoliciesView(policies=await maintenance.policies.definitions()))


@policies.get("/maintenance/runs", summary="List the planner's passes", responses=LOOKING)
async def list_runs(
    query: Annotated[Page, Query()], request: Request, maintenance: HasMaintenance, _: Permit
) -> Listing[RunView]:
    rows, total = await maintenance.planner.runs(limit=query.limit, offset=query.offset)
    return query.of([RunView(**row) for row in rows], total, request)


@policies.get(
    "/jobs/{job_id}/actions", summary="List the outcomes of a job's actions", responses=LOOKING
)
async def actions_of(
    job_id: JobId, services: ServicesDep, maintenance: HasMaintenance, _: Permit
) -> Data[list[ActionView]]:
    await services.store.job(job_id)
    rows = await maintenance.service.store.actions(job_id)
    return Data(data=[ActionView(**row) for row in rows])
