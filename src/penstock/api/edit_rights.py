"""Edit permission on resources of other users: for admins, operators, and users with an `edit`
share."""

from penstock.accounts.shares import Resource
from penstock.api.permissions import Grant
from penstock.api.services import People
from penstock.graphs.mappings.model import MappingRecord
from penstock.kit.errors import PermissionDenied
from penstock.reconcile.recipes.repository import Kept
from penstock.sources.repository import DataSource


def source_resource(source: DataSource) -> Resource:
    return Resource(type="data_source", id=str(source.data_source_id), owner=source.owner)


def mapping_resource(mapping: MappingRecord) -> Resource:
    return Resource(type="mapping", id=str(mapping.mapping_id), owner=mapping.owner_username)


def recipe_resource(recipe: Kept) -> Resource:
    return Resource(type="recipe", id=recipe.recipe_id, owner=recipe.owner_username)


async def check_edit(resource: Resource, people: People | None, grant: Grant) -> None:
    """Raises PermissionDenied unless the caller is the owner, an admin, an operator, or has an
    `edit` share."""
    if grant.may(resource.owner):
        return
    if people is None or await people.shares.role(resource, grant.username) != "edit":
        raise PermissionDenied(
            f"This belongs to {resource.owner}; others need the role admin or ops, or a share with"
            " the role edit."
        )
