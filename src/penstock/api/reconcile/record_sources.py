"""Routes of record sources: data sources by alias, with previews of their rows."""

import asyncio
from typing import Annotated, Literal

import pyarrow as pa
from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field, ValidationError

from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Page
from penstock.api.permissions import Grant, Permit
from penstock.api.reconcile.stored_documents import FieldName
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import HasReconciliation, Reconciliation
from penstock.api.sources.data_source_schemas import Secret, revealed
from penstock.jobs.http_bodies import Body
from penstock.kit.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    PermissionDenied,
    RateLimited,
)
from penstock.kit.json_value import JsonObject, JsonValue
from penstock.reconcile.matching.exact_values import rows as exact_rows
from penstock.reconcile.recipes import document_errors
from penstock.reconcile.recipes.model import MAX_FILTERS, Side
from penstock.reconcile.recipes.preview_limits import check_shown
from penstock.reconcile.runs.service import NATIVE
from penstock.reconcile.staging.reading import first_rows
from penstock.sources.endpoints import leans_on_server
from penstock.sources.errors import SourceError, SourceUnavailable

router = APIRouter(prefix="/api/sources", tags=["reconciliation"], route_class=StrictRoute)
Alias = Annotated[str, Path(min_length=1, max_length=200, examples=["ledger"])]
ASKS = declare(*PUBLIC, NotFound, PayloadTooLarge, RateLimited, SourceError, SourceUnavailable)
MAX_ROWS = 1000


class RecordSource(BaseModel):
    alias: str = Field(examples=["ledger"])
    type: str = Field(examples=["postgres"])
    owner: str
    staged: bool = Field(description="Whether its records are staged as Parquet before matching.")
    connected: bool | None = Field(description="The result of the last test.")


class SourceQuery(Page):
    sort_by: Literal["created_at"] = "created_at"


class NewSource(Body):
    alias: Annotated[str, Field(min_length=1, max_length=200, examples=["ledger"])]
    type: Annotated[str, Field(max_length=40, examples=["postgres"])]
    config: dict[FieldName, JsonValue] = Field(default_factory=dict, max_length=100)
    credentials: dict[FieldName, Secret] = Field(default_factory=dict, max_length=20)


class ScopedBody(Body):
    table: Annotated[str, Field(max_length=500)] | None = None
    query: Annotated[str, Field(max_length=100_000)] | None = None
    filters: list[Annotated[dict[FieldName, JsonValue], Field(max_length=20)]] = Field(
        default_factory=list, max_length=MAX_FILTERS
    )
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 50


class Rows(BaseModel):
    columns: list[dict[str, str]]
    rows: list[JsonObject] = Field(description="Amounts are text, to be exact.")


@router.get("", summary="List sources", responses=declare(*PUBLIC))
async def list_sources(
    query: Annotated[SourceQuery, Query()], request: Request, it: HasReconciliation, _: Permit
) -> Listing[RecordSource]:
    page, total = await it.service.sources.page(
        offset=query.offset, limit=query.limit, ascending=query.ascending
    )
    shown = [
        RecordSource(
            alias=s.name,
            type=s.type,
            owner=s.owner,
            staged=s.type not in NATIVE,
            connected=s.test_ok,
        )
        for s in page
    ]
    return query.of(shown, total, request)


@router.post(
    "",
    summary="Connect a source",
    status_code=201,
    responses=declare(*PUBLIC, Conflict, RateLimited, SourceUnavailable),
)
async def connect(body: NewSource, it: HasReconciliation, grant: Permit) -> Data[RecordSource]:
    """Tests the connection first; an unreachable source is not saved."""
    if grant.role.name == "ANALYST" and leans_on_server(body.type, body.config, body.credentials):
        raise PermissionDenied("Only admins can create sources with the server's own access.")
    source = await it.service.sources.add(
        name=body.alias,
        kind=body.type,
        owner=grant.username,
        config=body.config,
        secrets=revealed(body.credentials),
    )
    tested, _ = await it.service.sources.test(source.data_source_id, by=grant.username)
    if not tested.test_ok:
        await it.service.sources.drop(source.data_source_id, actor=grant.username)
        raise SourceUnavailable(f"{body.alias} is unreachable: {tested.test_says}")
    staged = tested.type not in NATIVE
    shown = RecordSource(
        alias=tested.name, type=tested.type, owner=tested.owner, staged=staged, connected=True
    )
    return Data(data=shown)


@router.get("/{alias}/preview", summary="Preview rows", responses=ASKS)
async def preview(
    alias: Alias,
    it: HasReconciliation,
    grant: Permit,
    table: Annotated[str, Query(min_length=1, max_length=500, examples=["invoices"])],
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 20,
) -> Data[Rows]:
    return Data(data=await _rows(alias, ScopedBody(table=table, limit=limit), it, grant))


@router.post("/{alias}/load-scoped", summary="Preview filtered rows", responses=ASKS)
async def load_scoped(
    alias: Alias, body: ScopedBody, it: HasReconciliation, grant: Permit
) -> Data[Rows]:
    """The first rows of a table or query that match the filters."""
    return Data(data=await _rows(alias, body, it, grant))


async def _rows(alias: str, body: ScopedBody, it: Reconciliation, grant: Grant) -> Rows:
    source = await it.service.sources.find(alias)
    if not await it.service.sources.may_use(
        source.data_source_id, grant.username, is_admin=grant.is_admin
    ):
        raise PermissionDenied(
            f"This belongs to {source.owner}; others need the role admin or ops, or a share of it.",
            hint="Ask its owner or an admin to share it with you.",
        )
    asked = {"source": alias, "table": body.table, "query": body.query, "filters": body.filters}
    try:
        side = Side.model_validate(asked | {"primary_key": "-"})
    except ValidationError as e:
        [fault, *_] = document_errors.faults(e.errors(include_url=False, include_input=False))
        where = "" if fault.path == "recipe" else f"{fault.path}: "
        raise InvalidInput(f"{where}{fault.message}", hint=fault.suggestion) from None

    table = await it.service.sources.ask(
        source.data_source_id,
        lambda opened: first_rows(opened, side, body.limit),
        by=grant.username,
    )
    check_shown(table)
    columns = [{"name": field.name, "type": str(field.type)} for field in table.schema]
    return Rows(columns=columns, rows=await asyncio.to_thread(plain_rows, table))


def plain_rows(table: pa.Table) -> list[JsonObject]:
    return [{name: plain(value) for name, value in row.items()} for row in exact_rows(table)]


def plain(value: object) -> JsonValue:
    """An exact JSON value."""
    return value if value is None or isinstance(value, bool | int | str) else str(value)
