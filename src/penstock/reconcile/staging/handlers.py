"""Staging: a source's records become Parquet in our storage, in chunks that all see one moment.

The plan cuts. Where a source can share a moment (PostgreSQL's exported snapshot) the plan keeps it
open until its chunks are over, and adds them while it runs, as it does where it has to look for
changes at the end; else it adds them with its end. A plan that is tried again cuts again: the
chunks of the attempt before have lost their moment, notice that, and end without counting.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.jobs.handler import Answer, Park, Result, query_trace
from penstock.jobs.model import JobSpec, Status
from penstock.kit.errors import InvalidState, PenstockError
from penstock.reconcile.recipes.model import Side, Staging
from penstock.reconcile.runs.payloads import STAGE_CHUNK, StageChunkPayload, StagePlanPayload
from penstock.reconcile.staging.ranges import in_ranges
from penstock.reconcile.staging.read_moment import Unchanged
from penstock.reconcile.staging.reading import source_sql
from penstock.sources.contract import Limits
from penstock.sources.credentials import SourceCredentials
from penstock.sources.trino.headers import require_role
from penstock.storage.parquet_sink import write_parquet

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    import pyarrow as pa

    from penstock.jobs.handler import Job, JobContext
    from penstock.reconcile.control_plane import ReconcileControlPlane
    from penstock.sources.contract import Hold, Plan, Source
    from penstock.storage.provider import ObjectStoreProvider

CHUNKS = Limits(
    chunk_bytes=128 * 1024 * 1024,
    chunk_rows=Staging().chunk_threshold_rows,
    max_chunks=Staging().max_parallel_chunks,
)
"""The bytes, for want of statistics, are those of about a million rows of a ledger."""
LOOK_SECONDS = 0.5
LOST_SECONDS = 5.0
"""A chunk whose moment is gone waits for its plan to be run again, or to fail."""
MAX_LOOKS = 60


class StagePlanner:
    """The handler of `stage_plan`."""

    def __init__(
        self, planes: Callable[[], ReconcileControlPlane], *, limits: Limits = CHUNKS
    ) -> None:
        self._planes = planes
        self._limits = limits

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        order = StagePlanPayload.read(job.payload)
        async with self._planes() as plane:
            opening = for_staging(SourceCredentials.read(await plane.source(ctx.fence)))
            async with opening.opened() as source:
                side = Side.model_validate(order.side_document)
                sql = await source_sql(source, side)
                limits = _limits(self._limits, side, Staging.model_validate(order.staging))
                plan = await in_ranges(source, sql, await source.plan(sql, limits), limits)
                ctx.log.info(
                    "stage_planned", run_id=order.run_id, side=order.side, chunks=len(plan.chunks)
                )
                return await self._go_on(job, ctx, order, plan, plane)

    async def _go_on(
        self,
        job: Job,
        ctx: JobContext,
        order: StagePlanPayload,
        plan: Plan,
        plane: ReconcileControlPlane,
    ) -> Result:
        told = {
            "plan": str(ctx.fence.attempt_id),
            "chunks": len(plan.chunks),
            "snapshot": plan.chunks[0].snapshot,
        }
        specs = _specs(job, ctx, order, plan)
        if plan.hold is None:
            return Result(told, spawn=specs)
        try:
            added = await plane.enqueue(specs)
            await _chunks_over(plane, [each.job_id for each in added], plan.hold, ctx)
            if isinstance(plan.hold, Unchanged):
                await plan.hold.check()
        finally:
            await plan.hold.close()
        return Result(told)


class ChunkStager:
    """The handler of `stage_chunk`."""

    def __init__(
        self, planes: Callable[[], ReconcileControlPlane], depot: ObjectStoreProvider
    ) -> None:
        self._planes = planes
        self._depot = depot

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        order = StageChunkPayload.read(job.payload)
        async with self._planes() as plane:
            if await _is_superseded(plane, order):
                return Result({"superseded": True, "rows": 0, "files": []})
            opening = for_staging(SourceCredentials.read(await plane.source(ctx.fence)))
        try:
            async with opening.opened() as source:
                return Result(await self._stage(order, source, ctx))
        except PenstockError as e:
            if (
                order.snapshot is None
                or "snapshot" not in e.message.lower()
                or job.polls >= MAX_LOOKS
            ):
                raise
            ctx.log.warning(
                "stage_moment_lost", run_id=order.run_id, side=order.side, number=order.number
            )
            return Park({}, LOST_SECONDS)

    async def _stage(
        self, order: StageChunkPayload, source: Source, ctx: JobContext
    ) -> dict[str, Any]:
        batches = _counted(source, order, ctx)
        async with aclosing(batches):
            first = await anext(batches, None)
            schema = first.schema if first is not None else await source.schema(order.sql)
            written = await write_parquet(
                self._depot.open(),
                order.prefix,
                schema,
                _with(first, batches),
                attempt=str(ctx.fence.attempt_id),
                delta_packed=True,
            )
        files = [
            {"key": p.path, "rows": p.rows, "size": p.size, "sha256": p.sha256}
            for p in written.parts
        ]
        return {"plan": order.plan, "number": order.number, "rows": written.rows, "files": files}


def for_staging(opening: SourceCredentials) -> SourceCredentials:
    if opening.type != "trino":
        return opening
    role = require_role(opening.config.get("starburst_role"))
    return replace(opening, config={**opening.config, "starburst_role": role})


def _limits(usual: Limits, side: Side, asked: Staging) -> Limits:
    """What the recipe or the run says, and the usual where they say nothing."""
    given = asked.model_fields_set
    return replace(
        usual,
        key=side.partition_key,
        chunk_rows=asked.chunk_threshold_rows
        if "chunk_threshold_rows" in given
        else usual.chunk_rows,
        max_chunks=asked.max_parallel_chunks
        if "max_parallel_chunks" in given
        else usual.max_chunks,
    )


def _specs(job: Job, ctx: JobContext, order: StagePlanPayload, plan: Plan) -> Sequence[JobSpec]:
    attempt = str(ctx.fence.attempt_id)
    orders = [
        StageChunkPayload(
            run_id=order.run_id,
            side=order.side,
            data_source_id=order.data_source_id,
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
            payload=each.payload(),
            group_id=job.group_id,
            unique_key=f"{STAGE_CHUNK}:{attempt}:{each.number}",
            trace=job.trace,
        )
        for each in orders
    ]


async def _chunks_over(
    plane: ReconcileControlPlane, job_ids: Sequence[int], hold: Hold, ctx: JobContext
) -> None:
    """Waits for the chunks with the moment open; a chunk that failed for good, or a lost moment,
    ends the plan."""
    waiting = list(job_ids)
    while waiting:
        views = await plane.jobs(waiting)
        if bad := [view for view in views if view.status in (Status.FAILED, Status.CANCELLED)]:
            raise InvalidState(f"Chunk job {bad[0].job_id} did not succeed.")
        waiting = [view.job_id for view in views if not view.status.over]
        ctx.progress(percent=round(100 * (1 - len(waiting) / len(job_ids)), 1))
        if waiting and not await hold.alive():
            raise InvalidState(
                "The source ended the transaction that all chunks share.",
                hint="It is planned again.",
            )
        if waiting:
            await asyncio.sleep(LOOK_SECONDS)


async def _is_superseded(plane: ReconcileControlPlane, order: StageChunkPayload) -> bool:
    """Whether the plan that cut this chunk is being, or was, run again by another attempt."""
    view = await plane.job(order.plan_job)
    if view.status is Status.SUCCEEDED:
        return bool(view.result["plan"] != order.plan)
    ended = {str(attempt.attempt_id) for attempt in view.attempts if attempt.how != "running"}
    return order.plan in ended


async def _counted(
    source: Source, order: StageChunkPayload, ctx: JobContext
) -> AsyncGenerator[pa.RecordBatch]:
    rows = 0
    async with aclosing(source.stream(order.chunk(), trace=query_trace(ctx.fence))) as batches:
        async for batch in batches:
            rows += batch.num_rows
            ctx.progress(rows=rows)
            yield batch


async def _with(
    first: pa.RecordBatch | None, rest: AsyncGenerator[pa.RecordBatch]
) -> AsyncGenerator[pa.RecordBatch]:
    if first is not None:
        yield first
    async for batch in rest:
        yield batch
