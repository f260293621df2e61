"""Data sources: where data comes from, by name. Credentials go in here and never come out.

Everybody sees which sources there are. What one is made of, how its test ended, and what is in it,
is for its owner, for admins and ops, for those with whom it is shared, and in the case of the
default source for everybody; changes are for its owner, for admins and ops, and for those with whom
it is shared to edit. What the server itself may read (its files and sockets, a cloud under its own
identity) is opened only by sources that admins and ops made.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from penstock.api.edit_rights import check_edit, source_resource
from penstock.api.envelope import Data, Listing
from penstock.api.errors import PUBLIC, declare
from penstock.api.identity import Role
from penstock.api.permissions import Grant, Permit
from penstock.api.request_bodies import StrictRoute
from penstock.api.services import HasSources, ServicesDep, Sources
from penstock.api.sources.data_source_schemas import (
    BrowseQuery,
    ChangedDataSource,
    DataSource,
    DataSourceQuery,
    Dropped,
    NewDataSource,
    Table,
    TableSchema,
    TestResult,
    data_source_view,
    revealed,
    schema_view,
    table_view,
)
from penstock.jobs.http_bodies import Text
from penstock.kit.errors import (
    Conflict,
    DependencyExists,
    NotFound,
    PayloadTooLarge,
    PermissionDenied,
    RateLimited,
)
from penstock.kit.vault import SecretKeyMissing
from penstock.sources import repository, table_lookup
from penstock.sources.endpoints import leans_on_server
from penstock.sources.errors import SourceError, SourceUnavailable
from penstock.sources.repository import MAX_ID

router = APIRouter(prefix="/api/data-sources", tags=["data sources"], route_class=StrictRoute)
SourceId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[1])]

CHANGES = (*PUBLIC, SecretKeyMissing, PayloadTooLarge, Conflict)
ASKS = (*PUBLIC, NotFound, RateLimited, SecretKeyMissing, SourceError, SourceUnavailable)


@router.get("", summary="List data sources", responses=declare(*PUBLIC))
async def list_sources(
    query: Annotated[DataSourceQuery, Query()], request: Request, sources: HasSources, grant: Permit
) -> Listing[DataSource]:
    """Newest first."""
    found, total = await sources.records.page(
        kind=query.type, offset=query.offset, limit=query.limit, ascending=query.ascending
    )
    usable = await sources.records.usable(
        [source.data_source_id for source in found], grant.username, is_admin=grant.is_admin
    )
    shown = [data_source_view(source, shown=source.data_source_id in usable) for source in found]
    return query.of(shown, total, request)


@router.post("", summary="Add a data source", status_code=201, responses=declare(*CHANGES))
async def add(body: NewDataSource, sources: HasSources, grant: Permit) -> Data[DataSource]:
    """The configuration is checked by the driver of its type; whether it answers is what a test
    says."""
    _check_leaning(grant, body.type, body.config, body.credentials)
    made = await sources.records.add(
        name=body.name,
        kind=body.type,
        owner=grant.username,
        config=body.config,
        secrets=revealed(body.credentials),
    )
    return Data(data=data_source_view(made, shown=True))


@router.get("/{data_source_id}", summary="Show a data source", responses=declare(*PUBLIC, NotFound))
async def show(data_source_id: SourceId, sources: HasSources, grant: Permit) -> Data[DataSource]:
    return Data(data=await _view(await sources.records.get(data_source_id), sources, grant))


@router.put(
    "/{data_source_id}", summary="Change a data source", responses=declare(*CHANGES, NotFound)
)
async def change(
    data_source_id: SourceId,
    body: ChangedDataSource,
    parts: ServicesDep,
    sources: HasSources,
    grant: Permit,
) -> Data[DataSource]:
    """Credentials that are kept go to no other host: a source that moves needs them again."""
    source = await sources.records.get(data_source_id)
    await check_edit(source_resource(source), parts.people, grant)
    if grant.role < Role.ADMIN:
        config = source.config if body.config is None else body.config
        kept = body.credentials is None and source.has_credentials
        secrets = (
            (await sources.records.opening(data_source_id)).secrets if kept else body.credentials
        )
        _check_leaning(grant, source.type, config, secrets or ())
    changed = await sources.records.update(
        data_source_id,
        actor=grant.username,
        name=body.name,
        config=body.config,
        secrets=None if body.credentials is None else revealed(body.credentials),
    )
    return Data(data=await _view(changed, sources, grant))


@router.delete(
    "/{data_source_id}",
    summary="Drop a data source",
    responses=declare(*PUBLIC, NotFound, DependencyExists),
)
async def drop(
    data_source_id: SourceId, parts: ServicesDep, sources: HasSources, grant: Permit
) -> Data[Dropped]:
    """Refused while mappings are on it, or jobs that are not over read from it."""
    await _to_change(data_source_id, sources, grant)
    jobs, total = await parts.browser.live_with({"data_source_id": data_source_id})
    if jobs:
        raise DependencyExists(
            f"{total} jobs that are not over read from data source {data_source_id}.",
            hint="Let them end, or cancel them.",
            jobs=jobs,
            count=total,
        )
    if parts.graphs is not None:
        await parts.graphs.mappings.refuse_on_source(data_source_id)
    await sources.records.drop(data_source_id, actor=grant.username)
    return Data(data=Dropped(id=data_source_id))


@router.post("/{data_source_id}/test", summary="Test a data source", responses=declare(*ASKS))
async def test(
    data_source_id: SourceId, parts: ServicesDep, sources: HasSources, grant: Permit
) -> Data[TestResult]:
    """Really connects. That it does not work is an answer, not an error, and is remembered."""
    source = await sources.records.get(data_source_id)
    await check_edit(source_resource(source), parts.people, grant)
    tested, seconds = await sources.records.test(data_source_id, by=grant.username)
    return Data(
        data=TestResult(
            id=tested.data_source_id,
            ok=tested.test_ok or False,
            message=tested.test_says or "",
            seconds=round(seconds, 3),
            tested_at=tested.tested_at or tested.updated_at,
        )
    )


@router.put(
    "/{data_source_id}/default", summary="Make it the default", responses=declare(*PUBLIC, NotFound)
)
async def make_default(
    data_source_id: SourceId, sources: HasSources, grant: Permit
) -> Data[DataSource]:
    """The source of every query that names none. Everybody may read from it, so it is not its
    owner's to decide."""
    default = await sources.records.make_default(data_source_id, actor=grant.username)
    return Data(data=data_source_view(default, shown=True))


@router.get(
    "/{data_source_id}/browse", summary="List the tables of a data source", responses=declare(*ASKS)
)
async def browse(
    data_source_id: SourceId,
    query: Annotated[BrowseQuery, Query()],
    request: Request,
    sources: HasSources,
    grant: Permit,
) -> Listing[Table]:
    """Asks the source itself, now; the schema browser knows what it said last."""
    await _to_use(data_source_id, sources, grant)
    tables = await sources.records.ask(
        data_source_id, lambda source: table_lookup.tables(source, query.prefix), by=grant.username
    )
    found = [table_view(table) for table in tables]
    return query.cut(found if query.ascending else found[::-1], request)


@router.get(
    "/{data_source_id}/schema",
    summary="Show the columns of a table",
    responses=declare(*ASKS, Conflict),
)
async def schema(
    data_source_id: SourceId,
    table: Annotated[
        Text, Query(min_length=1, description="orders, or main.orders", examples=["orders"])
    ],
    sources: HasSources,
    grant: Permit,
) -> Data[TableSchema]:
    """A name that several tables have is 409 until its schema, or its catalog, is written before
    it."""
    await _to_use(data_source_id, sources, grant)
    found, columns = await sources.records.ask(
        data_source_id, lambda source: table_lookup.columns(source, table), by=grant.username
    )
    return Data(data=schema_view(found, columns))


async def _to_change(data_source_id: int, sources: Sources, grant: Grant) -> repository.DataSource:
    source = await sources.records.get(data_source_id)
    grant.over(source.owner)
    return source


async def _to_use(data_source_id: int, sources: Sources, grant: Grant) -> None:
    source = await sources.records.get(data_source_id)
    if not await sources.records.may_use(data_source_id, grant.username, is_admin=grant.is_admin):
        raise PermissionDenied(
            f"This belongs to {source.owner}; others need the role admin or ops, or a share of it.",
            hint="Ask its owner or an admin to share it with you.",
        )


def _check_leaning(
    grant: Grant, kind: str, config: Mapping[str, Any], secrets: Collection[str]
) -> None:
    if grant.role < Role.ADMIN and leans_on_server(kind, config, secrets):
        raise PermissionDenied(
            "Only admins make sources of what the server itself may read.",
            hint="Give credentials of your own; files and sockets of the server are not for everybody.",
        )


async def _view(source: repository.DataSource, sources: Sources, grant: Grant) -> DataSource:
    shown = await sources.records.may_use(
        source.data_source_id, grant.username, is_admin=grant.is_admin
    )
    return data_source_view(source, shown=shown)
