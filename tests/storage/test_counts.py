"""Rows from footers: they agree with what was sent, or the job fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.storage.counts import count_rows, parts_under, verify_rows
from penstock.storage.errors import ObjectDamaged, RowsDiffer
from penstock.storage.parquet_sink import SinkLimits, Written, write_parquet
from penstock.storage.row_groups import GroupLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.storage.contract import Store
    from tests.storage.conftest import Place


async def write(
    store: Store, rows: int, *, columns: int = 1, group: int = 10, file_bytes: int = 1
) -> Written:
    schema = pa.schema([(f"c{i}", pa.int64()) for i in range(columns)])

    async def batches() -> AsyncIterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([list(range(rows))] * columns, schema=schema)

    limits = SinkLimits(group=GroupLimits(rows=group), file_bytes=file_bytes)
    return await write_parquet(store, "attempt-1/", schema, batches(), attempt="a", limits=limits)


async def test_footers_that_agree_pass(store: Store) -> None:
    written = await write(store, 405)
    assert len(written.parts) == 41
    await verify_rows(store, written.parts, sent=405)


async def test_a_source_that_sent_more_is_found(folder: Place) -> None:
    store = folder.open()
    written = await write(store, 25)
    with pytest.raises(RowsDiffer, match="25 rows, but 26 were sent"):
        await verify_rows(store, written.parts, sent=26)


async def test_a_part_that_holds_other_rows_is_named(folder: Place) -> None:
    store = folder.open()
    first, second, *rest = (await write(store, 25)).parts
    lying = [replace(first, rows=11), replace(second, rows=9), *rest]
    with pytest.raises(RowsDiffer, match=r"part-00000-a\.parquet holds 10 rows, but 11"):
        await verify_rows(store, lying, sent=25)


async def test_a_footer_larger_than_the_first_read_is_read_whole(store: Store) -> None:
    written = await write(store, 60, columns=400, group=10, file_bytes=10**9)
    (part,) = written.parts
    assert await count_rows(store, part.path, part.size) == 60


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1",
        b"x" * 100,
        b"x" * 100 + b"\xff\xff\xff\x7fPAR1",
        b"x" * 100 + b"\x10\0\0\0PAR1",
    ],
)
async def test_what_is_no_parquet_is_damaged(folder: Place, data: bytes) -> None:
    store = folder.open()
    await store.create("a", data)
    with pytest.raises(ObjectDamaged):
        await count_rows(store, "a", len(data))


async def test_files_that_an_engine_wrote_are_found_and_counted(store: Store) -> None:
    written = await write(store, 25)
    parts = await parts_under(store, "attempt-1/")
    assert parts == tuple(replace(part, sha256=None) for part in written.parts)
