"""Routes of snapshots: the exported files of a mapping version. Creating an instance creates one if
needed."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from penstock.api.errors import PUBLIC, declare
from penstock.api.graphs.mapping_schemas import Deleted, LifecycleBody
from penstock.api.graphs.mappings import MappingId, UseCase
from penstock.api.graphs.snapshot_schemas import (
    ChangedSnapshot,
    NewSnapshot,
    OfMappingQuery,
    Progress,
    Snapshot,
    SnapshotQuery,
    progressed,
    shown,
)
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import Graphs, HasGraphs
from penstock.graphs.errors import InvalidStateTransition, Maintenance
from penstock.graphs.lifetime import lifetime, lifetime_change
from penstock.graphs.snapshots import model as domain
from penstock.graphs.snapshots.repository import SnapshotFilter
from penstock.jobs.limits import MAX_JOB_ID
from penstock.kit.errors import (
    ConcurrencyLimit,
    Conflict,
    DependencyExists,
    Draining,
    NotFound,
    PayloadTooLarge,
)

router = APIRouter(prefix="/api/snapshots", tags=["snapshots"], route_class=StrictRoute)
of_mapping = APIRouter(prefix="/api/mappings", tags=["snapshots"], route_class=StrictRoute)
SnapshotId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]
FOUND = declare(*PUBLIC, NotFound)
WRITES = declare(*PUBLIC, NotFound, PayloadTooLarge)
STEPS = declare(*PUBLIC, NotFound, InvalidStateTransition, Conflict, Draining)


@router.get("", summary="List snapshots", responses=declare(*PUBLIC))
async def list_snapshots(
    query: Annotated[SnapshotQuery, Query()], request: Request, graphs: HasGraphs, _: Permit
) -> Listing[Snapshot]:
    """All users' snapshots, newest first."""
    return await _page(query, query.filter(query.mapping_id), request, graphs)


@of_mapping.get(
    "/{mapping_id:int}/snapshots", summary="List the snapshots of a mapping", responses=FOUND
)
async def list_of_mapping(
    mapping_id: MappingId,
    query: Annotated[OfMappingQuery, Query()],
    request: Request,
    graphs: HasGraphs,
    _: Permit,
) -> Listing[Snapshot]:
    """Snapshots of all versions, newest first."""
    await graphs.mappings.get(mapping_id)
    return await _page(query, query.filter(mapping_id), request, graphs)


@router.post(
    "",
    summary="Create a snapshot",
    status_code=201,
    responses=declare(*PUBLIC, NotFound, PayloadTooLarge, ConcurrencyLimit, Maintenance, Draining),
)
async def create(
    body: NewSnapshot, graphs: HasGraphs, grant: Permit, use_case: UseCase = None
) -> Data[Snapshot]:
    """Starts its exports; it is ready once all are done and the manifest is written."""
    await graphs.config.refuse_in_maintenance()
    rule = (await graphs.config.lifecycle())["snapshot"]
    snapshot = await graphs.mapped.create(
        body.mapping_id,
        body.mapping_version,
        owner=grant.username,
        name=body.name,
        description=body.description,
        lifetime=lifetime(rule, ttl=body.ttl, inactivity_timeout=body.inactivity_timeout),
        starburst_role=use_case,
        is_admin=grant.is_admin,
    )
    return await _one(snapshot, graphs)


@router.get("/{snapshot_id:int}", summary="Show a snapshot", responses=FOUND)
async def show(snapshot_id: SnapshotId, graphs: HasGraphs, _: Permit) -> Data[Snapshot]:
    return await _one(await graphs.snapshots.get(snapshot_id), graphs)


@router.put("/{snapshot_id:int}", summary="Rename a snapshot", responses=WRITES)
async def change(
    snapshot_id: SnapshotId, body: ChangedSnapshot, graphs: HasGraphs, grant: Permit
) -> Data[Snapshot]:
    """Changes its name and description; its content is immutable."""
    grant.over((await graphs.snapshots.get(snapshot_id)).owner_username)
    return await _one(await graphs.snapshots.rename(snapshot_id, body.told()), graphs)


@router.delete(
    "/{snapshot_id:int}",
    summary="Delete a snapshot",
    responses=declare(*PUBLIC, NotFound, DependencyExists, Conflict),
)
async def delete(snapshot_id: SnapshotId, graphs: HasGraphs, grant: Permit) -> Data[Deleted]:
    """Refused while an instance needs it. A running export is cancelled, and the files are
    deleted."""
    grant.over((await graphs.snapshots.get(snapshot_id)).owner_username)
    await graphs.removal.drop(snapshot_id, actor=grant.username)
    return Data(data=Deleted(id=snapshot_id))


@router.put(
    "/{snapshot_id:int}/lifecycle", summary="Set how long a snapshot lives", responses=WRITES
)
async def lifecycle(
    snapshot_id: SnapshotId, body: LifecycleBody, graphs: HasGraphs, grant: Permit
) -> Data[Snapshot]:
    """A `ttl` counts from now."""
    grant.over((await graphs.snapshots.get(snapshot_id)).owner_username)
    rule = (await graphs.config.lifecycle())["snapshot"]
    return await _one(
        await graphs.snapshots.live(snapshot_id, lifetime_change(rule, body.told())), graphs
    )


@router.get("/{snapshot_id:int}/progress", summary="Show how far a snapshot is", responses=FOUND)
async def progress(snapshot_id: SnapshotId, graphs: HasGraphs, _: Permit) -> Data[Progress]:
    """The progress of each export."""
    return Data(data=progressed(await graphs.progress.of(snapshot_id)))


@router.post("/{snapshot_id:int}/retry", summary="Try a failed snapshot again", responses=STEPS)
async def retry(snapshot_id: SnapshotId, graphs: HasGraphs, grant: Permit) -> Data[Snapshot]:
    """Retries the exports that did not complete."""
    grant.over((await graphs.snapshots.get(snapshot_id)).owner_username)
    await graphs.rights.check_snapshot(snapshot_id, grant.username, is_admin=grant.is_admin)
    await graphs.exports.retry(snapshot_id)
    return await _one(await graphs.snapshots.get(snapshot_id), graphs)


@router.post("/{snapshot_id:int}/cancel", summary="Cancel a snapshot", responses=STEPS)
async def cancel(snapshot_id: SnapshotId, graphs: HasGraphs, grant: Permit) -> Data[Snapshot]:
    """Cancels all of its exports."""
    grant.over((await graphs.snapshots.get(snapshot_id)).owner_username)
    reason = f"Cancelled by {grant.username}."
    return await _one(
        await graphs.exports.cancel(snapshot_id, actor=grant.username, reason=reason), graphs
    )


async def _one(snapshot: domain.Snapshot, graphs: Graphs) -> Data[Snapshot]:
    [view] = await _views([snapshot], graphs)
    return Data(data=view)


async def _views(page: Sequence[domain.Snapshot], graphs: Graphs) -> list[Snapshot]:
    tallies = await graphs.progress.tallies(page)
    return [shown(snapshot, tallies[snapshot.snapshot_id], graphs) for snapshot in page]


async def _page(
    query: OfMappingQuery, which: SnapshotFilter, request: Request, graphs: Graphs
) -> Listing[Snapshot]:
    page, total = await graphs.snapshots.page(
        which,
        offset=query.offset,
        limit=query.limit,
        sort_by=query.sort_by,
        ascending=query.ascending,
    )
    return query.of(await _views(page, graphs), total, request)
