"""Routes of recipes: matching rules in immutable versions."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field, ValidationError

from penstock.api.edit_rights import check_edit, recipe_resource
from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Page
from penstock.api.permissions import Grant, Permit
from penstock.api.reconcile.record_sources import plain_rows
from penstock.api.reconcile.stored_documents import Document
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.requests.statement_log import HasStatementLog
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import HasReconciliation, Reconciliation, ServicesDep
from penstock.jobs.http_bodies import Body
from penstock.jobs.model import JobSpec
from penstock.jobs.scheduler import Schedule as ClockSchedule
from penstock.kit.errors import Conflict, InvalidInput, NotFound, PayloadTooLarge, RateLimited
from penstock.kit.json_value import JsonObject
from penstock.reconcile.errors import RecipeInvalid
from penstock.reconcile.matching.decided import Decided
from penstock.reconcile.matching.explain import explain, words_of
from penstock.reconcile.recipes import validation
from penstock.reconcile.recipes.model import SIDES, Side, SideName
from penstock.reconcile.recipes.model import Recipe as RecipeModel
from penstock.reconcile.recipes.repository import Kept
from penstock.reconcile.runs.payloads import START
from penstock.reconcile.runs.service import Asker
from penstock.reconcile.staging.query import bound
from penstock.sources.errors import SourceError, SourceUnavailable

router = APIRouter(prefix="/api/recipes", tags=["reconciliation"], route_class=StrictRoute)
RecipeId = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$", examples=["invoices-payments"])
]
SAMPLE_ROWS = 5000
Version = Annotated[
    int | None, Query(ge=1, le=2**31 - 1, description="An earlier version.", examples=[1])
]
WRITES = declare(*PUBLIC, NotFound, Conflict, RecipeInvalid, PayloadTooLarge)
ASKS = declare(
    *PUBLIC, NotFound, RecipeInvalid, PayloadTooLarge, RateLimited, SourceError, SourceUnavailable
)


class Recipe(BaseModel):
    recipe_id: str = Field(examples=["invoices-payments"])
    owner: str
    version: int = Field(examples=[1])
    latest: int = Field(examples=[1])
    digest: str = Field(description="Equal for two equivalent recipes.")
    document: JsonObject
    created_by: str
    created_at: datetime


class RecipeVersion(BaseModel):
    version: int
    digest: str
    created_by: str
    created_at: datetime


class RecipeBody(Body):
    recipe: Document = Field(description="The recipe document; see docs/guides/reconcile.md.")


class Fault(BaseModel):
    path: str = Field(examples=["rules.0.conditions.1.left"])
    message: str
    suggestion: str
    severity: Literal["error", "warning"]


class Validation(BaseModel):
    valid: bool
    faults: list[Fault]


class Step(BaseModel):
    step: str
    sql: str


class RecipeQuery(Page):
    sort_by: Literal["updated_at"] = "updated_at"


class SuggestBody(Body):
    left: Document | None = Field(None, description="A side, as in a recipe.")
    right: Document | None = None
    recipe_id: Annotated[str, Field(max_length=100)] | None = Field(
        None,
        description="Learn from the manual matches of this recipe; its sides are the default.",
    )


class Suggested(BaseModel):
    rules: list[JsonObject]
    why: list[str]
    pairs: int = Field(description="The number of manual matches that were used.")


class PreviewBody(Body):
    recipe_id: Annotated[str, Field(max_length=100)] | None = None
    recipe: Document | None = None
    parameters: Document = Field(default_factory=dict)
    rows: Annotated[int, Field(ge=1, le=SAMPLE_ROWS, description="Rows of each side.")] = 1000


class Previewed(BaseModel):
    totals: JsonObject
    rules: list[JsonObject]
    warnings: list[Fault]
    matched: list[JsonObject] = Field(description="The first rows; amounts are text, to be exact.")
    unmatched_left: list[JsonObject]
    unmatched_right: list[JsonObject]
    duplicates: list[JsonObject]
    ambiguous: list[JsonObject]


class ScheduleBody(Body):
    cron: Annotated[str, Field(max_length=200, examples=["0 3 * * *"])]
    zone: Annotated[str, Field(max_length=64, examples=["Europe/Vienna"])] = "UTC"
    enabled: bool = True
    parameters: Document = Field(
        default_factory=dict, description="Passed to each run; validated now."
    )


class Scheduled(BaseModel):
    name: str
    next_at: datetime | None


class Dropped(BaseModel):
    recipe_id: str


@router.get("", summary="List recipes", responses=declare(*PUBLIC))
async def list_recipes(
    query: Annotated[RecipeQuery, Query()], request: Request, it: HasReconciliation, _: Permit
) -> Listing[Recipe]:
    """All users' recipes, last changed first."""
    page, total = await it.service.recipes.page(offset=query.offset, limit=query.limit)
    return query.of([_shown(saved) for saved in page], total, request)


@router.post("", summary="Save a recipe", status_code=201, responses=WRITES)
async def add(
    body: RecipeBody, response: Response, it: HasReconciliation, grant: Permit
) -> Data[Recipe]:
    """Checks its syntax; `…/validate` also checks it against the real columns."""
    recipe = validation.read(body.recipe)
    if recipe.recipe_id is None:
        raise InvalidInput(
            "A saved recipe needs a recipe_id.", hint="Add recipe_id to the document."
        )
    saved = await it.service.recipes.add(recipe.recipe_id, recipe, owner=grant.username)
    response.headers["Location"] = f"/api/recipes/{recipe.recipe_id}"
    return Data(data=_shown(saved))


@router.post("/validate", summary="Validate a recipe", responses=ASKS)
async def validate(
    body: RecipeBody, it: HasReconciliation, statements: HasStatementLog, grant: Permit
) -> Data[Validation]:
    """Checks columns, types, keys and SQL against the sources; each fault has a suggestion."""
    statements.note_document("recipe", grant.username, body.recipe)
    faults = await it.service.faults(body.recipe, asker(grant))
    valid = all(fault.severity != "error" for fault in faults)
    return Data(
        data=Validation(
            valid=valid, faults=[Fault.model_validate(asdict(fault)) for fault in faults]
        )
    )


@router.post("/explain", summary="Show the SQL of a recipe", responses=ASKS)
async def explain_document(
    body: RecipeBody, it: HasReconciliation, grant: Permit
) -> Data[list[Step]]:
    return Data(data=await _explained(validation.read(body.recipe), it, asker(grant)))


@router.post("/suggest", summary="Suggest rules from data", responses=ASKS)
async def suggest_rules(body: SuggestBody, it: HasReconciliation, grant: Permit) -> Data[Suggested]:
    """Compares the first rows of both sides: which columns share values, and how far apart amounts
    and dates are.

    With a recipe, its manual matches are used too, and outweigh the statistics.
    """
    sides, decided = await _sides(body, it), await _decided(body.recipe_id, it)
    caller = asker(
        grant, body.recipe_id, changed=[name for name in SIDES if getattr(body, name) is not None]
    )
    suggestion, pairs = await it.service.suggest(sides, caller, rows=SAMPLE_ROWS, decided=decided)
    return Data(data=Suggested(rules=suggestion.rules, why=suggestion.why, pairs=pairs))


@router.post("/preview", summary="Try a recipe on real rows", responses=ASKS)
async def preview(
    body: PreviewBody, it: HasReconciliation, statements: HasStatementLog, grant: Permit
) -> Data[Previewed]:
    """Matches and breaks among the first rows of each side, without a run; nothing is stored.

    A record whose counterpart is not among those rows is a break here.
    """
    if (body.recipe is None) == (body.recipe_id is None):
        raise InvalidInput("Send either recipe_id or recipe.")
    document = (
        body.recipe
        if body.recipe is not None
        else (await it.service.recipes.get(body.recipe_id or "")).document
    )
    statements.note_document("recipe", grant.username, document, recipe_id=body.recipe_id)
    result = await it.service.preview(
        validation.read(document),
        asker(grant, body.recipe_id),
        rows=body.rows,
        parameters=body.parameters,
        decided=await _decided(body.recipe_id, it),
    )
    tables = {
        name: await asyncio.to_thread(plain_rows, table) for name, table in result.tables.items()
    }
    warnings = [Fault.model_validate(asdict(fault)) for fault in result.warnings]
    return Data(
        data=Previewed(totals=dict(result.totals), rules=result.rules, warnings=warnings, **tables)
    )


@router.put("/{recipe_id}/schedule", summary="Schedule a recipe", responses=WRITES)
async def schedule(
    recipe_id: RecipeId,
    body: ScheduleBody,
    it: HasReconciliation,
    services: ServicesDep,
    grant: Permit,
) -> Data[Scheduled]:
    """Runs its newest version, as its owner; `enabled: false` stops it."""
    saved = await it.service.recipes.get(recipe_id)
    grant.over(saved.owner_username)
    recipe = validation.read(saved.document)
    for side in (recipe.sources.left, recipe.sources.right):
        bound(recipe, side, body.parameters)
    spec = JobSpec(kind=START, payload={"recipe_id": recipe_id, "parameters": body.parameters})
    name = _schedule_name(recipe_id)
    schedule_request = ClockSchedule(
        name=name, cron=body.cron, zone=body.zone, enabled=body.enabled, spec=spec
    )
    schedule = await services.schedules.put(schedule_request, actor=grant.username)
    return Data(data=Scheduled(name=name, next_at=schedule.next_at if body.enabled else None))


@router.get("/{recipe_id}", summary="Show a recipe", responses=declare(*PUBLIC, NotFound))
async def show(
    recipe_id: RecipeId, it: HasReconciliation, _: Permit, version: Version = None
) -> Data[Recipe]:
    return Data(data=_shown(await it.service.recipes.get(recipe_id, version)))


@router.put("/{recipe_id}", summary="Make a new version of a recipe", responses=WRITES)
async def change(
    recipe_id: RecipeId,
    body: RecipeBody,
    it: HasReconciliation,
    services: ServicesDep,
    grant: Permit,
    expected: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="409 if another version is current.")
    ] = None,
) -> Data[Recipe]:
    """An identical document creates no new version."""
    saved = await it.service.recipes.get(recipe_id)
    await check_edit(recipe_resource(saved), services.people, grant)
    recipe = validation.read({**body.recipe, "recipe_id": recipe_id})
    if not grant.may(saved.owner_username):
        await _check_changed_sides(recipe, validation.read(saved.document), it, asker(grant))
    return Data(
        data=_shown(
            await it.service.recipes.change(
                recipe_id, recipe, actor=grant.username, expected=expected
            )
        )
    )


@router.delete("/{recipe_id}", summary="Drop a recipe", responses=declare(*PUBLIC, NotFound))
async def drop(
    recipe_id: RecipeId, it: HasReconciliation, services: ServicesDep, grant: Permit
) -> Data[Dropped]:
    """Also deletes its schedule; its runs and their evidence stay."""
    grant.over((await it.service.recipes.get(recipe_id)).owner_username)
    await it.service.recipes.drop(recipe_id, actor=grant.username)
    with suppress(NotFound):
        await services.schedules.drop(_schedule_name(recipe_id), actor=grant.username)
    return Data(data=Dropped(recipe_id=recipe_id))


@router.get(
    "/{recipe_id}/versions",
    summary="List a recipe's versions",
    responses=declare(*PUBLIC, NotFound),
)
async def versions(
    recipe_id: RecipeId, it: HasReconciliation, _: Permit
) -> Data[list[RecipeVersion]]:
    rows = await it.service.recipes.versions(recipe_id)
    return Data(data=[RecipeVersion.model_validate(asdict(line)) for line in rows])


@router.get("/{recipe_id}/explain", summary="Show the SQL of a saved recipe", responses=ASKS)
async def explain_saved(
    recipe_id: RecipeId, it: HasReconciliation, grant: Permit, version: Version = None
) -> Data[list[Step]]:
    saved = await it.service.recipes.get(recipe_id, version)
    return Data(data=await _explained(validation.read(saved.document), it, asker(grant, recipe_id)))


async def _check_changed_sides(
    now: RecipeModel, before: RecipeModel, it: Reconciliation, caller: Asker
) -> None:
    """A recipe also runs with its owner's rights, so an editor may only name sources that they may
    use themselves."""
    for name in SIDES:
        side = getattr(now.sources, name)
        if side != getattr(before.sources, name):
            await it.service.check_side(side, name, caller)


def _schedule_name(recipe_id: str) -> str:
    return f"recipe:{recipe_id}"


def asker(grant: Grant, recipe_id: str | None = None, *, changed: Iterable[SideName] = ()) -> Asker:
    """The caller; for a saved recipe, `changed` names the sides that differ from it."""
    return Asker(
        username=grant.username,
        is_admin=grant.is_admin,
        recipe_id=recipe_id,
        changed=frozenset(changed),
    )


async def _sides(body: SuggestBody, it: Reconciliation) -> tuple[Side, Side]:
    saved_sides = (
        {}
        if body.recipe_id is None
        else (await it.service.recipes.get(body.recipe_id)).document["sources"]
    )
    if not saved_sides and (body.left is None or body.right is None):
        raise InvalidInput(
            "No sources to compare.",
            hint="Send left and right, or the recipe_id of a saved recipe.",
        )
    try:
        left, right = (
            Side.model_validate(side or saved_sides.get(name))
            for name, side in zip(SIDES, (body.left, body.right), strict=True)
        )
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        raise InvalidInput(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}.".lstrip(": ")
        ) from None
    return left, right


async def _decided(recipe_id: str | None, it: Reconciliation) -> Decided:
    decisions = [] if recipe_id is None else await it.items.decisions(recipe_id)
    pairs = {
        kind: [(d.left_key, d.right_key) for d in decisions if d.kind == kind]
        for kind in ("match", "unmatch")
    }
    return Decided(match=pairs["match"], unmatch=pairs["unmatch"])


async def _explained(recipe: RecipeModel, it: Reconciliation, caller: Asker) -> list[Step]:
    left, right = [
        await it.service.columns(getattr(recipe.sources, name), name, caller) for name in SIDES
    ]
    validation.check(recipe, left, right)
    words = await asyncio.to_thread(words_of, recipe.engine)
    steps = await asyncio.to_thread(lambda: list(explain(recipe, words, left, right)))
    return [Step.model_validate(step) for step in steps]


def _shown(saved: Kept) -> Recipe:
    return Recipe(
        recipe_id=saved.recipe_id,
        owner=saved.owner_username,
        version=saved.version,
        latest=saved.latest,
        digest=saved.digest,
        document=dict(saved.document),
        created_by=saved.created_by,
        created_at=saved.created_at,
    )
