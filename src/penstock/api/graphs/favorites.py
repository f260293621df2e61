"""Favorites of each user; users see only their own."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Page
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import HasGraphs
from penstock.graphs.runtime_config import ResourceKind
from penstock.graphs.snapshots.repository import MAX_ID
from penstock.jobs.http_bodies import Body, Whole
from penstock.kit.errors import Conflict, NotFound, PayloadTooLarge

router = APIRouter(prefix="/api/favorites", tags=["favorites"], route_class=StrictRoute)


class Favorite(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    resource_type: ResourceKind
    resource_id: int = Field(examples=[1])
    resource_name: str = Field(description="Its current name.", examples=["Customers"])
    created_at: datetime


class FavoriteBody(Body):
    resource_type: Annotated[ResourceKind, Field(examples=["mapping"])]
    resource_id: Annotated[Whole, Field(ge=1, le=MAX_ID, examples=[1])]


class Dropped(BaseModel):
    deleted: bool = Field(description="False: it was not a favorite.", examples=[True])


class FavoriteQuery(Page):
    sort_by: Literal["created_at"] = "created_at"
    resource_type: ResourceKind | None = None


@router.get("", summary="List your favourites", responses=declare(*PUBLIC))
async def list_favorites(
    query: Annotated[FavoriteQuery, Query()], request: Request, graphs: HasGraphs, grant: Permit
) -> Listing[Favorite]:
    """Newest first."""
    rows, total = await graphs.favourites.of(
        grant.username,
        query.resource_type,
        offset=query.offset,
        limit=query.limit,
        ascending=query.ascending,
    )
    return query.of([Favorite.model_validate(row) for row in rows], total, request)


@router.post(
    "",
    summary="Add a favourite",
    status_code=201,
    responses=declare(*PUBLIC, NotFound, Conflict, PayloadTooLarge),
)
async def add(body: FavoriteBody, graphs: HasGraphs, grant: Permit) -> Data[Favorite]:
    """Any visible resource can be a favorite, until it is deleted or removed here."""
    added = await graphs.favourites.add(grant.username, body.resource_type, body.resource_id)
    return Data(data=Favorite.model_validate(added))


@router.delete(
    "/{resource_type}/{resource_id}", summary="Drop a favourite", responses=declare(*PUBLIC)
)
async def drop(
    resource_type: ResourceKind,
    resource_id: Annotated[int, Path(ge=1, le=MAX_ID, examples=[1])],
    graphs: HasGraphs,
    grant: Permit,
) -> Data[Dropped]:
    """Idempotent."""
    return Data(
        data=Dropped(
            deleted=await graphs.favourites.drop(grant.username, resource_type, resource_id)
        )
    )
