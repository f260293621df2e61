"""The sink: what it writes, what it refuses, and what it leaves behind when something breaks."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import threading
from contextlib import aclosing
from dataclasses import asdict
from decimal import Decimal
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.kit.errors import InvalidInput
from penstock.storage.errors import ObjectExists, SchemaMismatch
from penstock.storage.parquet_sink import ParquetSink, SinkLimits, Written, write_parquet
from penstock.storage.row_groups import GroupLimits, RowGroups

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from penstock.storage.contract import Store
    from penstock.storage.object_store import StoreOptions
    from tests.storage.conftest import Place

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
SMALL = SinkLimits(group=GroupLimits(rows=100), file_bytes=1)
FLAT_MB = 350


def batch(start: int, rows: int) -> pa.RecordBatch:
    ids = range(start, start + rows)
    return pa.RecordBatch.from_arrays([list(ids), [f"name {i}" for i in ids]], schema=SCHEMA)


def batches(*sizes: int) -> list[pa.RecordBatch]:
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [batch(start, size) for start, size in zip(starts, sizes, strict=True)]


async def feed(items: Iterable[pa.RecordBatch]) -> AsyncGenerator[pa.RecordBatch]:
    for item in items:
        yield item


async def sink(
    store: Store, items: Iterable[pa.RecordBatch], limits: SinkLimits | None = None
) -> Written:
    return await write_parquet(store, "t/", SCHEMA, feed(items), attempt="a1", limits=limits)


async def read(store: Store, written: Written) -> pa.Table:
    return pa.concat_tables(
        [pq.read_table(pa.BufferReader(await store.get(p.path))) for p in written.parts]
    )


async def left(store: Store) -> list[str]:
    return [info.key async for info in store.list("")] + [
        u.key for u in await store.uploads.under("") or ()
    ]


async def test_what_is_sunk_comes_back_and_is_described_truly(store: Store) -> None:
    sent = batches(150, 30, 0, 400)
    written = await sink(store, sent, SMALL)
    assert (await read(store, written)).equals(pa.Table.from_batches(sent))
    assert written.rows == 580
    assert written.size == sum(p.size for p in written.parts)
    assert [p.path for p in written.parts] == [f"t/part-0000{i}-a1.parquet" for i in range(6)]
    for part in written.parts:
        data = await store.get(part.path)
        head = await store.head(part.path)
        assert (part.size, part.etag, part.rows) == (
            len(data),
            head.etag,
            pq.read_metadata(pa.BufferReader(data)).num_rows,
        )
        assert part.sha256 == hashlib.sha256(data).hexdigest()


async def test_batches_become_row_groups_of_one_size(folder: Place) -> None:
    store = folder.open()
    written = await sink(store, batches(*[7] * 50, 1000), SinkLimits(group=GroupLimits(rows=100)))
    metadata = pq.read_metadata(pa.BufferReader(await store.get(written.parts[0].path)))
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [
        100
    ] * 13 + [50]


def test_a_row_group_also_ends_at_its_bytes() -> None:
    groups = RowGroups(SCHEMA, GroupLimits(rows=10_000, bytes=20_000))
    cut = [group for item in batches(*[500] * 10) for group in groups.add(item)]
    assert len(cut) > 3
    assert max(group.nbytes for group in cut) < 21_000


def test_one_huge_batch_is_cut_to_the_limits() -> None:
    groups = RowGroups(SCHEMA, GroupLimits(rows=10_000, bytes=20_000))
    cut = [*groups.add(batch(0, 20_000)), groups.rest()]
    assert sum(group.num_rows for group in cut if group) == 20_000
    assert max(group.nbytes for group in cut if group) < 21_000


def test_a_row_at_a_time_does_not_make_a_chunk_a_row() -> None:
    groups = RowGroups(SCHEMA, GroupLimits(rows=2_000))
    whole = batch(0, 2_000)
    (cut,) = [group for i in range(2_000) for group in groups.add(whole.slice(i, 1))]
    assert cut.column(0).num_chunks < 300
    assert cut.equals(pa.Table.from_batches([whole]))


async def test_zero_rows_still_write_the_schema(store: Store) -> None:
    for items in ([], batches(0)):
        written = await write_parquet(store, "t/", SCHEMA, feed(items), attempt=f"a{len(items)}")
        assert (written.rows, len(written.parts)) == (0, 1)
        assert (await read(store, written)).schema.equals(SCHEMA)


@pytest.mark.parametrize("delta_packed", [True, False])
async def test_encodings_follow_what_the_data_is_like(folder: Place, *, delta_packed: bool) -> None:
    store = folder.open()
    table = pa.table(
        {
            "id": pa.array(range(1000), pa.int32()),
            "at": pa.array(range(1000), pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(i) for i in range(1000)], pa.decimal128(18, 2)),
            "wide": pa.array([Decimal(i) for i in range(1000)], pa.decimal128(30, 2)),
            "status": ["open", "closed"] * 500,
            "code": [f"unique {i}" for i in range(1000)],
            "flag": [True, False] * 500,
            "tags": [["red", "blue"]] * 1000,
            "lines": [[{"no": i, "text": f"line {i}"}] for i in range(1000)],
            "kind": pa.array([i % 3 for i in range(1000)], pa.int64()),
        }
    )
    written = await write_parquet(
        store, "t/", table.schema, feed(table.to_batches()), attempt="a", delta_packed=delta_packed
    )
    group = pq.read_metadata(pa.BufferReader(await store.get(written.parts[0].path))).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    packed = {c.path_in_schema for c in columns if "DELTA_BINARY_PACKED" in c.encodings}
    assert packed == (
        {"id", "at", "price", "lines.list.element.no", "kind"} if delta_packed else set()
    )
    repetitive = {"status", "tags.list.element"} | (set() if delta_packed else {"kind"})
    assert {c.path_in_schema for c in columns if c.has_dictionary_page} == repetitive
    assert {c.compression for c in columns} == {"ZSTD"}


async def test_another_reader_reads_it_too(folder: Place) -> None:
    store = folder.open()
    table = pa.table(
        {
            "id": pa.array(range(3000), pa.int64()),
            "price": pa.array([Decimal(i) / 4 for i in range(3000)], pa.decimal128(12, 2)),
            "name": [f"name {i}" for i in range(3000)],
        }
    )
    written = await write_parquet(store, "t/", table.schema, feed(table.to_batches()), attempt="a")
    path = f"{store.url.removeprefix('file://')}/{written.parts[0].path}"
    with duckdb.connect() as connection:
        answer = connection.execute(
            f"SELECT count(*), sum(id), sum(price), max(name) FROM '{path}'"
        ).fetchone()
    assert answer == (3000, 4498500, Decimal("1124625.00"), "name 999")


@pytest.mark.parametrize(
    ("wrong", "column", "why"),
    [
        ({"id": pa.int64(), "label": pa.string()}, "name", "Column 2 is 'label', not 'name'"),
        ({"name": pa.string(), "id": pa.int64()}, "id", "Column 1 is 'name', not 'id'"),
        ({"id": pa.int32(), "name": pa.string()}, "id", "Column 'id' is int32, not int64"),
        ({"id": pa.int64()}, "name", "Column 'name' is missing"),
        (
            {"id": pa.int64(), "name": pa.string(), "x": pa.int8()},
            "x",
            "Column 'x' was not declared",
        ),
    ],
)
async def test_a_batch_of_other_columns_is_refused_by_name(
    folder: Place, wrong: dict[str, pa.DataType], column: str, why: str
) -> None:
    store = folder.open()
    other = pa.RecordBatch.from_arrays([pa.nulls(3, t) for t in wrong.values()], names=list(wrong))
    with pytest.raises(SchemaMismatch, match=why) as refused:
        await sink(store, [*batches(50), other])
    assert refused.value.details["column"] == column
    assert await left(store) == []


async def test_metadata_of_a_batch_does_not_matter(folder: Place) -> None:
    store = folder.open()
    noted = batch(0, 10).replace_schema_metadata({"a": "b"})
    assert (await sink(store, [noted])).rows == 10


async def test_nulls_in_a_column_declared_without_are_refused(folder: Place) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    nulls = pa.RecordBatch.from_arrays([pa.array([1, None])], names=["id"])
    with pytest.raises(SchemaMismatch, match="'id' is declared not null"):
        await write_parquet(folder.open(), "t/", schema, feed([nulls]), attempt="a")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (pa.schema([]), "without columns"),
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), "2 columns are named 'a'"),
        (
            pa.schema([("ok", pa.int8()), ("span", pa.month_day_nano_interval())]),
            "Column 'span' is",
        ),
    ],
)
async def test_a_schema_that_cannot_be_kept_is_refused_first(
    folder: Place, schema: pa.Schema, why: str
) -> None:
    with pytest.raises(SchemaMismatch, match=why):
        await write_parquet(folder.open(), "t/", schema, feed([]), attempt="a")


async def test_an_attempt_that_is_no_id_is_refused_first(folder: Place) -> None:
    with pytest.raises(InvalidInput, match="attempt"):
        await write_parquet(folder.open(), "t/", SCHEMA, feed([]), attempt="../a")


async def test_a_source_that_breaks_leaves_no_unfinished_part(store: Store) -> None:
    async def broken() -> AsyncGenerator[pa.RecordBatch]:
        for item in random_batches(8):
            yield item
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        await write_parquet(store, "t/", BLOBS, broken(), attempt="a", limits=MEGABYTES)
    assert await left(store) == []


async def test_a_cancel_leaves_no_unfinished_part_and_closes_the_source(store: Store) -> None:
    sending, closed = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncGenerator[pa.RecordBatch]:
        try:
            for item in random_batches(8):
                yield item
            sending.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    task = asyncio.create_task(
        write_parquet(store, "t/", BLOBS, endless(), attempt="a", limits=MEGABYTES)
    )
    await asyncio.wait_for(sending.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()
    assert await left(store) == []


BLOBS = pa.schema([("blob", pa.binary())])
MEGABYTES = SinkLimits(group=GroupLimits(rows=2))


def random_batches(number: int) -> Iterable[pa.RecordBatch]:
    for _ in range(number):
        yield pa.RecordBatch.from_arrays([[os.urandom(1024 * 1024)]], schema=BLOBS)


async def test_a_storage_that_breaks_closes_the_source(store: Store) -> None:
    await store.create("t/part-00000-a1.parquet", b"somebody else's")
    source = feed(batches(*[100] * 20))
    async with aclosing(source):
        with pytest.raises(ObjectExists):
            await write_parquet(store, "t/", SCHEMA, source, attempt="a1", limits=SMALL)
        assert [item async for item in source] == []
    assert await store.get("t/part-00000-a1.parquet") == b"somebody else's"
    assert await left(store) == ["t/part-00000-a1.parquet"]


async def test_the_loop_never_encodes(folder: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    encode = ParquetSink.encode

    def watched(self: ParquetSink, group: pa.Table) -> None:
        threads.add(threading.get_ident())
        encode(self, group)

    monkeypatch.setattr(ParquetSink, "encode", watched)
    await sink(folder.open(), batches(*[100] * 5, 50), SMALL)
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_the_blocking_face_writes_the_same(folder: Place) -> None:
    store = folder.open()
    with ParquetSink(store, "t/", SCHEMA, attempt="a1", limits=SMALL) as blocking:
        for item in batches(150, 30):
            blocking.push(item)
        written = blocking.finish()
    assert [p.rows for p in written.parts] == [100, 80]


async def test_the_blocking_face_aborts_when_it_is_not_finished(folder: Place) -> None:
    store = folder.open()
    with ParquetSink(store, "t/", BLOBS, attempt="a1", limits=MEGABYTES) as blocking:
        for item in random_batches(8):
            blocking.push(item)
    assert await left(store) == []


def test_memory_is_flat_in_the_rows(s3: StoreOptions) -> None:
    little, much = (peak_mb(s3, rows) for rows in (200_000, 2_000_000))
    assert much < FLAT_MB
    assert much < little + 120


def peak_mb(options: StoreOptions, rows: int) -> int:
    command = [sys.executable, "-m", "tests.storage.flow", dumps(asdict(options)), str(rows)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    return int(done.stdout)
