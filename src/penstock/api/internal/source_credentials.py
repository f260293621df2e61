"""What it takes to open the source of a job: given to the attempt that holds the job, and to nobody
else.

Payloads carry no credentials. Whoever holds a job asks for them here with its fence, and keeps them
in memory only. Here the right to the source is checked once more: what was queued while somebody
had it reads nothing after it ended. Sources belong to no workload: graphs are asked about the
right to a snapshot only, reconciliation about the right to a run.
"""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from penstock.api.errors import INTERNAL, declare
from penstock.api.permissions import Inside
from penstock.api.requests.request_bodies import PayloadRoute
from penstock.api.requests.statement_log import HasStatementLog, StatementLog
from penstock.api.schema.envelope import Data, Reply
from penstock.api.services import HasSources, Services, ServicesDep, graphs_of
from penstock.graphs.snapshots.payloads import CANCEL_QUERY, FORGET_TABLE
from penstock.jobs.http_bodies import Body
from penstock.jobs.limits import MAX_JOB_ID
from penstock.jobs.model import Fence, JobView, Json
from penstock.kit.errors import NotFound, PermissionDenied, StaleAttempt
from penstock.kit.json_value import JsonObject
from penstock.sources.repository import DataSources

CLEANUPS = frozenset({CANCEL_QUERY, FORGET_TABLE})

router = APIRouter(
    prefix="/api/internal/jobs",
    tags=["internal"],
    route_class=PayloadRoute,
    dependencies=[Inside],
    responses=declare(*INTERNAL),
)


class SourceCredentialsBody(Body):
    attempt_id: UUID
    side: Literal["left", "right"] | None = Field(
        None, description="Which source, for a job with two."
    )


class OutboundRules(BaseModel):
    """The outbound network policy of the worker for this job."""

    private: bool
    allow: list[str]
    answer_bytes: int


class Opening(BaseModel):
    type: str
    config: JsonObject
    secrets: dict[str, str]
    outbound: OutboundRules


@router.post(
    "/{job_id:int}/source",
    summary="Get what opens a job's source",
    response_model=Data[Opening],
    responses=declare(NotFound, StaleAttempt, *INTERNAL),
)
async def source(
    job_id: Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])],
    body: SourceCredentialsBody,
    services: ServicesDep,
    sources: HasSources,
    statements: HasStatementLog,
) -> Reply:
    """Returns type, configuration and credentials while the attempt holds the job, else 409
    STALE_ATTEMPT."""
    view = await services.store.job(job_id)
    payload = _read(view) if body.side is None else _side(view.payload, body.side)
    async with services.store.fenced_transaction(Fence(job_id=job_id, attempt_id=body.attempt_id)):
        data_source_id = _data_source(payload)
    if data_source_id is None:
        raise NotFound(f"Job {job_id} has no data source.")
    await _check_right(view, data_source_id, services, sources.records)
    opening = await sources.records.opening(data_source_id)
    _note(statements, view, payload, data_source_id)
    answer = Reply(
        {
            "data": {
                "type": opening.type,
                "config": opening.config,
                "secrets": opening.secrets,
                "outbound": opening.outbound.to_wire(),
            }
        }
    )
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _note(statements: StatementLog, view: JobView, payload: Json, data_source_id: int) -> None:
    """Log the statement that a worker is about to run, with the job's owner."""
    facts = {"job_id": view.job_id, "kind": view.kind, "data_source_id": data_source_id}
    sql = payload.get("sql") if isinstance(payload, dict) else None
    if isinstance(sql, str):
        statements.note("job", view.created_by, sql, **facts)
    else:
        statements.note_document("job", view.created_by, payload, **facts)


async def _check_right(
    view: JobView, data_source_id: int, services: Services, sources: DataSources
) -> None:
    """As whom the job reads: the owner of its snapshot or run, else whoever made it.

    A clean-up ends what was begun under a right that was there, and has to be able to. What is one
    is said by its kind: a payload may have anything in it.
    """
    payload = view.payload if isinstance(view.payload, dict) else {}
    if view.kind in CLEANUPS:
        return
    if "run_id" in payload and services.reconciliation is not None:
        service = services.reconciliation.service
        run = await service.runs.get(payload["run_id"])
        if data_source_id not in {side.get("data_source_id") for side in run.inputs.values()}:
            raise PermissionDenied(
                f"Run {run.run_id} does not read from data source {data_source_id}."
            )
        await service.check_reads(run, run.owner_username, data_source_id=data_source_id)
    elif "snapshot_id" in payload:
        graphs = await graphs_of(services)
        await graphs.rights.check_export(payload["snapshot_id"], data_source_id)
    elif not await sources.may_use(data_source_id, view.created_by or ""):
        source = await sources.get(data_source_id)
        raise PermissionDenied(
            f"Data source {data_source_id} belongs to {source.owner};"
            f" {view.created_by} may not use it.",
            hint="Ask its owner or an admin to share the source with you.",
        )


def _side(payload: Json, side: str) -> Json:
    inputs = payload.get("inputs") if isinstance(payload, dict) else None
    return inputs.get(side) if isinstance(inputs, dict) else None


def _read(view: JobView) -> Json:
    """A cleanup job's payload contains the payload of the job that it cleans up."""
    if view.kind in CLEANUPS and isinstance(view.payload, dict):
        return view.payload.get("payload")
    return view.payload


def _data_source(payload: Json) -> int | None:
    data_source_id = payload.get("data_source_id") if isinstance(payload, dict) else None
    return data_source_id if isinstance(data_source_id, int) else None
