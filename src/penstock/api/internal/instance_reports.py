"""Internal API of graph servers: status, metrics and progress reports, and the mapping to load. A
server's token is valid only for its own instance."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from penstock.api.errors import INTERNAL, declare
from penstock.api.pagination import Moment
from penstock.api.permissions import Inside
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import HasGraphs
from penstock.graphs.errors import InvalidStateTransition
from penstock.graphs.instances.model import ErrorCode, Failure, StepStatus
from penstock.graphs.instances.repository import MAX_MESSAGE
from penstock.graphs.mappings.definition import documents
from penstock.jobs.limits import MAX_JOB_ID
from penstock.kit.errors import InvalidState, NotFound
from penstock.kit.json_value import JsonObject
from penstock.storage import manifest

router = APIRouter(
    prefix="/api/internal/instances",
    tags=["internal"],
    route_class=StrictRoute,
    dependencies=[Inside],
    responses=declare(NotFound, *INTERNAL),
)
STEPPING = declare(NotFound, InvalidStateTransition, *INTERNAL)
InstanceId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
MAX_SAID = 1_000_000


def _storable(value: object) -> object:
    """Strips NUL, which PostgreSQL cannot store, so that no error report is lost."""
    return value.replace("\x00", "") if isinstance(value, str) else value


Short = Annotated[str, Field(max_length=255), BeforeValidator(_storable)]
Long = Annotated[str, Field(max_length=MAX_SAID), BeforeValidator(_storable)]
_OLDER_PHASES = {
    "loading_nodes": "loading_data",
    "loading_edges": "loading_data",
    "schema_created": "loading_schema",
}


def _phase(phase: str) -> str:
    """Maps the phases of older servers to the current ones."""
    known_phase = _OLDER_PHASES.get(phase, phase)
    if known_phase not in (
        "pod_scheduled",
        "downloading",
        "loading_schema",
        "loading_data",
        "ready",
        "failed",
    ):
        raise ValueError("not a loading phase")
    return known_phase


class Report(BaseModel):
    """Unknown fields are ignored: a server may be newer than its control plane."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class GraphStats(Report):
    node_count: Count | None = None
    edge_count: Count | None = None


class StatusReport(Report):
    status: Annotated[
        Literal["starting", "running", "stopping", "failed"], Field(examples=["running"])
    ]
    graph_stats: GraphStats = GraphStats()
    error_code: ErrorCode = ErrorCode.STARTUP_FAILED
    error_message: (
        Annotated[Long, Field(description=f"The last {MAX_MESSAGE} characters are kept.")] | None
    ) = None
    failed_phase: Short | None = None
    stack_trace: Long | None = None


class MetricsReport(Report):
    memory_usage_bytes: Count | None = None
    disk_usage_bytes: Count | None = None
    last_activity_at: Moment | None = None
    query_count_since_last: Annotated[int, Field(ge=0, le=10**9)] = 0
    avg_query_time_ms: Annotated[float, Field(ge=0)] | None = None


class StepReport(Report):
    name: Short
    type: Short | None = None
    status: StepStatus
    row_count: Count | None = None


class ProgressReport(Report):
    phase: Annotated[
        str, Field(max_length=40), AfterValidator(_phase), Field(examples=["loading_data"])
    ]
    current_step: Short | None = None
    progress_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    steps: Annotated[list[StepReport], Field(max_length=2000)] = []

    def kept(self) -> JsonObject:
        done = sum(step.status == "completed" for step in self.steps)
        share = int(100 * done / len(self.steps)) if self.steps else 0
        percent = share if self.progress_percent is None else self.progress_percent
        return self.model_dump() | {"progress_percent": percent}


class Updated(BaseModel):
    updated: bool = Field(description="False: no change, or the instance is in a later state.")


class ToLoad(BaseModel):
    """What a graph server loads: the snapshot's version, never the mapping's current one."""

    instance_id: int
    snapshot_id: int
    mapping_id: int | None
    mapping_version: int | None
    owner_username: str
    wrapper_type: str
    gcs_path: str
    prefix: str = Field(description="The same path, relative to the storage root.")
    manifest: str
    node_definitions: list[JsonObject]
    edge_definitions: list[JsonObject]
    limits: dict[str, int]


@router.put("/{instance_id}/status", summary="Report an instance's status", responses=STEPPING)
@router.patch("/{instance_id}/status", summary="Report an instance's status", responses=STEPPING)
async def status(instance_id: InstanceId, body: StatusReport, graphs: HasGraphs) -> Data[Updated]:
    """`running` with its counts, or `failed` with a cause; the first cause stays."""
    steps, stats = graphs.instances.steps, body.graph_stats
    match body.status:
        case "running":
            updated = await steps.is_running(
                instance_id, node_count=stats.node_count, edge_count=stats.edge_count
            )
        case "failed":
            message = body.error_message or "The graph server failed without a message."
            failure = Failure(
                code=body.error_code,
                message=message,
                phase=body.failed_phase,
                trace=body.stack_trace,
            )
            updated = await steps.has_failed(instance_id, failure)
        case _:
            await graphs.instances.store.get(instance_id)
            updated = False
    return Data(data=Updated(updated=updated))


@router.put("/{instance_id}/metrics", summary="Report what an instance takes")
@router.patch("/{instance_id}/metrics", summary="Report what an instance takes")
async def metrics(instance_id: InstanceId, body: MetricsReport, graphs: HasGraphs) -> Data[Updated]:
    await graphs.instances.store.get(instance_id)
    updated = await graphs.instances.vitals.measured(
        instance_id,
        memory_usage_bytes=body.memory_usage_bytes,
        disk_usage_bytes=body.disk_usage_bytes,
        queries=body.query_count_since_last,
        last_activity_at=body.last_activity_at,
    )
    return Data(data=Updated(updated=updated))


@router.put("/{instance_id}/progress", summary="Report how far an instance has loaded")
@router.patch("/{instance_id}/progress", summary="Report how far an instance has loaded")
async def progress(
    instance_id: InstanceId, body: ProgressReport, graphs: HasGraphs
) -> Data[Updated]:
    await graphs.instances.store.get(instance_id)
    return Data(
        data=Updated(updated=await graphs.instances.vitals.progressed(instance_id, body.kept()))
    )


@router.post("/{instance_id}/activity", summary="Report a query or an algorithm", status_code=204)
async def activity(instance_id: InstanceId, graphs: HasGraphs) -> Response:
    await graphs.instances.store.get(instance_id)
    await graphs.instances.vitals.active(instance_id)
    return Response(status_code=204)


@router.get(
    "/{instance_id}/mapping",
    summary="Get what an instance loads",
    responses=declare(NotFound, InvalidState, *INTERNAL),
)
async def mapping(instance_id: InstanceId, graphs: HasGraphs) -> Data[ToLoad]:
    """The definitions of the snapshot's version, without their SQL."""
    instance = await graphs.instances.store.get(instance_id)
    if (
        instance.snapshot_id is None
        or instance.mapping_id is None
        or instance.mapping_version is None
    ):
        raise InvalidState(f"Instance {instance_id} has no snapshot of a mapping.")
    snapshot = await graphs.snapshots.get(instance.snapshot_id)
    if snapshot.prefix is None:
        raise InvalidState(f"The files of snapshot {snapshot.snapshot_id} were deleted.")
    version = await graphs.mappings.version(instance.mapping_id, instance.mapping_version)
    return Data(
        data=ToLoad(
            instance_id=instance_id,
            snapshot_id=snapshot.snapshot_id,
            mapping_id=instance.mapping_id,
            mapping_version=instance.mapping_version,
            owner_username=instance.owner_username,
            wrapper_type=instance.wrapper_type,
            gcs_path=graphs.path(snapshot.prefix),
            prefix=snapshot.prefix,
            manifest=f"{snapshot.prefix}{manifest.NAME}",
            node_definitions=documents(version.node_definitions, sql=False),
            edge_definitions=documents(version.edge_definitions, sql=False),
            limits={"memory_bytes": instance.memory_bytes, "cpu_cores": instance.cpu_cores},
        )
    )
