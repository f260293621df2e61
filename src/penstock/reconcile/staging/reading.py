"""The query that reads a side from its source, and its columns and first rows."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.guard.sql import check
from penstock.kit.errors import InvalidInput
from penstock.reconcile.staging.query import base, filtered
from penstock.sources.contract import Limits

if TYPE_CHECKING:
    from penstock.reconcile.recipes.model import Side
    from penstock.sources.contract import Source


MAX_SAMPLE_BYTES = 64 * 1024**2
"""The most memory that a sample may use in the control plane."""


async def source_sql(source: Source, side: Side) -> str:
    """Queries are checked by the SQL guard; filters are checked against the real columns."""
    sql = base(side, source.dialect)
    if side.query is not None:
        sql = (await asyncio.to_thread(check, sql, source.dialect)).sql
    if not side.filters:
        return sql
    schema = await source.schema(sql)
    return filtered(sql, schema, side.filters, source.dialect, plain=side.query is None)


async def first_rows(source: Source, side: Side, rows: int) -> pa.Table:
    plan = await source.plan(await source_sql(source, side), Limits(max_chunks=1))
    batches_read: list[pa.RecordBatch] = []
    size = 0
    async with aclosing(source.stream(plan.chunks[0])) as batches:
        async for batch in batches:
            batches_read.append(batch.slice(0, rows - sum(b.num_rows for b in batches_read)))
            size += batches_read[-1].nbytes
            if size > MAX_SAMPLE_BYTES:
                raise InvalidInput(
                    f"The first {rows} rows have more than {MAX_SAMPLE_BYTES // 1024**2} MB.",
                    hint="Ask for fewer rows, or leave wide columns out in the source's query.",
                )
            if sum(b.num_rows for b in batches_read) >= rows:
                break
    return pa.Table.from_batches(batches_read, plan.schema)


async def source_schema(source: Source, side: Side) -> pa.Schema:
    return await source.schema(await source_sql(source, side.model_copy(update={"filters": ()})))
