"""The schema browser: catalogs, schemas, tables and columns of the sources that the
caller may use, as they were when they were last asked.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Page
from penstock.api.permissions import Grant, Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing, Meta, request_id
from penstock.api.services import HasSources, ServicesDep
from penstock.jobs.http_bodies import Key
from penstock.kit.errors import NotFound
from penstock.sources.schema_cache import MAX_SEARCH, Reader, SchemaRefresh

router = APIRouter(prefix="/api/schema", tags=["schema"], route_class=StrictRoute)
Part = Annotated[
    str, Path(min_length=1, max_length=500, pattern=r"^[^\x00/]+$", examples=["warehouse"])
]
T = TypeVar("T", bound=BaseModel)


class Catalog(BaseModel):
    catalog_name: str = Field(examples=["warehouse"])
    schema_count: int
    cached_at: datetime


class Schema(BaseModel):
    catalog_name: str = Field(examples=["warehouse"])
    schema_name: str = Field(examples=["main"])
    table_count: int
    cached_at: datetime


class Table(BaseModel):
    catalog_name: str = Field(examples=["warehouse"])
    schema_name: str = Field(examples=["main"])
    table_name: str = Field(examples=["orders"])
    table_type: str = Field(examples=["table"])
    column_count: int
    cached_at: datetime


class Column(BaseModel):
    catalog_name: str = Field(examples=["warehouse"])
    schema_name: str = Field(examples=["main"])
    table_name: str = Field(examples=["orders"])
    column_name: str = Field(examples=["id"])
    data_type: str = Field(examples=["BIGINT"])
    is_nullable: bool
    ordinal_position: int
    column_default: str | None
    cached_at: datetime


class Stats(BaseModel):
    total_catalogs: int = Field(examples=[1])
    total_schemas: int
    total_tables: int
    total_columns: int
    index_size_bytes: int
    last_refresh: datetime | None


class Triggered(BaseModel):
    status: Literal["refresh triggered"] = Field(
        "refresh triggered", examples=["refresh triggered"]
    )


class NameQuery(Page):
    sort_by: Literal["name"] = "name"
    sort_order: Literal["asc", "desc"] = "asc"


class SearchQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    q: Annotated[
        Key, Field(max_length=200, description="A prefix or a part of the name.", examples=["ord"])
    ]
    limit: Annotated[int, Field(ge=1, le=MAX_SEARCH)] = 100


NameList = Annotated[NameQuery, Query()]
Search = Annotated[SearchQuery, Query()]


@router.get("/catalogs", summary="List catalogs", responses=declare(*PUBLIC))
async def catalogs(
    query: NameList, request: Request, sources: HasSources, grant: Permit
) -> Listing[Catalog]:
    return _page(Catalog, await sources.cache.catalogs(_reader(grant)), query, request)


@router.get(
    "/catalogs/{catalog}/schemas", summary="List schemas", responses=declare(*PUBLIC, NotFound)
)
async def schemas(
    catalog: Part, query: NameList, request: Request, sources: HasSources, grant: Permit
) -> Listing[Schema]:
    return _page(Schema, await sources.cache.schemas(_reader(grant), catalog), query, request)


@router.get(
    "/catalogs/{catalog}/schemas/{schema}/tables",
    summary="List tables",
    responses=declare(*PUBLIC, NotFound),
)
async def tables(
    catalog: Part,
    schema: Part,
    query: NameList,
    request: Request,
    sources: HasSources,
    grant: Permit,
) -> Listing[Table]:
    return _page(Table, await sources.cache.tables(_reader(grant), catalog, schema), query, request)


@router.get(
    "/catalogs/{catalog}/schemas/{schema}/tables/{table}/columns",
    summary="List columns",
    responses=declare(*PUBLIC, NotFound),
)
async def columns(
    catalog: Part,
    schema: Part,
    table: Part,
    query: NameList,
    request: Request,
    sources: HasSources,
    grant: Permit,
) -> Listing[Column]:
    """In the table's column order."""
    return _page(
        Column, await sources.cache.columns(_reader(grant), catalog, schema, table), query, request
    )


@router.get("/search/tables", summary="Search tables", responses=declare(*PUBLIC))
async def search_tables(
    query: Search, request: Request, sources: HasSources, grant: Permit
) -> Listing[Table]:
    """Names with this prefix come first, then those that contain it; case-insensitive."""
    return _found(
        Table,
        await sources.cache.search_tables(_reader(grant), query.q, query.limit),
        query,
        request,
    )


@router.get("/search/columns", summary="Search columns", responses=declare(*PUBLIC))
async def search_columns(
    query: Search, request: Request, sources: HasSources, grant: Permit
) -> Listing[Column]:
    return _found(
        Column,
        await sources.cache.search_columns(_reader(grant), query.q, query.limit),
        query,
        request,
    )


@router.post(
    "/admin/refresh", summary="Refresh the cache from all sources", responses=declare(*PUBLIC)
)
async def refresh(services: ServicesDep, _: Permit) -> Data[Triggered]:
    """Starts a refresh in the background; a source's old entries stay until it has answered."""
    for loop in services.loops:
        if isinstance(loop, SchemaRefresh):
            loop.trigger()
    return Data(data=Triggered())


@router.get("/stats", summary="Show the cache statistics", responses=declare(*PUBLIC))
async def stats(sources: HasSources, _: Permit) -> Data[Stats]:
    return Data(data=Stats(**await sources.cache.stats()))


def _reader(grant: Grant) -> Reader:
    return Reader(username=grant.username, is_admin=grant.is_admin)


def _page(
    kind: type[T], rows: Sequence[Mapping[str, object]], query: NameQuery, request: Request
) -> Listing[T]:
    page = [kind.model_validate(row) for row in rows]
    return query.cut(page if query.ascending else page[::-1], request)


def _found(
    kind: type[T], rows: Sequence[Mapping[str, object]], query: SearchQuery, request: Request
) -> Listing[T]:
    meta = Meta(total=len(rows), offset=0, limit=query.limit, request_id=request_id(request))
    return Listing(data=[kind.model_validate(row) for row in rows], meta=meta)
