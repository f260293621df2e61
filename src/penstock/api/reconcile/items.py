"""Routes of manual decisions and notes on records of a recipe."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from penstock.api.edit_rights import check_edit, recipe_resource
from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Page
from penstock.api.permissions import Grant, Permit
from penstock.api.reconcile.recipes import RecipeId
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import HasReconciliation, People, Reconciliation, ServicesDep
from penstock.jobs.http_bodies import Body
from penstock.kit.errors import Conflict, InvalidInput, NotFound
from penstock.reconcile.recipes import validation
from penstock.reconcile.recipes.model import SideName, Sides

router = APIRouter(prefix="/api/recipes", tags=["reconciliation"], route_class=StrictRoute)
KeyValue = Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")]
Key = Annotated[
    list[KeyValue], Field(min_length=1, max_length=8, description="The primary key's values.")
]
Words = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")]
WRITES = declare(*PUBLIC, NotFound, Conflict)


class NewDecision(Body):
    kind: Literal["match", "unmatch"]
    left_key: Key
    right_key: Key
    comment: Words = ""


class Decision(BaseModel):
    decision_id: int
    kind: Literal["match", "unmatch"]
    left_key: list[str]
    right_key: list[str]
    comment: str
    created_by: str
    created_at: datetime


class NoteBody(Body):
    side: Literal["left", "right"]
    key: Key
    label: Words | None = None
    comment: Words | None = None
    assignee: Words | None = None


class Note(BaseModel):
    side: Literal["left", "right"]
    key: list[str]
    label: str | None
    comment: str | None
    assignee: str | None
    updated_by: str
    updated_at: datetime


class Noted(BaseModel):
    side: Literal["left", "right"]
    key: list[str]


class Made(BaseModel):
    decision_id: int


class NoteQuery(Page):
    sort_by: Literal["updated_at"] = "updated_at"
    assignee: Annotated[str, Query(max_length=2000)] | None = None


@router.post(
    "/{recipe_id}/decisions", summary="Match or unmatch manually", status_code=201, responses=WRITES
)
async def decide(
    recipe_id: RecipeId,
    body: NewDecision,
    it: HasReconciliation,
    services: ServicesDep,
    grant: Permit,
) -> Data[Made]:
    """Overrides the rules from the next run on; audited."""
    sources = await _mine(recipe_id, it, services.people, grant)
    _check_key(sources, "left", body.left_key)
    _check_key(sources, "right", body.right_key)
    decision_id = await it.items.decide(
        recipe_id,
        body.kind,
        body.left_key,
        body.right_key,
        actor=grant.username,
        comment=body.comment,
    )
    return Data(data=Made(decision_id=decision_id))


@router.get(
    "/{recipe_id}/decisions", summary="List decisions", responses=declare(*PUBLIC, NotFound)
)
async def decisions(recipe_id: RecipeId, it: HasReconciliation, _: Permit) -> Data[list[Decision]]:
    await it.service.recipes.get(recipe_id)
    return Data(
        data=[
            Decision.model_validate(asdict(decision))
            for decision in await it.items.decisions(recipe_id)
        ]
    )


@router.delete(
    "/{recipe_id}/decisions/{decision_id}", summary="Delete a decision", responses=WRITES
)
async def take_back(
    recipe_id: RecipeId,
    decision_id: Annotated[int, Path(ge=1, le=2**53 - 1)],
    it: HasReconciliation,
    services: ServicesDep,
    grant: Permit,
) -> Data[Made]:
    await _mine(recipe_id, it, services.people, grant)
    await it.items.take_back(recipe_id, decision_id, actor=grant.username)
    return Data(data=Made(decision_id=decision_id))


@router.put("/{recipe_id}/items", summary="Label, comment or assign a record", responses=WRITES)
async def note(
    recipe_id: RecipeId, body: NoteBody, it: HasReconciliation, services: ServicesDep, grant: Permit
) -> Data[Noted]:
    """Omitted fields keep their values."""
    _check_key(await _mine(recipe_id, it, services.people, grant), body.side, body.key)
    if body.label is None and body.comment is None and body.assignee is None:
        raise InvalidInput("Empty note: send a label, a comment or an assignee.")
    await it.items.note(
        recipe_id,
        body.side,
        body.key,
        actor=grant.username,
        label=body.label,
        comment=body.comment,
        assignee=body.assignee,
    )
    return Data(data=Noted(side=body.side, key=body.key))


@router.get("/{recipe_id}/items", summary="List notes", responses=declare(*PUBLIC, NotFound))
async def notes(
    recipe_id: RecipeId,
    query: Annotated[NoteQuery, Query()],
    request: Request,
    it: HasReconciliation,
    _: Permit,
) -> Listing[Note]:
    await it.service.recipes.get(recipe_id)
    page, total = await it.items.notes(
        recipe_id, offset=query.offset, limit=query.limit, assignee=query.assignee
    )
    return query.of([Note.model_validate(asdict(note)) for note in page], total, request)


async def _mine(recipe_id: str, it: Reconciliation, people: People | None, grant: Grant) -> Sides:
    saved = await it.service.recipes.get(recipe_id)
    await check_edit(recipe_resource(saved), people, grant)
    return validation.read(saved.document).sources


def _check_key(sources: Sides, side: SideName, key: list[str]) -> None:
    """A key with the wrong number of values can never match a record."""
    columns = (sources.left if side == "left" else sources.right).primary_key
    if len(key) != len(columns):
        raise InvalidInput(
            f"A {side} record is named by {len(columns)} values, not {len(key)}.",
            hint=f"Send the values of {', '.join(columns)}, as texts, in this order.",
            side=side,
        )
