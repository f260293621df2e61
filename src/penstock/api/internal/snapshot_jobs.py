"""Internal API of snapshots: their export jobs and status changes."""

from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field, model_validator

from penstock.api.errors import INTERNAL, declare
from penstock.api.internal.export_jobs import Count, Message, Shown, Uri, shown
from penstock.api.pagination import Moment
from penstock.api.permissions import Inside
from penstock.api.requests.request_bodies import PayloadRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import Graphs, HasGraphs
from penstock.graphs.errors import InvalidStateTransition, JobsAlreadyExist
from penstock.graphs.mappings.columns import TYPES
from penstock.graphs.snapshots.export_job import Word
from penstock.graphs.snapshots.export_jobs import MAX_JOBS, Submission
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.graphs.snapshots.payloads import (
    Column,
    Entity,
    EntityExport,
    JobType,
    Mode,
    QueryState,
)
from penstock.jobs.http_bodies import Body, Id, Text
from penstock.jobs.limits import MAX_JOB_ID
from penstock.kit.clock import SYSTEM
from penstock.kit.errors import Draining, InvalidInput, NotFound
from penstock.kit.json_value import JsonValue

router = APIRouter(
    prefix="/api/internal/snapshots",
    tags=["internal"],
    route_class=PayloadRoute,
    dependencies=[Inside],
    responses=declare(NotFound, *INTERNAL),
)
STEPPING = declare(NotFound, InvalidStateTransition, *INTERNAL)
ACTOR = "worker"
Wanting: TypeAlias = Word | Literal["running"]
SnapshotId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]
Counts = Annotated[dict[Annotated[str, Field(max_length=300)], Count], Field(max_length=10_000)]
Label = Annotated[
    str, Field(max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$", examples=["Customer"])
]
ColumnName = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$", examples=["id"])
]
Sql = Annotated[
    str, Field(min_length=1, max_length=200_000, examples=["SELECT id, name FROM customers"])
]


class ColumnBody(Body):
    name: ColumnName
    type: (
        Annotated[str, Field(max_length=20, pattern=f"^({'|'.join(TYPES)})$", examples=["INT64"])]
        | None
    ) = None


class NewExportJob(Body):
    """An entity to export; with `starburst_query_id` and `next_uri`, its query is already
    submitted."""

    job_type: JobType
    entity_name: Label
    from_node: Label | None = None
    to_node: Label | None = None
    sql: Sql | None = None
    columns: Annotated[list[ColumnBody], Field(max_length=1000)] | None = None
    column_names: Annotated[list[ColumnName], Field(max_length=1000)] | None = None
    mode: Mode = Mode.DIRECT
    data_source_id: Id | None = None
    starburst_catalog: Text | None = None
    starburst_role: Text | None = None
    target_catalog: Text | None = None
    target_schema: Text | None = None
    gcs_path: Uri | None = None
    status: Literal["pending", "running", "submitted"] | None = None
    starburst_query_id: Annotated[Text, Field(min_length=1)] | None = None
    next_uri: Uri | None = None
    submitted_at: Moment | None = None

    @model_validator(mode="after")
    def _agree(self) -> "NewExportJob":
        if (self.starburst_query_id is None) != (self.next_uri is None):
            raise ValueError("starburst_query_id and next_uri belong together")
        if self.sql is None and self.next_uri is None:
            raise ValueError("sql is missing")
        if (self.from_node is None) != (self.to_node is None) or (
            self.from_node and self.job_type == "node"
        ):
            raise ValueError("from_node and to_node belong together, and to an edge")
        return self

    def value(self) -> Submission:
        entity = Entity(
            job_type=self.job_type,
            name=self.entity_name,
            from_node=self.from_node or "",
            to_node=self.to_node or "",
        )
        return Submission(
            wanted=EntityExport(
                entity=entity,
                sql=self.sql or "",
                columns=self._columns(),
                mode=Mode.UNLOAD
                if self.next_uri is not None and self.mode is Mode.DIRECT
                else self.mode,
                data_source_id=self.data_source_id,
                starburst_catalog=self.starburst_catalog,
                starburst_role=self.starburst_role,
                target_catalog=self.target_catalog,
                target_schema=self.target_schema,
            ),
            query=self._query(),
        )

    def _columns(self) -> tuple[Column, ...]:
        if self.columns is not None:
            return tuple(Column(name=column.name, type=column.type) for column in self.columns)
        return tuple(Column(name=name) for name in self.column_names or ())

    def _query(self) -> QueryState | None:
        if self.starburst_query_id is None or self.next_uri is None:
            return None
        submitted_at = self.submitted_at or SYSTEM.now()
        return QueryState(
            query_id=self.starburst_query_id,
            next_uri=self.next_uri,
            poll_count=0,
            submitted_at=submitted_at.isoformat(),
            attempt_no=1,
        )


class NewExportJobs(Body):
    jobs: Annotated[list[NewExportJob], Field(min_length=1, max_length=MAX_JOBS)]


class Created(BaseModel):
    created: int
    jobs: list[Shown]


class Listed(BaseModel):
    jobs: list[Shown]


class PartialResults(Body):
    node_counts: Counts | None = None
    edge_counts: Counts | None = None


class StatusBody(Body):
    """A status change of a snapshot. Counts and progress come from its jobs and its manifest; those
    sent here are ignored."""

    status: Annotated[
        Literal["creating", "ready", "failed", "cancelled"], Field(examples=["creating"])
    ]
    phase: Text | None = None
    progress: JsonValue = None
    size_bytes: Count | None = None
    node_counts: Counts | None = None
    edge_counts: Counts | None = None
    partial_results: PartialResults | None = None
    error_message: Message | None = None
    failed_step: Text | None = None


class Updated(BaseModel):
    updated: bool = Field(description="False: it already had this status.")


@router.post(
    "/{snapshot_id:int}/export-jobs",
    summary="Create the export jobs of a snapshot",
    status_code=201,
    responses=declare(NotFound, JobsAlreadyExist, InvalidStateTransition, *INTERNAL, Draining),
)
async def create(snapshot_id: SnapshotId, body: NewExportJobs, graphs: HasGraphs) -> Data[Created]:
    """One job per entity, all or none; the snapshot is then `creating`."""
    snapshot = await graphs.snapshots.get(snapshot_id)
    submissions = [job.value() for job in body.jobs]
    for job, submission in zip(body.jobs, submissions, strict=True):
        _check_path(
            job,
            graphs.path(f"{snapshot.prefix}{submission.wanted.entity.path}/"),
            submission.wanted.entity,
        )
    jobs = await graphs.exports.start(snapshot_id, submissions)
    return Data(data=Created(created=len(jobs), jobs=[shown(job, graphs) for job in jobs]))


@router.get("/{snapshot_id:int}/export-jobs", summary="List the export jobs of a snapshot")
async def listed(
    snapshot_id: SnapshotId, graphs: HasGraphs, status: Wanting | None = None
) -> Data[Listed]:
    """`running` is a legacy name for claimed or submitted."""
    words = ("claimed", "submitted") if status == "running" else (status,)
    export_jobs = await graphs.exports.of_snapshot(snapshot_id)
    return Data(
        data=Listed(
            jobs=[
                shown(job, graphs) for job in export_jobs if status is None or job.status in words
            ]
        )
    )


@router.put("/{snapshot_id:int}/status", summary="Take a snapshot's next step", responses=STEPPING)
@router.patch(
    "/{snapshot_id:int}/status", summary="Take a snapshot's next step", responses=STEPPING
)
async def step(snapshot_id: SnapshotId, body: StatusBody, graphs: HasGraphs) -> Data[Updated]:
    """`failed` and `cancelled` also end its jobs. A snapshot becomes `ready` by its manifest, never
    by this request."""
    snapshot = await graphs.snapshots.get(snapshot_id)
    if snapshot.status == body.status:
        return Data(data=Updated(updated=False))
    await _step(snapshot_id, body, graphs)
    return Data(data=Updated(updated=True))


async def _step(snapshot_id: int, body: StatusBody, graphs: Graphs) -> None:
    match body.status:
        case "creating":
            await graphs.exports.begin(snapshot_id)
        case "failed":
            reason = body.error_message or "A worker reported a failure without a message."
            await graphs.exports.fail(
                snapshot_id, actor=ACTOR, reason=reason, step=body.failed_step
            )
        case "cancelled":
            await graphs.exports.cancel(snapshot_id, actor=ACTOR, reason=body.error_message or "")
        case "ready":
            snapshot = await graphs.snapshots.get(snapshot_id)
            snapshot.check(SnapshotStatus.READY)
            raise InvalidStateTransition(
                f"Snapshot {snapshot_id} has no manifest yet.",
                hint="It becomes ready once its publish job has written the manifest.",
                status=str(snapshot.status),
                wanted=body.status,
            )


def _check_path(job: NewExportJob, path: str, entity: Entity) -> None:
    if job.gcs_path is not None and job.gcs_path.rstrip("/") != path.rstrip("/"):
        raise InvalidInput(f"{entity}: its files belong into {path}.", field="gcs_path")
