"""Routes of runs: start, watch, cancel, retry; their evidence and report."""

import hmac
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel, Field

from penstock.api.errors import INTERNAL, PUBLIC, declare
from penstock.api.internal.source_credentials import OutboundRules
from penstock.api.pagination import Page
from penstock.api.permissions import Grant, Inside, Permit
from penstock.api.reconcile.recipes import asker
from penstock.api.reconcile.stored_documents import STORABLE_TEXT, Document
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.requests.statement_log import HasStatementLog
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import HasReconciliation, Reconciliation, ServicesDep
from penstock.guard.errors import UrlRefused
from penstock.jobs.http_bodies import Body
from penstock.jobs.limits import MAX_JOB_ID
from penstock.jobs.model import Fence
from penstock.kit.errors import (
    ConcurrencyLimit,
    InvalidInput,
    InvalidState,
    NotFound,
    PayloadTooLarge,
)
from penstock.kit.json_value import JsonObject
from penstock.kit.security_headers import POLICY
from penstock.reconcile.errors import RecipeInvalid
from penstock.reconcile.evidence import manifest as manifests
from penstock.reconcile.evidence.document import Manifest, RunResult
from penstock.reconcile.evidence.formulas import Formulas
from penstock.reconcile.recipes import validation
from penstock.reconcile.recipes.model import RecipeDocument
from penstock.reconcile.runs.model import Run as Record
from penstock.reconcile.runs.model import RunStatus
from penstock.reconcile.runs.service import Asker
from penstock.storage.errors import ObjectDamaged

router = APIRouter(prefix="/api/runs", tags=["reconciliation"], route_class=StrictRoute)
internal = APIRouter(
    prefix="/api/internal/runs",
    tags=["internal"],
    route_class=StrictRoute,
    dependencies=[Inside],
    responses=declare(*INTERNAL),
)
RunId = Annotated[int, Path(ge=1, le=2**53 - 1, examples=[1])]
FOUND = declare(*PUBLIC, NotFound)
EVIDENCE = declare(*PUBLIC, NotFound, InvalidState, ObjectDamaged)
LOOK_SECONDS = 2.0
"""Polling interval for a step's row count; the end of a step is notified at once."""
Table = Literal[
    "matched",
    "unmatched_left",
    "unmatched_right",
    "duplicates",
    "ambiguous",
    "open_items",
    "cleared_items",
]
Form = Literal["json", "csv", "parquet", "arrow", "xlsx"]


class Progress(BaseModel):
    stage: str = Field(examples=["staging"])
    rows: int = Field(description="Rows staged so far.")
    percent: float | None
    eta_seconds: float | None
    jobs: int
    jobs_over: int


class Run(BaseModel):
    run_id: int = Field(examples=[1])
    recipe_id: str | None
    recipe_version: int | None
    name: str
    status: RunStatus
    progress: Progress
    owner: str
    parameters: JsonObject
    totals: JsonObject | None = Field(
        description="Rows, matches, breaks, amounts and reasons per side."
    )
    rules: list[JsonObject] | None
    timings: dict[str, float] | None
    evidence_sha256: str | None = Field(description="Equal for two runs with equal results.")
    error: JsonObject | None
    retry_of: int | None
    callback_secret: str | None = Field(
        None, description="The key that signs the callback; returned once, to the caller."
    )
    created_at: datetime
    ready_at: datetime | None
    finished_at: datetime | None


class NewRun(Body):
    recipe_id: Annotated[str, Field(max_length=100)] | None = None
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    recipe: Document | None = None
    parameters: Document = Field(default_factory=dict)
    sources: dict[Literal["left", "right"], Document] = Field(
        default_factory=dict,
        max_length=2,
        description="Overrides fields of the recipe's sources for this run; another source or"
        " upload replaces the location of the records entirely.",
    )
    staging: Document | None = Field(
        None,
        description="For this run: chunk_threshold_rows and max_parallel_chunks.",
        examples=[{}],
    )
    callback_url: Annotated[str, Field(max_length=2048)] | None = None


class RunQuery(Page):
    sort_by: Literal["created_at"] = "created_at"
    recipe_id: Annotated[str, Query(max_length=100)] | None = None


class CancelBody(Body):
    reason: Annotated[str, Field(max_length=500), STORABLE_TEXT] = ""


class StartBody(Body):
    job_id: Annotated[int, Field(ge=1, le=MAX_JOB_ID)]
    attempt_id: UUID
    recipe_id: Annotated[str, Field(max_length=100)]
    parameters: Document = Field(default_factory=dict)


class Started(BaseModel):
    run_id: int


class Callback(BaseModel):
    url: str
    body: str
    signature: str
    outbound: OutboundRules


@router.post(
    "",
    summary="Run a recipe",
    status_code=202,
    responses=declare(
        *PUBLIC, NotFound, ConcurrencyLimit, RecipeInvalid, UrlRefused, PayloadTooLarge
    ),
)
async def add(
    body: NewRun,
    response: Response,
    it: HasReconciliation,
    statements: HasStatementLog,
    grant: Permit,
) -> Data[Run]:
    """Runs a saved recipe by id, or a recipe in the body; 202, with Location."""
    document, version = await _document(body, it)
    for side, override in body.sources.items():
        document["sources"][side] = _replaced(document["sources"][side], override)
    if body.staging is not None:
        document["staging"] = body.staging
    recipe = validation.read(document)
    run = await it.service.start(
        recipe,
        asker(grant, body.recipe_id, changed=body.sources),
        recipe_id=body.recipe_id,
        version=version,
        parameters=body.parameters,
        callback_url=body.callback_url,
    )
    statements.note_document(
        "recipe", grant.username, document, run_id=run.run_id, recipe_id=body.recipe_id
    )
    response.headers["Location"] = f"/api/runs/{run.run_id}"
    shown = await _shown(run, it)
    secret = it.callback_secret(run.run_id) if body.callback_url is not None else None
    return Data(data=shown.model_copy(update={"callback_secret": secret}))


@router.get("", summary="List runs", responses=declare(*PUBLIC))
async def list_runs(
    query: Annotated[RunQuery, Query()], request: Request, it: HasReconciliation, grant: Permit
) -> Listing[Run]:
    """Newest first: the caller's own runs, or all runs for admins."""
    owner = None if grant.role.name in ("ADMIN", "OPS") else grant.username
    page, total = await it.service.runs.page(
        offset=query.offset, limit=query.limit, recipe_id=query.recipe_id, owner=owner
    )
    return query.of([await _shown(run, it) for run in page], total, request)


@router.get("/{run_id}", summary="Show a run", responses=FOUND)
async def show(run_id: RunId, it: HasReconciliation, grant: Permit) -> Data[Run]:
    return Data(data=await _shown(await _mine(run_id, it, grant), it))


@router.post(
    "/{run_id}/cancel", summary="Cancel a run", responses=declare(*PUBLIC, NotFound, InvalidState)
)
async def cancel(
    run_id: RunId, it: HasReconciliation, grant: Permit, body: CancelBody | None = None
) -> Data[Run]:
    """Cancels it at once, with all of its jobs."""
    await _mine(run_id, it, grant)
    reason = body.reason if body is not None else ""
    run = await it.service.runs.cancel(run_id, actor=grant.username, reason=reason)
    return Data(data=await _shown(run, it))


@router.post(
    "/{run_id}/retry",
    summary="Retry a run",
    status_code=202,
    responses=declare(*PUBLIC, NotFound, ConcurrencyLimit, InvalidState),
)
async def retry(
    run_id: RunId, response: Response, it: HasReconciliation, grant: Permit
) -> Data[Run]:
    """Starts a new run of a failed or cancelled one, with the sources' current data."""
    failed = await _mine(run_id, it, grant)
    await it.service.check_reads(failed, failed.owner_username)
    run = await it.service.runs.retry(run_id)
    response.headers["Location"] = f"/api/runs/{run.run_id}"
    return Data(data=await _shown(run, it))


@router.get(
    "/{run_id}/events", summary="Watch a run", response_class=StreamingResponse, responses=FOUND
)
async def events(
    run_id: RunId, request: Request, it: HasReconciliation, grant: Permit
) -> StreamingResponse:
    """Server-sent events: `progress` on every change, and a final `end`."""
    await _mine(run_id, it, grant)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _events(run_id, request, it), media_type="text/event-stream", headers=headers
    )


@router.get("/{run_id}/manifest", summary="Show a run's manifest", responses=EVIDENCE)
async def manifest(run_id: RunId, it: HasReconciliation, grant: Permit) -> Data[JsonObject]:
    return Data(data=await _manifest(await _readable(run_id, it, grant), it))


@router.get(
    "/{run_id}/evidence/{evidence}",
    summary="Download evidence",
    response_class=StreamingResponse,
    responses=EVIDENCE,
)
async def download(
    run_id: RunId,
    evidence: Table,
    it: HasReconciliation,
    grant: Permit,
    format: Annotated[Form, Query()] = "json",  # noqa: A002 - the name that the interface has
    limit: Annotated[int | None, Query(ge=1, le=10**9, description="Only so many rows.")] = None,
    formulas: Annotated[
        Formulas,
        Query(
            description="Whether text in a CSV that a spreadsheet would run as a formula gets an"
            " apostrophe before it; `keep` writes every value as it is. In xlsx text is never a"
            " formula, and the other formats are not for spreadsheets."
        ),
    ] = "neutralize",
) -> StreamingResponse:
    """One complete table of evidence. Its files are verified against the manifest's digests before
    anything is sent."""
    from penstock.reconcile.evidence.reader import EvidenceReader

    run = await _readable(run_id, it, grant)
    shelf = EvidenceReader(it.store(), await _manifest(run, it))
    form, stream = await shelf.download(evidence, format, limit, formulas)
    name = f"run-{run_id}-{evidence}.{form.suffix}"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "private, no-store",
    }
    return StreamingResponse(stream, media_type=form.media_type, headers=headers)


@router.get(
    "/{run_id}/report",
    summary="Show a run's report",
    response_class=HTMLResponse,
    responses=EVIDENCE,
)
async def report(run_id: RunId, it: HasReconciliation, grant: Permit) -> HTMLResponse:
    """A self-contained HTML file."""
    from penstock.reconcile.evidence.report import report as drawn

    run = await _readable(run_id, it, grant)
    document = await _manifest(run, it)
    policy = f"{POLICY}; style-src 'unsafe-inline'"
    return HTMLResponse(drawn(document, run.error), headers={"Content-Security-Policy": policy})


@internal.post("/start", summary="Start a scheduled recipe", responses=declare(NotFound, *INTERNAL))
async def start(body: StartBody, it: HasReconciliation, services: ServicesDep) -> Data[Started]:
    """Idempotent per job: the same job gets the same run."""
    async with services.store.fenced_transaction(
        Fence(job_id=body.job_id, attempt_id=body.attempt_id)
    ):
        pass
    saved = await it.service.recipes.get(body.recipe_id)
    who = Asker(username=saved.owner_username)
    run = await it.service.start(
        validation.read(saved.document),
        who,
        recipe_id=saved.recipe_id,
        version=saved.version,
        parameters=body.parameters,
        started_by=body.job_id,
    )
    return Data(data=Started(run_id=run.run_id))


@internal.get(
    "/{run_id}/callback",
    summary="Get the callback of a finished run",
    responses=declare(NotFound, *INTERNAL),
)
async def callback(run_id: RunId, it: HasReconciliation) -> Data[Callback]:
    run = await it.service.runs.get(run_id)
    if run.callback_url is None or not run.status.over:
        raise NotFound(f"Run {run_id} has no callback, or has not finished.")
    shown = await _shown(run, it)
    body = shown.model_dump_json(exclude={"callback_secret", "parameters"})
    signature = hmac.new(it.callback_secret(run_id).encode(), body.encode(), "sha256").hexdigest()
    rules = OutboundRules.model_validate(it.outbound.to_wire())
    return Data(data=Callback(url=run.callback_url, body=body, signature=signature, outbound=rules))


async def _document(body: NewRun, it: Reconciliation) -> tuple[RecipeDocument, int | None]:
    if (body.recipe is None) == (body.recipe_id is None):
        raise InvalidInput("Send either recipe_id or recipe.")
    if body.recipe is not None:
        document: RecipeDocument = orjson.loads(orjson.dumps(body.recipe))
        if body.sources:
            validation.read(document)
        return document, None
    saved = await it.service.recipes.get(body.recipe_id or "", body.version)
    return orjson.loads(orjson.dumps(dict(saved.document))), saved.version


def _replaced(side: JsonObject, override: JsonObject) -> JsonObject:
    """An override of the location replaces it entirely, instead of merging it with the recipe's."""
    place, part = {"source", "upload"}, {"table", "query"}
    dropped = place | part if override.keys() & place else part if override.keys() & part else set()
    return {name: value for name, value in side.items() if name not in dropped} | override


async def _mine(run_id: int, it: Reconciliation, grant: Grant) -> Record:
    run = await it.service.runs.get(run_id)
    grant.over(run.owner_username)
    return run


async def _readable(run_id: int, it: Reconciliation, grant: Grant) -> Record:
    """A run whose evidence the caller may read; requires current access to its sources."""
    run = await _mine(run_id, it, grant)
    await it.service.check_reads(run, grant.username, is_admin=grant.is_admin)
    return run


async def _manifest(run: Record, it: Reconciliation) -> Manifest:
    if run.result is None:
        raise InvalidState(
            f"Run {run.run_id} is {run.status}; it has no evidence.", status=str(run.status)
        )
    data = await it.store().get(f"{run.result['prefix']}{manifests.NAME}")
    return manifests.read(data, run.result)


async def _events(run_id: int, request: Request, it: Reconciliation) -> AsyncIterator[bytes]:
    last = b""
    while not await request.is_disconnected():
        heard = it.service.runs.heard()
        shown = await _shown(await it.service.runs.get(run_id), it)
        data = orjson.dumps(shown.model_dump(mode="json", exclude={"callback_secret"}))
        if data != last:
            event = "end" if shown.status.over else "progress"
            yield f"event: {event}\ndata: {data.decode()}\n\n".encode()
            last = data
        if shown.status.over:
            return
        await it.service.runs.changed(LOOK_SECONDS, heard=heard)


async def _shown(run: Record, it: Reconciliation) -> Run:
    result: RunResult = run.result or {}
    return Run(
        run_id=run.run_id,
        recipe_id=run.recipe_id,
        recipe_version=run.recipe_version,
        name=run.recipe["name"],
        status=run.status,
        progress=Progress.model_validate(asdict(await it.service.runs.progress(run))),
        owner=run.owner_username,
        parameters=dict(run.parameters),
        totals=result.get("totals"),
        rules=result.get("rules"),
        timings=result.get("timings"),
        evidence_sha256=result.get("evidence_sha256"),
        error=None if run.error is None else dict(run.error),
        retry_of=run.retry_of,
        created_at=run.created_at,
        ready_at=run.ready_at,
        finished_at=run.finished_at,
    )
