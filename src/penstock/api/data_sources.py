"""Data sources: where data comes from, by name. Credentials go in here and never come out.

Everybody sees which sources there are. What one is made of, and what is in it, is for its owner, for admins and ops,
and in the case of the default source for everybody; changes are its owner's and theirs. The files and sockets of the
server itself are reached only by sources of admins and ops.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field, SecretStr

from penstock.api.auth import Caller, Reader
from penstock.api.errors import PUBLIC, declare
from penstock.api.identity import Identity, Role
from penstock.api.paging import Page
from penstock.api.parts import HasParts, HasSources, Sources
from penstock.api.reading import StrictRoute
from penstock.api.reply import Data, Listing
from penstock.jobs.bodies import Body, Name, Text
from penstock.kit.errors import Conflict, DependencyExists, NotFound, PayloadTooLarge, PermissionDenied
from penstock.kit.vault import SecretKeyMissing
from penstock.sources import contract, lookup, records
from penstock.sources.destinations import destinations
from penstock.sources.errors import SourceError, SourceUnavailable
from penstock.sources.records import MAX_ID

router = APIRouter(prefix="/api/data-sources", tags=["data sources"], route_class=StrictRoute)
SourceId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[1])]
SourceType = Literal["bigquery", "duckdb", "elasticsearch", "files", "mysql", "postgres", "trino"]
SecretName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=64 * 1024)]
Config = Annotated[
    dict[str, Any],
    Field(max_length=100, description="What its driver needs, without secrets.", examples=[{"threads": 1}]),
]
Credentials = Annotated[
    dict[SecretName, Secret],
    Field(
        max_length=20,
        description="Such as password or token. Kept sealed, and never shown.",
        examples=[{}],
        json_schema_extra={"writeOnly": True},
    ),
]


class DataSource(BaseModel):
    id: int = Field(validation_alias="data_source_id", examples=[1])
    name: str = Field(examples=["warehouse"])
    type: str = Field(examples=["duckdb"])
    owner_username: str = Field(validation_alias="owner", examples=["ann"])
    is_default: bool
    config: dict[str, Any] | None = Field(description="Null for those who may not use the source.")
    has_credentials: bool
    created_at: datetime
    updated_at: datetime
    tested_at: datetime | None
    test_ok: bool | None = Field(description="How its last test ended; null when it has changed since.")
    test_message: str | None = Field(validation_alias="test_says")


class NewDataSource(Body):
    name: Annotated[Name, Field(examples=["warehouse"])]
    type: Annotated[SourceType, Field(examples=["duckdb"])]
    config: Config = Field(default_factory=dict)
    credentials: Credentials = Field(default_factory=dict)


class ChangedDataSource(Body):
    """What is left out, or null, stays as it is; `{}` takes the credentials away."""

    name: Annotated[Name, Field(examples=["warehouse"])] | None = None
    config: Config | None = None
    credentials: Credentials | None = None


class TestResult(BaseModel):
    id: int = Field(examples=[1])
    ok: bool
    message: str = Field(description="What answered, or what went wrong.", examples=["DuckDB v2.0.0"])
    seconds: float
    tested_at: datetime


class Table(BaseModel):
    catalog_name: str = Field(examples=["warehouse"])
    schema_name: str = Field(examples=["main"])
    table_name: str = Field(examples=["orders"])
    table_type: str = Field(examples=["table"])


class Column(BaseModel):
    column_name: str = Field(examples=["id"])
    data_type: str = Field(examples=["BIGINT"])
    is_nullable: bool
    ordinal_position: int
    column_default: str | None


class TableSchema(Table):
    columns: list[Column]


class Dropped(BaseModel):
    id: int = Field(examples=[1])


class DataSourceQuery(Page):
    sort_by: Literal["created_at", "id"] = "created_at"
    type: SourceType | None = None


class BrowseQuery(Page):
    sort_by: Literal["name"] = "name"
    sort_order: Literal["asc", "desc"] = "asc"
    prefix: Annotated[Text, Field(description="How a table's name begins, qualified or not.", examples=["ma"])] = ""


CHANGES = (*PUBLIC, SecretKeyMissing, PayloadTooLarge, Conflict)
ASKS = (*PUBLIC, NotFound, SecretKeyMissing, SourceError, SourceUnavailable)


@router.get("", summary="List data sources", responses=declare(*PUBLIC))
async def list_sources(
    query: Annotated[DataSourceQuery, Query()], request: Request, sources: HasSources, caller: Caller
) -> Listing[DataSource]:
    """Newest first."""
    found, total = await sources.records.page(
        kind=query.type, offset=query.offset, limit=query.limit, ascending=query.ascending
    )
    return query.of([_view(source, caller) for source in found], total, request)


@router.post("", summary="Add a data source", status_code=201, responses=declare(*CHANGES))
async def add(body: NewDataSource, sources: HasSources, caller: Caller) -> Data[DataSource]:
    """The configuration is checked by the driver of its type; whether it answers is what a test says."""
    _check_local(caller, body.type, body.config)
    made = await sources.records.add(
        name=body.name,
        kind=body.type,
        owner=caller.username,
        config=body.config,
        secrets=_revealed(body.credentials),
    )
    return Data(data=_view(made, caller))


@router.get("/{data_source_id}", summary="Show a data source", responses=declare(*PUBLIC, NotFound))
async def show(data_source_id: SourceId, sources: HasSources, caller: Caller) -> Data[DataSource]:
    return Data(data=_view(await sources.records.get(data_source_id), caller))


@router.put("/{data_source_id}", summary="Change a data source", responses=declare(*CHANGES, NotFound))
async def change(
    data_source_id: SourceId, body: ChangedDataSource, sources: HasSources, caller: Caller
) -> Data[DataSource]:
    """Credentials that are kept go to no other host: a source that moves needs them again."""
    source = await _to_change(data_source_id, sources, caller)
    if body.config is not None:
        _check_local(caller, source.type, body.config)
    changed = await sources.records.update(
        data_source_id,
        actor=caller.username,
        name=body.name,
        config=body.config,
        secrets=None if body.credentials is None else _revealed(body.credentials),
    )
    return Data(data=_view(changed, caller))


@router.delete(
    "/{data_source_id}", summary="Drop a data source", responses=declare(*PUBLIC, NotFound, DependencyExists)
)
async def drop(data_source_id: SourceId, parts: HasParts, sources: HasSources, caller: Caller) -> Data[Dropped]:
    """Refused while jobs that are not over read from it."""
    await _to_change(data_source_id, sources, caller)
    jobs, total = await parts.browser.live_with({"data_source_id": data_source_id})
    if jobs:
        raise DependencyExists(
            f"{total} jobs that are not over read from data source {data_source_id}.",
            hint="Let them end, or cancel them.",
            jobs=jobs,
            count=total,
        )
    await sources.records.drop(data_source_id, actor=caller.username)
    return Data(data=Dropped(id=data_source_id))


@router.post("/{data_source_id}/test", summary="Test a data source", responses=declare(*ASKS))
async def test(data_source_id: SourceId, sources: HasSources, caller: Caller) -> Data[TestResult]:
    """Really connects. That it does not work is an answer, not an error, and is remembered."""
    await _to_change(data_source_id, sources, caller)
    tested, seconds = await sources.records.test(data_source_id)
    return Data(
        data=TestResult(
            id=tested.data_source_id,
            ok=tested.test_ok or False,
            message=tested.test_says or "",
            seconds=round(seconds, 3),
            tested_at=tested.tested_at or tested.updated_at,
        )
    )


@router.put("/{data_source_id}/default", summary="Make it the default", responses=declare(*PUBLIC, NotFound))
async def make_default(data_source_id: SourceId, sources: HasSources, caller: Reader) -> Data[DataSource]:
    """The source of every query that names none. Everybody may read from it, so it is not its owner's to decide."""
    return Data(data=_view(await sources.records.make_default(data_source_id, actor=caller.username), caller))


@router.get("/{data_source_id}/browse", summary="List the tables of a data source", responses=declare(*ASKS))
async def browse(
    data_source_id: SourceId,
    query: Annotated[BrowseQuery, Query()],
    request: Request,
    sources: HasSources,
    caller: Caller,
) -> Listing[Table]:
    """Asks the source itself, now; the schema browser knows what it said last."""
    await _to_use(data_source_id, sources, caller)
    tables = await sources.records.ask(data_source_id, lambda source: lookup.tables(source, query.prefix))
    found = [Table(**_named(table)) for table in tables]
    return query.cut(found if query.ascending else found[::-1], request)


@router.get("/{data_source_id}/schema", summary="Show the columns of a table", responses=declare(*ASKS, Conflict))
async def schema(
    data_source_id: SourceId,
    table: Annotated[Text, Query(min_length=1, description="orders, or main.orders", examples=["orders"])],
    sources: HasSources,
    caller: Caller,
) -> Data[TableSchema]:
    """A name that several tables have is 409 until its schema, or its catalog, is written before it."""
    await _to_use(data_source_id, sources, caller)
    found, columns = await sources.records.ask(data_source_id, lambda source: lookup.columns(source, table))
    described = [
        Column(
            column_name=c.name,
            data_type=c.data_type,
            is_nullable=c.nullable,
            ordinal_position=c.position,
            column_default=c.default,
        )
        for c in columns
    ]
    return Data(data=TableSchema(**_named(found), columns=described))


def _rules_over(source: records.DataSource, caller: Identity) -> bool:
    return caller.role >= Role.ADMIN or caller.username == source.owner


def _may_use(source: records.DataSource, caller: Identity) -> bool:
    return source.is_default or _rules_over(source, caller)


async def _to_change(data_source_id: int, sources: Sources, caller: Identity) -> records.DataSource:
    source = await sources.records.get(data_source_id)
    if not _rules_over(source, caller):
        raise PermissionDenied(f"Data source {data_source_id} is for its owner, {source.owner}, and for admins.")
    return source


async def _to_use(data_source_id: int, sources: Sources, caller: Identity) -> None:
    source = await sources.records.get(data_source_id)
    if not _may_use(source, caller):
        raise PermissionDenied(f"Data source {data_source_id} is for its owner, {source.owner}, and for admins.")


def _check_local(caller: Identity, kind: str, config: Mapping[str, Any]) -> None:
    local = any(url.startswith(("file:", "unix:")) for _, url in destinations(kind, config))
    if local and caller.role < Role.ADMIN:
        raise PermissionDenied("Sources on the server's own files and sockets are made by admins.")


def _revealed(credentials: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: secret.get_secret_value() for name, secret in credentials.items()}


def _view(source: records.DataSource, caller: Identity) -> DataSource:
    values = {name: getattr(source, name) for name in records.DataSource.__slots__}
    hidden = {} if _may_use(source, caller) else {"config": None}
    return DataSource.model_validate(values | hidden)


def _named(table: contract.Table) -> dict[str, str]:
    return {
        "catalog_name": table.catalog,
        "schema_name": table.schema,
        "table_name": table.name,
        "table_type": table.kind,
    }
