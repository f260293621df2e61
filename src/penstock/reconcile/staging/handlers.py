"""Handlers of `stage_plan` and `stage_chunk`: copy a source's records to Parquet in the object
store, in chunks that all read one snapshot.

The plan job splits the source into chunks. If the source can share a snapshot (PostgreSQL's
exported snapshot), the plan keeps it open until its chunks are over and adds them while it runs; so
it does if it must check for changes at the end. Otherwise it adds them when it ends. A retried plan
splits again: chunks of the previous attempt have lost their snapshot, notice that, and end without
counting.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.jobs.handler import Answer, Park, Result, query_trace
from penstock.jobs.model import JobSpec, Status
from penstock.kit.errors import InvalidState
from penstock.reconcile.recipes.model import Side, Staging
from penstock.reconcile.runs.payloads import STAGE_CHUNK, StageChunkPayload, StagePlanPayload
from penstock.reconcile.staging.consistent_read import Unchanged
from penstock.reconcile.staging.ranges import in_ranges
from penstock.reconcile.staging.reading import source_sql
from penstock.sources.contract import Limits
from penstock.sources.credentials import SourceCredentials
from penstock.sources.errors import SnapshotLost, SourceUnavailable
from penstock.storage.parquet_sink import write_parquet

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    import pyarrow as pa

    from penstock.jobs.handler import Job, JobContext
    from penstock.jobs.model import JobView
    from penstock.kit.json_value import JsonObject, JsonValue
    from penstock.reconcile.control_plane import ReconcileControlPlane
    from penstock.sources.contract import Hold, Plan, Source
    from penstock.storage.provider import ObjectStoreProvider

CHUNKS = Limits(
    chunk_bytes=128 * 1024 * 1024,
    chunk_rows=Staging().chunk_threshold_rows,
    max_chunks=Staging().max_parallel_chunks,
)
"""Without statistics, `chunk_bytes` is about a million rows of a ledger."""
ALIVE_SECONDS = 5.0
"""How often the source is asked whether it still holds the snapshot of a plan."""
LOST_SECONDS = 5.0
"""A chunk whose snapshot is lost waits for its plan to be retried, or to fail. A plan that keeps
nothing open (BigQuery's) is over by then; its chunk fails at once."""
MAX_LOOKS = 60


class StagePlanner:
    """Handler of `stage_plan`."""

    def __init__(
        self, connect: Callable[[], ReconcileControlPlane], *, limits: Limits = CHUNKS
    ) -> None:
        self._connect = connect
        self._limits = limits

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        payload = StagePlanPayload.read(job.payload)
        async with self._connect() as control_plane:
            credentials = SourceCredentials.read(await control_plane.source(ctx.fence)).for_job()
            async with credentials.opened() as source:
                side = Side.model_validate(payload.side_document)
                sql = await source_sql(source, side)
                limits = _limits(self._limits, side, Staging.model_validate(payload.staging))
                plan = await in_ranges(source, sql, await source.plan(sql, limits), limits)
                ctx.log.info(
                    "stage_planned",
                    run_id=payload.run_id,
                    side=payload.side,
                    chunks=len(plan.chunks),
                )
                return await self._add_chunks(job, ctx, payload, plan, control_plane)

    async def _add_chunks(
        self,
        job: Job,
        ctx: JobContext,
        payload: StagePlanPayload,
        plan: Plan,
        control_plane: ReconcileControlPlane,
    ) -> Result:
        result = {
            "plan": str(ctx.fence.attempt_id),
            "chunks": len(plan.chunks),
            "snapshot": plan.chunks[0].snapshot,
        }
        specs = _specs(job, ctx, payload, plan)
        if plan.hold is None:
            return Result(result, spawn=specs)
        try:
            added = await control_plane.enqueue(specs)
            await _wait_for_chunks(control_plane, [job.job_id for job in added], plan.hold, ctx)
            if isinstance(plan.hold, Unchanged):
                await plan.hold.check()
        finally:
            await plan.hold.close()
        return Result(result)


class ChunkStager:
    """Handler of `stage_chunk`."""

    def __init__(
        self, connect: Callable[[], ReconcileControlPlane], object_store: ObjectStoreProvider
    ) -> None:
        self._connect = connect
        self._object_store = object_store

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        payload = StageChunkPayload.read(job.payload)
        async with self._connect() as control_plane:
            plan = await control_plane.job(payload.plan_job)
            if _is_superseded(plan, payload):
                return Result({"superseded": True, "rows": 0, "files": []})
            credentials = SourceCredentials.read(await control_plane.source(ctx.fence)).for_job()
        try:
            async with credentials.opened() as source:
                return Result(await self._stage(payload, source, ctx))
        except SnapshotLost:
            plan_is_over = plan.status is Status.SUCCEEDED
            if payload.snapshot is None or plan_is_over or job.polls >= MAX_LOOKS:
                raise
            ctx.log.warning(
                "stage_moment_lost", run_id=payload.run_id, side=payload.side, number=payload.number
            )
            return Park({}, LOST_SECONDS)

    async def _stage(
        self, payload: StageChunkPayload, source: Source, ctx: JobContext
    ) -> JsonObject:
        batches = _with_progress(source, payload, ctx)
        async with aclosing(batches):
            first = await anext(batches, None)
            schema = first.schema if first is not None else await source.schema(payload.sql)
            written = await write_parquet(
                self._object_store.open(),
                payload.prefix,
                schema,
                _prepended(first, batches),
                attempt=str(ctx.fence.attempt_id),
                delta_packed=True,
            )
        files: list[JsonValue] = [
            {"key": p.path, "rows": p.rows, "size": p.size, "sha256": p.sha256}
            for p in written.parts
        ]
        return {
            "plan": payload.plan,
            "number": payload.number,
            "rows": written.rows,
            "files": files,
        }


def _limits(usual: Limits, side: Side, staging: Staging) -> Limits:
    """Limits of the recipe or the run, and the defaults where they have none."""
    explicit = staging.model_fields_set
    return replace(
        usual,
        key=side.partition_key,
        chunk_rows=staging.chunk_threshold_rows
        if "chunk_threshold_rows" in explicit
        else usual.chunk_rows,
        max_chunks=staging.max_parallel_chunks
        if "max_parallel_chunks" in explicit
        else usual.max_chunks,
    )


def _specs(job: Job, ctx: JobContext, payload: StagePlanPayload, plan: Plan) -> Sequence[JobSpec]:
    attempt = str(ctx.fence.attempt_id)
    chunk_payloads = [
        StageChunkPayload(
            run_id=payload.run_id,
            side=payload.side,
            data_source_id=payload.data_source_id,
            plan=attempt,
            plan_job=job.job_id,
            number=number,
            sql=chunk.sql,
            snapshot=chunk.snapshot,
            extra=chunk.extra,
        )
        for number, chunk in enumerate(plan.chunks)
    ]
    return [
        JobSpec(
            kind=STAGE_CHUNK,
            payload=payload.payload(),
            group_id=job.group_id,
            unique_key=f"{STAGE_CHUNK}:{attempt}:{payload.number}",
            trace=job.trace,
        )
        for payload in chunk_payloads
    ]


async def _wait_for_chunks(
    control_plane: ReconcileControlPlane, job_ids: Sequence[int], hold: Hold, ctx: JobContext
) -> None:
    """Wait for the chunks with the snapshot open; a failed chunk, or a lost snapshot, fails the
    plan."""
    waiting = list(job_ids)
    while waiting:
        ended = await control_plane.chunks_ended(waiting, wait=ALIVE_SECONDS)
        if bad := [job_id for job_id, status in ended.items() if status is not Status.SUCCEEDED]:
            raise InvalidState(f"Chunk job {bad[0]} failed or was cancelled.")
        waiting = [job_id for job_id in waiting if job_id not in ended]
        ctx.progress(percent=round(100 * (1 - len(waiting) / len(job_ids)), 1))
        if waiting and not await hold.alive():
            raise SourceUnavailable(
                "The source ended the snapshot that all chunks share.", hint="The plan is retried."
            )


def _is_superseded(plan: JobView, payload: StageChunkPayload) -> bool:
    """Whether another attempt of the plan is running, or has run, since this chunk was created."""
    if plan.status is Status.SUCCEEDED:
        return bool(plan.result["plan"] != payload.plan)
    ended = {str(attempt.attempt_id) for attempt in plan.attempts if attempt.how != "running"}
    return payload.plan in ended


async def _with_progress(
    source: Source, payload: StageChunkPayload, ctx: JobContext
) -> AsyncGenerator[pa.RecordBatch]:
    rows = 0
    async with aclosing(source.stream(payload.chunk(), trace=query_trace(ctx.fence))) as batches:
        async for batch in batches:
            rows += batch.num_rows
            ctx.progress(rows=rows)
            yield batch


async def _prepended(
    first: pa.RecordBatch | None, rest: AsyncGenerator[pa.RecordBatch]
) -> AsyncGenerator[pa.RecordBatch]:
    if first is not None:
        yield first
    async for batch in rest:
        yield batch
