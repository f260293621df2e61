"""Direct export: the worker reads the query and writes the files.

Nothing is visible until the last row is stored, and nothing counts until the job's outcome is
written under its fence. A handler that is stopped aborts the upload and cancels the query at the
source.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from penstock.graphs.mappings.columns import fit
from penstock.guard.sql import check
from penstock.jobs.handler import Result, query_trace
from penstock.sources.contract import Limits, SpoolSource
from penstock.sources.receipts import Receipts
from penstock.storage.counts import verify_rows
from penstock.storage.manifest import Entity, entity_to_json, sql_digest
from penstock.storage.parquet_sink import write_parquet
from penstock.storage.schema import describe, pack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    import pyarrow as pa

    from penstock.graphs.mappings.columns import Fit
    from penstock.graphs.snapshots.payloads import ExportCaps, ExportPayload
    from penstock.jobs.handler import JobContext
    from penstock.jobs.model import Json
    from penstock.sources.contract import Chunk, Source
    from penstock.storage.contract import Store
    from penstock.storage.part import Part

ONE_CHUNK = Limits(max_chunks=1)


async def export(order: ExportPayload, source: Source, store: Store, ctx: JobContext) -> Result:
    sql = await checked(order, source, ctx)
    plan = await source.plan(sql, ONE_CHUNK)
    attempt = str(ctx.fence.attempt_id)
    try:
        fitting = fit(order.entity, order.wanted.columns, plan.schema)
        reading = Reading(source, plan.chunks, fitting, ctx, order.caps)
        written = await write_parquet(
            store, order.prefix, reading.fit.schema, reading.batches(), attempt=attempt
        )
    finally:
        if plan.hold is not None:
            await plan.hold.close()
    await verify_rows(store, written.parts, sent=reading.rows)
    await reading.stored()
    ctx.log.info("export_written", rows=written.rows, bytes=written.size, parts=len(written.parts))
    return Result(result(written.entity(order.wanted.sql), attempt))


async def checked(order: ExportPayload, source: Source, ctx: JobContext) -> str:
    """The SQL as the guard allows it; parsed in a thread, because long queries take a while."""
    return (await ctx.in_thread(check, order.wanted.sql, source.dialect)).sql


def result(entity: Entity, attempt: str | None) -> dict[str, Json]:
    """The job's result: the counts for people, the parts for the manifest."""
    counts = {"row_count": entity.rows, "size_bytes": entity.size, "attempt": attempt}
    return counts | entity_to_json(entity)


def engine_entity(schema: pa.Schema, parts: tuple[Part, ...], sql: str) -> Entity:
    """An entity whose files an engine wrote, with the types of those files."""
    return Entity(
        columns=describe(schema), arrow_schema=pack(schema), sql_sha256=sql_digest(sql), parts=parts
    )


class Reading:
    """Streams the rows of one export and counts them."""

    def __init__(
        self,
        source: Source,
        chunks: Sequence[Chunk],
        fitting: Fit,
        ctx: JobContext,
        caps: ExportCaps,
    ) -> None:
        self.fit = fitting
        self.rows = 0
        self._bytes = 0
        self._source = source
        self._chunks = chunks
        self._ctx = ctx
        self._caps = caps
        self._receipts = Receipts()

    async def batches(self) -> AsyncGenerator[pa.RecordBatch]:
        for chunk in self._chunks:
            async with aclosing(self._stream(chunk)) as batches:
                async for batch in batches:
                    self.rows += batch.num_rows
                    self._bytes += batch.nbytes
                    self._caps.check(self.rows, self._bytes)
                    self._ctx.progress(rows=self.rows, mb=round(self._bytes / 1e6, 1))
                    yield batch if self.fit.exact else await asyncio.to_thread(self.fit.cast, batch)

    async def stored(self) -> None:
        """Acknowledge all rows, so the source can release them."""
        await self._receipts.stored(self.rows)

    def _stream(self, chunk: Chunk) -> AsyncGenerator[pa.RecordBatch]:
        name = query_trace(self._ctx.fence)
        if isinstance(self._source, SpoolSource):
            return self._source.spooled_stream(chunk, self._receipts, trace=name)
        return self._source.stream(chunk, trace=name)
