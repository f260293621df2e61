"""Routes of instances: create, list, change, suspend, resume and terminate."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from penstock.api.errors import PUBLIC, declare
from penstock.api.graphs.instance_schemas import (
    ChangedInstance,
    CpuBody,
    EndBody,
    Ended,
    EventQuery,
    EventShown,
    Instance,
    InstanceQuery,
    MemoryBody,
    Mine,
    NewInstance,
    Progress,
    UserStatus,
    progress,
    shown,
)
from penstock.api.graphs.mapping_schemas import LifecycleBody
from penstock.api.graphs.mappings import UseCase
from penstock.api.permissions import Grant, Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import Graphs, HasGraphs
from penstock.graphs.errors import InvalidStateTransition, Maintenance, ShutdownBlocked
from penstock.graphs.instances import model
from penstock.graphs.lifetime import lifetime_change
from penstock.jobs.limits import MAX_JOB_ID
from penstock.kit.errors import ConcurrencyLimit, Draining, InvalidState, NotFound, PayloadTooLarge

router = APIRouter(prefix="/api/instances", tags=["instances"], route_class=StrictRoute)
of_mapping = APIRouter(prefix="/api/mappings", tags=["mappings"], route_class=StrictRoute)
InstanceId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]
FOUND = declare(*PUBLIC, NotFound)
WRITES = (*PUBLIC, NotFound, PayloadTooLarge)
CREATES = declare(*WRITES, ConcurrencyLimit, InvalidState, Maintenance, Draining)
STEPS = declare(*WRITES, InvalidStateTransition, InvalidState)
ENDS = declare(*WRITES, InvalidStateTransition, InvalidState, ShutdownBlocked)


async def _owned(graphs: Graphs, instance_id: int, grant: Grant) -> model.Instance:
    """The instance, if the caller may change it."""
    instance = await graphs.instances.store.get(instance_id)
    grant.over(instance.owner_username)
    return instance


@router.get("", summary="List instances", responses=declare(*PUBLIC))
async def list_instances(
    query: Annotated[InstanceQuery, Query()], request: Request, graphs: HasGraphs, grant: Permit
) -> Listing[Instance]:
    """All users' instances, newest first."""
    page, total = await graphs.instances.store.page(
        query.filter(),
        offset=query.offset,
        limit=query.limit,
        sort_by=query.sort_by,
        ascending=query.ascending,
    )
    return query.of([shown(instance, graphs, grant) for instance in page], total, request)


@router.post("", summary="Start an instance", status_code=201, responses=CREATES)
@router.post(
    "/from-mapping", summary="Start an instance (older name)", status_code=201, responses=CREATES
)
async def create(
    body: NewInstance, graphs: HasGraphs, grant: Permit, use_case: UseCase = None
) -> Data[Instance]:
    """Starts as soon as its snapshot is ready."""
    instance = await graphs.instances.creation.create(
        body.wish(grant.username, use_case, is_admin=grant.is_admin)
    )
    return Data(data=shown(instance, graphs, grant))


@router.get("/user/status", summary="Show what the caller has running", responses=declare(*PUBLIC))
async def user_status(graphs: HasGraphs, grant: Permit) -> Data[UserStatus]:
    parts = graphs.instances
    load, most = await parts.quota.load(grant.username), await graphs.config.concurrency()
    left = max(0, min(most.per_analyst - load.user_count, most.cluster_total - load.cluster_count))
    memory = parts.quota.memory
    room = min(memory.per_user_gb - load.user_memory, memory.total_gb - load.cluster_memory)
    return Data(
        data=UserStatus(
            username=grant.username,
            active_instances=load.user_count,
            max_instances=most.per_analyst,
            remaining_instances=left,
            memory_gb=load.user_memory,
            max_memory_gb=memory.per_user_gb,
            can_create=left > 0 and room >= model.LEAST_MEMORY,
            instances=[
                Mine.model_validate(mine, from_attributes=True)
                for mine in await parts.store.of(grant.username)
            ],
        )
    )


@router.get("/{instance_id}", summary="Show an instance", responses=FOUND)
async def show(instance_id: InstanceId, graphs: HasGraphs, grant: Permit) -> Data[Instance]:
    return Data(data=shown(await graphs.instances.store.get(instance_id), graphs, grant))


@router.put("/{instance_id}", summary="Rename an instance", responses=declare(*WRITES))
async def change(
    instance_id: InstanceId, body: ChangedInstance, graphs: HasGraphs, grant: Permit
) -> Data[Instance]:
    await _owned(graphs, instance_id, grant)
    fields = body.model_fields_set
    changed = await graphs.instances.store.change(
        instance_id,
        name=body.name,
        description=body.description,
        set_description="description" in fields,
    )
    return Data(data=shown(changed, graphs, grant))


@router.delete("/{instance_id}", summary="Terminate an instance", responses=ENDS)
async def delete(
    instance_id: InstanceId, graphs: HasGraphs, grant: Permit, force: bool = False
) -> Data[Ended]:
    return await terminate(instance_id, graphs, grant, EndBody(force=force))


@router.post("/{instance_id}/terminate", summary="Terminate an instance", responses=ENDS)
async def terminate(
    instance_id: InstanceId, graphs: HasGraphs, grant: Permit, body: EndBody | None = None
) -> Data[Ended]:
    """Refused while an algorithm runs (SHUTDOWN_BLOCKED), unless `force` is set. Deletes the
    instance."""
    await _owned(graphs, instance_id, grant)
    options = body or EndBody()
    gone = await graphs.instances.steps.terminate(
        instance_id, actor=grant.username, reason=options.reason, force=options.force
    )
    return Data(data=Ended(id=instance_id, status="terminated" if gone else "stopping"))


@router.put(
    "/{instance_id}/lifecycle", summary="Set how long an instance lives", responses=declare(*WRITES)
)
async def lifecycle(
    instance_id: InstanceId, body: LifecycleBody, graphs: HasGraphs, grant: Permit
) -> Data[Instance]:
    """A `ttl` counts from now and never shortens the current expiry; null: no expiry."""
    await _owned(graphs, instance_id, grant)
    rule = (await graphs.config.lifecycle())["instance"]
    changed = await graphs.instances.store.live(instance_id, lifetime_change(rule, body.told()))
    return Data(data=shown(changed, graphs, grant))


@router.put("/{instance_id}/cpu", summary="Set an instance's cores", responses=STEPS)
async def cpu(
    instance_id: InstanceId, body: CpuBody, graphs: HasGraphs, grant: Permit
) -> Data[Instance]:
    await _owned(graphs, instance_id, grant)
    resized = await graphs.instances.steps.resize(
        instance_id, actor=grant.username, cpu_cores=body.cpu_cores
    )
    return Data(data=shown(resized, graphs, grant))


@router.put(
    "/{instance_id}/memory",
    summary="Give an instance more memory",
    responses=declare(*WRITES, InvalidState, ConcurrencyLimit),
)
async def memory(
    instance_id: InstanceId, body: MemoryBody, graphs: HasGraphs, grant: Permit
) -> Data[Instance]:
    await _owned(graphs, instance_id, grant)
    resized = await graphs.instances.steps.resize(
        instance_id, actor=grant.username, memory_gb=body.memory_gb
    )
    return Data(data=shown(resized, graphs, grant))


@router.get(
    "/{instance_id}/progress", summary="Show how far an instance has loaded", responses=FOUND
)
async def loading(instance_id: InstanceId, graphs: HasGraphs, _: Permit) -> Data[Progress]:
    return Data(data=progress(await graphs.instances.store.get(instance_id)))


@router.get("/{instance_id}/events", summary="List what happened to an instance", responses=FOUND)
async def events(
    instance_id: InstanceId,
    query: Annotated[EventQuery, Query()],
    request: Request,
    graphs: HasGraphs,
    _: Permit,
) -> Listing[EventShown]:
    """The last 1000 events, newest first."""
    rows = await graphs.instances.store.events(instance_id)
    if query.ascending:
        rows.reverse()
    return query.cut(
        [EventShown.model_validate(event, from_attributes=True) for event in rows], request
    )


@router.post("/{instance_id}/suspend", summary="Put an instance to sleep", responses=ENDS)
async def suspend(
    instance_id: InstanceId, graphs: HasGraphs, grant: Permit, body: EndBody | None = None
) -> Data[Instance]:
    """Stops its process and frees its quota; `resume` loads the same snapshot again."""
    await _owned(graphs, instance_id, grant)
    options = body or EndBody()
    asleep = await graphs.instances.steps.suspend(
        instance_id, actor=grant.username, reason=options.reason, force=options.force
    )
    return Data(data=shown(asleep, graphs, grant))


@router.post(
    "/{instance_id}/resume",
    summary="Wake an instance",
    responses=declare(*WRITES, InvalidStateTransition, InvalidState, ConcurrencyLimit, Maintenance),
)
async def resume(instance_id: InstanceId, graphs: HasGraphs, grant: Permit) -> Data[Instance]:
    """Loads the snapshot of a suspended or failed instance again, in a new process."""
    stopped = await _owned(graphs, instance_id, grant)
    await graphs.rights.check_instance(stopped, grant.username, is_admin=grant.is_admin)
    return Data(
        data=shown(
            await graphs.instances.steps.resume(instance_id, actor=grant.username), graphs, grant
        )
    )


@of_mapping.get(
    "/{mapping_id}/instances", summary="List the instances of a mapping", responses=FOUND
)
async def of_a_mapping(
    mapping_id: Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])],
    query: Annotated[InstanceQuery, Query()],
    request: Request,
    graphs: HasGraphs,
    grant: Permit,
) -> Listing[Instance]:
    """Instances of all versions of the mapping."""
    await graphs.mappings.get(mapping_id)
    return await list_instances(
        query.model_copy(update={"mapping_id": mapping_id}), request, graphs, grant
    )
