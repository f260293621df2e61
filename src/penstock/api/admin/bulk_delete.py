"""Bulk delete of mappings, snapshots and instances."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field, Strict, StrictBool, model_validator

from penstock.api.errors import PUBLIC, declare
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import HasOperations
from penstock.graphs.runtime_config import ResourceKind
from penstock.graphs.snapshots.repository import MAX_NAME
from penstock.jobs.http_bodies import Body, Key, Whole
from penstock.kit.errors import PayloadTooLarge
from penstock.operations.bulk_delete import MOST, BulkFilter
from penstock.operations.bulk_delete import Deleted as Done

router = APIRouter(prefix="/api/admin", tags=["admin"], route_class=StrictRoute)
MOST_HOURS = 10 * 366 * 24
Named = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00]*$", examples=["test-"])
]


class Filters(Body):
    """All given filters must match."""

    name_prefix: Named | None = None
    created_by: Named | None = None
    older_than_hours: (
        Annotated[float, Strict(), Field(ge=0, le=MOST_HOURS, examples=[24])] | None
    ) = None
    status: Annotated[Key, Field(max_length=50, examples=["failed"])] | None = None

    def value(self) -> BulkFilter:
        hours = self.older_than_hours
        return BulkFilter(
            name_prefix=self.name_prefix,
            created_by=self.created_by,
            older_than=None if hours is None else timedelta(hours=hours),
            status=self.status,
        )


class BulkBody(Body):
    resource_type: Annotated[ResourceKind, Field(examples=["snapshot"])]
    filters: Annotated[Filters, Field(examples=[{"name_prefix": "test-"}])]
    reason: Annotated[Key, Field(examples=["Left over from a test"])]
    expected_count: (
        Annotated[
            Whole,
            Field(
                ge=0,
                le=MOST,
                description="How many you expect; required unless it is a dry run.",
                examples=[0],
            ),
        ]
        | None
    ) = None
    dry_run: Annotated[
        StrictBool, Field(description="Only report what would be deleted.", examples=[True])
    ] = False

    @model_validator(mode="after")
    def _is_meant(self) -> "BulkBody":
        if not self.dry_run and self.expected_count is None:
            raise ValueError("expected_count is required; a dry run reports the count")
        return self


class Deleted(BaseModel):
    dry_run: bool = Field(examples=[True])
    matched_count: int
    matched_ids: list[int]
    deleted_count: int
    deleted_ids: list[int]
    failed_ids: list[int]
    errors: dict[str, str] = Field(description="Why each of failed_ids was not deleted.")


@router.delete(
    "/resources/bulk", summary="Delete many resources", responses=declare(*PUBLIC, PayloadTooLarge)
)
async def bulk_delete(body: BulkBody, operations: HasOperations, grant: Permit) -> Data[Deleted]:
    """At most 100, by at least one filter, and exactly as many as you expect. Resources that are
    still in use are not deleted and appear in `errors`."""
    which = body.filters.value()
    if body.dry_run or body.expected_count is None:
        return Data(
            data=_view(await operations.bulk.match(body.resource_type, which), Done(), dry_run=True)
        )
    matched, done = await operations.bulk.delete(
        body.resource_type,
        which,
        expected=body.expected_count,
        actor=grant.username,
        reason=body.reason,
    )
    return Data(data=_view(matched, done, dry_run=False))


def _view(matched: list[int], done: Done, *, dry_run: bool) -> Deleted:
    return Deleted(
        dry_run=dry_run,
        matched_count=len(matched),
        matched_ids=matched,
        deleted_count=len(done.ids),
        deleted_ids=done.ids,
        failed_ids=list(done.errors),
        errors={str(resource_id): error for resource_id, error in done.errors.items()},
    )
