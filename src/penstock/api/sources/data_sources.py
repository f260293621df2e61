"""Data sources: where data comes from, by name. Credentials go in here and never come out.

Everybody sees which sources there are. What one is made of, how its test ended, and what is in it,
is for its owner, for admins and ops, for those with whom it is shared, and in the case of the
default source for everybody; changes are for its owner, for admins and ops, and for those with whom
it is shared to edit. What the server itself may read (its files and sockets, a cloud under its own
identity) is opened only by sources that admins and ops made.
"""

from collections.abc import Collection, Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from penstock.api.callers.identity import Role
from penstock.api.edit_rights import check_edit, source_resource
from penstock.api.errors import PUBLIC, declare
from penstock.api.permissions import Grant, Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing
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
    page, total = await sources.records.page(
        kind=query.type, offset=query.offset, limit=query.limit, ascending=query.ascending
    )
    usable = await sources.records.usable(
        [source.data_source_id for source in page], grant.username, is_admin=grant.is_admin
    )
    shown = [data_source_view(source, shown=source.data_source_id in usable) for source in page]
    return query.of(shown, total, request)


@router.post("", summary="Add a data source", status_code=201, responses=declare(*CHANGES))
async def add(body: NewDataSource, sources: HasSources, grant: Permit) -> Data[DataSource]:
    """The driver validates the configuration; use the test route to check the connection."""
    _check_leaning(grant, body.type, body.config, body.credentials)
    source = await sources.records.add(
        name=body.name,
        kind=body.type,
        owner=grant.username,
        config=body.config,
        secrets=revealed(body.credentials),
    )
    return Data(data=data_source_view(source, shown=True))


@router.get("/{data_source_id}", summary="Show a data source", responses=declare(*PUBLIC, NotFound))
async def show(data_source_id: SourceId, sources: HasSources, grant: Permit) -> Data[DataSource]:
    return Data(data=await _view(await sources.records.get(data_source_id), sources, grant))


@router.put(
    "/{data_source_id}", summary="Change a data source", responses=declare(*CHANGES, NotFound)
)
async def change(
    data_source_id: SourceId,
    body: ChangedDataSource,
    services: ServicesDep,
    sources: HasSources,
    grant: Permit,
) -> Data[DataSource]:
    """Stored credentials are never sent to another host: changing the host requires them again."""
    source = await sources.records.get(data_source_id)
    await check_edit(source_resource(source), services.people, grant)
    if grant.role < Role.ADMIN:
        config = source.config if body.config is None else body.config
        keeps_secrets = body.credentials is None and source.has_credentials
        secrets = (
            (await sources.records.opening(data_source_id)).secrets
            if keeps_secrets
            else body.credentials
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
    data_source_id: SourceId, services: ServicesDep, sources: HasSources, grant: Permit
) -> Data[Dropped]:
    """Refused while mappings use it, or unfinished jobs read from it."""
    await _to_change(data_source_id, sources, grant)
    jobs, total = await services.browser.live_with({"data_source_id": data_source_id})
    if jobs:
        raise DependencyExists(
            f"{total} jobs that are not over read from data source {data_source_id}.",
            hint="Wait until they finish, or cancel them.",
            jobs=jobs,
            count=total,
        )
    if services.graphs is not None:
        await services.graphs.mappings.refuse_on_source(data_source_id)
    await sources.records.drop(data_source_id, actor=grant.username)
    return Data(data=Dropped(id=data_source_id))


@router.post("/{data_source_id}/test", summary="Test a data source", responses=declare(*ASKS))
async def test(
    data_source_id: SourceId, services: ServicesDep, sources: HasSources, grant: Permit
) -> Data[TestResult]:
    """Connects to the source. A failure is a result with status 200, and is stored."""
    source = await sources.records.get(data_source_id)
    await check_edit(source_resource(source), services.people, grant)
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
    """The default source serves queries that name none. Everybody may read from it, so only admins
    can set it."""
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
    """Queries the source directly; the schema browser uses a cache."""
    await _to_use(data_source_id, sources, grant)
    tables = await sources.records.ask(
        data_source_id, lambda source: table_lookup.tables(source, query.prefix), by=grant.username
    )
    rows = [table_view(table) for table in tables]
    return query.cut(rows if query.ascending else rows[::-1], request)


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
    """409 for an ambiguous name: qualify it with its schema, or its catalog."""
    await _to_use(data_source_id, sources, grant)
    described, columns = await sources.records.ask(
        data_source_id, lambda source: table_lookup.columns(source, table), by=grant.username
    )
    return Data(data=schema_view(described, columns))


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
    grant: Grant, kind: str, config: Mapping[str, object], secrets: Collection[str]
) -> None:
    if grant.role < Role.ADMIN and leans_on_server(kind, config, secrets):
        raise PermissionDenied(
            "Only admins can create sources with the server's own access.",
            hint="Send your own credentials; the server's files and sockets are for admins only.",
        )


async def _view(source: repository.DataSource, sources: Sources, grant: Grant) -> DataSource:
    shown = await sources.records.may_use(
        source.data_source_id, grant.username, is_admin=grant.is_admin
    )
    return data_source_view(source, shown=shown)
