"""Routes for sharing data sources, mappings and recipes.

Everybody can see the shares; the owner, admins and operators can change them. `use` allows running
a resource, `edit` also changing it. How a share of a mapping or recipe affects its data source:
docs/guides/people-and-access.md.
"""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from penstock.accounts.shares import EVERYBODY, Resource, ShareRole
from penstock.api.edit_rights import mapping_resource, recipe_resource, source_resource
from penstock.api.errors import PUBLIC, declare
from penstock.api.graphs.mappings import MappingId
from penstock.api.permissions import Grant, Permit
from penstock.api.reconcile.recipes import RecipeId
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import (
    Graphs,
    HasGraphs,
    HasPeople,
    HasReconciliation,
    HasSources,
    People,
    Reconciliation,
    Sources,
)
from penstock.api.sources.data_sources import SourceId
from penstock.jobs.http_bodies import Body
from penstock.kit.errors import Conflict, NotFound, PayloadTooLarge

router = APIRouter(prefix="/api", tags=["shares"], route_class=StrictRoute)
Grantee = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        description=f"A username, or {EVERYBODY} for everybody.",
        examples=["ben"],
    ),
]
FOUND = declare(*PUBLIC, NotFound)
WRITES = declare(*PUBLIC, NotFound, Conflict, PayloadTooLarge)


class Share(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    username: str = Field(description=f"{EVERYBODY} is everybody.", examples=["ben"])
    role: ShareRole
    created_by: str
    created_at: datetime


class ShareBody(Body):
    role: Annotated[Literal["use", "edit"], Field(examples=["use"])] = "use"


class Unshared(BaseModel):
    deleted: bool = Field(description="False: it was not shared with them.", examples=[True])


@router.get(
    "/data-sources/{data_source_id}/shares",
    summary="List who a data source is shared with",
    responses=FOUND,
)
async def list_source_shares(
    data_source_id: SourceId, sources: HasSources, people: HasPeople, _: Permit
) -> Data[list[Share]]:
    return Data(data=await _listed(await _source(data_source_id, sources), people))


@router.put(
    "/data-sources/{data_source_id}/shares/{grantee}",
    summary="Share a data source",
    responses=WRITES,
)
async def share_source(
    data_source_id: SourceId,
    grantee: Grantee,
    body: ShareBody,
    sources: HasSources,
    people: HasPeople,
    grant: Permit,
) -> Data[Share]:
    return Data(
        data=await _put(await _source(data_source_id, sources), grantee, body.role, people, grant)
    )


@router.delete(
    "/data-sources/{data_source_id}/shares/{grantee}",
    summary="Stop sharing a data source",
    responses=FOUND,
)
async def unshare_source(
    data_source_id: SourceId,
    grantee: Grantee,
    sources: HasSources,
    people: HasPeople,
    grant: Permit,
) -> Data[Unshared]:
    """Takes effect at once, also for running and queued work. Idempotent."""
    return Data(data=await _dropped(await _source(data_source_id, sources), grantee, people, grant))


@router.get(
    "/mappings/{mapping_id:int}/shares",
    summary="List who a mapping is shared with",
    responses=FOUND,
)
async def list_mapping_shares(
    mapping_id: MappingId, graphs: HasGraphs, people: HasPeople, _: Permit
) -> Data[list[Share]]:
    return Data(data=await _listed(await _mapping(mapping_id, graphs), people))


@router.put(
    "/mappings/{mapping_id:int}/shares/{grantee}", summary="Share a mapping", responses=WRITES
)
async def share_mapping(
    mapping_id: MappingId,
    grantee: Grantee,
    body: ShareBody,
    graphs: HasGraphs,
    people: HasPeople,
    grant: Permit,
) -> Data[Share]:
    return Data(
        data=await _put(await _mapping(mapping_id, graphs), grantee, body.role, people, grant)
    )


@router.delete(
    "/mappings/{mapping_id:int}/shares/{grantee}", summary="Stop sharing a mapping", responses=FOUND
)
async def unshare_mapping(
    mapping_id: MappingId, grantee: Grantee, graphs: HasGraphs, people: HasPeople, grant: Permit
) -> Data[Unshared]:
    """Takes effect at once, also for running and queued work. Idempotent."""
    return Data(data=await _dropped(await _mapping(mapping_id, graphs), grantee, people, grant))


@router.get(
    "/recipes/{recipe_id}/shares", summary="List who a recipe is shared with", responses=FOUND
)
async def list_recipe_shares(
    recipe_id: RecipeId, reconciliation: HasReconciliation, people: HasPeople, _: Permit
) -> Data[list[Share]]:
    return Data(data=await _listed(await _recipe(recipe_id, reconciliation), people))


@router.put("/recipes/{recipe_id}/shares/{grantee}", summary="Share a recipe", responses=WRITES)
async def share_recipe(
    recipe_id: RecipeId,
    grantee: Grantee,
    body: ShareBody,
    reconciliation: HasReconciliation,
    people: HasPeople,
    grant: Permit,
) -> Data[Share]:
    return Data(
        data=await _put(await _recipe(recipe_id, reconciliation), grantee, body.role, people, grant)
    )


@router.delete(
    "/recipes/{recipe_id}/shares/{grantee}", summary="Stop sharing a recipe", responses=FOUND
)
async def unshare_recipe(
    recipe_id: RecipeId,
    grantee: Grantee,
    reconciliation: HasReconciliation,
    people: HasPeople,
    grant: Permit,
) -> Data[Unshared]:
    """Takes effect at once, also for running and queued work. Idempotent."""
    return Data(
        data=await _dropped(await _recipe(recipe_id, reconciliation), grantee, people, grant)
    )


async def _source(data_source_id: int, sources: Sources) -> Resource:
    source = await sources.records.get(data_source_id)
    return source_resource(source)


async def _mapping(mapping_id: int, graphs: Graphs) -> Resource:
    return mapping_resource(await graphs.mappings.get(mapping_id))


async def _recipe(recipe_id: str, reconciliation: Reconciliation) -> Resource:
    return recipe_resource(await reconciliation.service.recipes.get(recipe_id))


async def _listed(resource: Resource, people: People) -> list[Share]:
    return [Share.model_validate(share) for share in await people.shares.list(resource)]


async def _put(
    resource: Resource, grantee: str, role: ShareRole, people: People, grant: Grant
) -> Share:
    grant.over(resource.owner)
    return Share.model_validate(
        await people.shares.put(resource, grantee, role, actor=grant.username)
    )


async def _dropped(resource: Resource, grantee: str, people: People, grant: Grant) -> Unshared:
    grant.over(resource.owner)
    return Unshared(deleted=await people.shares.drop(resource, grantee, actor=grant.username))
