"""Request and response models of snapshots."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from penstock.api.graphs.mapping_schemas import Description, Span, Title, span
from penstock.api.pagination import Moment, Page
from penstock.api.services import Graphs
from penstock.graphs.snapshots.export_job import ExportJob, Word
from penstock.graphs.snapshots.model import Snapshot as Found
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.graphs.snapshots.payloads import JobType
from penstock.graphs.snapshots.progress import Phase, SnapshotProgress, Tally
from penstock.graphs.snapshots.repository import MAX_ID, SnapshotFilter, SnapshotSortKey
from penstock.jobs.http_bodies import Body, Id, Text, Whole


class NewSnapshot(Body):
    mapping_id: Annotated[Id, Field(examples=[1])]
    name: Annotated[Title, Field(examples=["Monday"])]
    description: Description | None = None
    mapping_version: (
        Annotated[Whole, Field(ge=1, le=2**31 - 1, description="Default: the current version.")]
        | None
    ) = None
    ttl: Span | None = None
    inactivity_timeout: Span | None = None


class ChangedSnapshot(Body):
    """Omitted fields keep their values; a null description clears it."""

    name: Annotated[Title, Field(examples=["Monday"])] | None = None
    description: Description | None = None

    def told(self) -> dict[str, str | None]:
        fields = self.model_dump(exclude_unset=True)
        return {
            name: value
            for name, value in fields.items()
            if value is not None or name == "description"
        }


class ShortProgress(BaseModel):
    phase: Phase = Field(examples=["ready"])
    jobs_total: int
    jobs_completed: int
    progress_percent: int = Field(examples=[100])


class Snapshot(BaseModel):
    id: int = Field(examples=[1])
    mapping_id: int | None
    mapping_version: int | None
    owner_username: str = Field(examples=["ann"])
    name: str = Field(examples=["Monday"])
    description: str | None
    status: SnapshotStatus = Field(examples=["ready"])
    gcs_path: str | None = Field(
        description="Where its files are; null after they were deleted.",
        examples=["s3://penstock/ann/1/v1/1/"],
    )
    size_bytes: int | None
    node_counts: dict[str, int] = Field(examples=[{"Customer": 1000}])
    edge_counts: dict[str, int] = Field(examples=[{"KNOWS": 3000}])
    progress: ShortProgress
    error_message: str | None
    failed_step: str | None
    created_at: datetime
    updated_at: datetime
    ready_at: datetime | None
    expires_at: datetime | None
    ttl: str | None
    inactivity_timeout: str | None
    last_used_at: datetime | None


class JobProgress(BaseModel):
    id: int = Field(examples=[1])
    name: str = Field(examples=["Customer"])
    type: JobType
    status: Word = Field(examples=["completed"])
    row_count: int | None
    rows_so_far: int | None
    size_bytes: int | None
    error_message: str | None


class Progress(BaseModel):
    phase: Phase
    jobs_total: int
    jobs_pending: int
    jobs_claimed: int
    jobs_submitted: int
    jobs_completed: int
    jobs_failed: int
    progress_percent: int
    jobs: list[JobProgress]


class OfMappingQuery(Page):
    sort_by: SnapshotSortKey = "created_at"
    owner: Text | None = None
    status: SnapshotStatus | None = None
    search: (
        Annotated[Text, Field(description="Part of a name or description, case-insensitive.")]
        | None
    ) = None
    created_after: Moment | None = None
    created_before: Moment | None = None

    def filter(self, mapping_id: int | None) -> SnapshotFilter:
        return SnapshotFilter(
            mapping_id=mapping_id,
            owner=self.owner,
            status=self.status,
            search=self.search or None,
            created_after=self.created_after,
            created_before=self.created_before,
        )


class SnapshotQuery(OfMappingQuery):
    mapping_id: Annotated[int, Field(ge=1, le=MAX_ID)] | None = None


def shown(snapshot: Found, tally: Tally, graphs: Graphs) -> Snapshot:
    alike = set(Snapshot.model_fields) & set(Found.__slots__)
    return Snapshot(
        **{name: getattr(snapshot, name) for name in alike - {"ttl", "inactivity_timeout"}},
        id=snapshot.snapshot_id,
        gcs_path=None if snapshot.prefix is None else graphs.path(snapshot.prefix),
        progress=ShortProgress(
            phase=tally.phase,
            jobs_total=tally.jobs,
            jobs_completed=tally.done,
            progress_percent=tally.percent,
        ),
        ttl=span(snapshot.ttl),
        inactivity_timeout=span(snapshot.inactivity_timeout),
    )


def progressed(progress: SnapshotProgress) -> Progress:
    return Progress(
        phase=progress.tally.phase,
        jobs_total=progress.tally.jobs,
        **{f"jobs_{word}": count for word, count in progress.counts.items()},
        progress_percent=progress.tally.percent,
        jobs=[_job(job) for job in progress.jobs],
    )


def _job(job: ExportJob) -> JobProgress:
    return JobProgress(
        id=job.job_id,
        name=job.order.entity.name,
        type=job.order.entity.job_type,
        status=job.status,
        row_count=job.row_count,
        rows_so_far=job.rows_so_far,
        size_bytes=job.size_bytes,
        error_message=job.error_message,
    )
