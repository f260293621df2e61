"""Hostile uploads are refused in the parser process with a message, not a crash."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import gzip
import io
import re
import struct
import zipfile
from contextlib import suppress
from dataclasses import replace
from encodings import aliases
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from xlsxwriter import Workbook

from penstock.kit import limited_process
from penstock.kit.errors import InvalidInput, PayloadTooLarge
from penstock.kit.limited_process import ProcessLimits, ProcessStopped
from penstock.reconcile.recipes.model import Side
from penstock.reconcile.uploads import workbooks
from penstock.reconcile.uploads.parsing import archive, row_groups
from penstock.reconcile.uploads.parsing.limits import MB, TableLimits
from penstock.reconcile.uploads.parsing.parser import ParsedFile, Parser
from penstock.reconcile.uploads.tabular import Reading, as_parquet, text_encoding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMITS = ProcessLimits(
    memory_bytes=512 * MB, cpu_seconds=60, wall_seconds=120, file_bytes=1024 * MB
)
SHEET = "xl/worksheets/sheet1.xml"
HUGE_BOOK_CELLS = 1_048_576 * 16_384


def parser(table: TableLimits | None = None, *, parallel: int = 1, **limits: float) -> Parser:
    return Parser(replace(LIMITS, **limits), table or TableLimits(), parallel=parallel)


async def convert(
    folder: Path, name: str, data: bytes, by: Parser | None = None, **options: Any
) -> ParsedFile:
    source = folder / "given"
    source.write_bytes(data)
    work = folder / "work"
    work.mkdir()
    return await (by or parser()).convert(
        source, Reading(name=name, **options), work, username="ann"
    )


async def read_here(
    folder: Path, name: str, data: bytes, encoding: str = "utf-8", **limits: int
) -> pa.Table:
    """In this process, for what needs no other."""
    source = folder / "given"
    source.write_bytes(data)
    work = folder / f"work-{len(list(folder.iterdir()))}"
    work.mkdir()
    return pq.read_table(
        await as_parquet(
            source, Reading(name=name, encoding=encoding, limits=TableLimits(**limits)), work
        )
    )


def book(*rows: list[Any]) -> bytes:
    out = io.BytesIO()
    with Workbook(out) as workbook:
        sheet = workbook.add_worksheet()
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    return out.getvalue()


def changed(workbook: bytes, change: Any, name: str = SHEET) -> bytes:
    """The workbook with one of its files changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, zipfile.ZipFile(out, "w", 8) as new:
        for entry in old.infolist():
            data = old.read(entry)
            new.writestr(entry.filename, change(data) if entry.filename == name else data)
    return out.getvalue()


def two_far_cells() -> bytes:
    out = io.BytesIO()
    with Workbook(out) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write("A1", "a")
        sheet.write("XFD1048576", "b")
    return out.getvalue()


def without_places(xml: bytes) -> bytes:
    return re.sub(rb' r="[A-Z]*[0-9]+"', b"", xml)


FAR = {
    "its dimension and its cells": two_far_cells(),
    "cells that its dimension denies": changed(
        two_far_cells(), lambda xml: xml.replace(b"A1:XFD1048576", b"A1:B2")
    ),
    "its dimension alone": changed(
        book(["a"], [1]), lambda xml: xml.replace(b'ref="A1:A2"', b'ref="A1:XFD1048576"')
    ),
    "a row's number": changed(
        book(["a"] * 200, [1] * 200), lambda xml: xml.replace(b'<row r="2"', b'<row r="1048576"')
    ),
}


@pytest.mark.parametrize("workbook", FAR.values(), ids=FAR)
async def test_a_sheet_that_reaches_too_far_is_refused_before_room_is_made_for_it(
    tmp_path: Path, workbook: bytes
) -> None:
    assert len(workbook) < 20_000
    with pytest.raises(PayloadTooLarge, match=r"1,048,576 .* cells; the limit is 10,000,000"):
        await read_here(tmp_path, "x.xlsx", workbook)


@pytest.mark.parametrize("change", [lambda xml: xml, without_places], ids=["placed", "in order"])
async def test_a_sheet_may_reach_over_so_many_cells_and_no_more(
    tmp_path: Path, change: Any
) -> None:
    workbook = changed(book(["a", "b", "c"], [1, 2, 3]), change)
    assert (await read_here(tmp_path, "x.xlsx", workbook, cells=6)).num_rows == 1
    with pytest.raises(PayloadTooLarge, match="row 2 and column 3, which are 6 cells"):
        await read_here(tmp_path, "x.xlsx", workbook, cells=5)


async def test_the_reader_of_a_far_sheet_is_stopped_by_its_memory_if_the_check_lets_it_through(
    tmp_path: Path,
) -> None:
    """The reader of workbooks aborts its process; this one does not even notice."""
    table = TableLimits(cells=HUGE_BOOK_CELLS)
    with pytest.raises(PayloadTooLarge, match=r"more than 512 MB of memory"):
        await convert(tmp_path, "x.xlsx", two_far_cells(), parser(table))


async def test_a_workbook_of_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbook = book(["a"], [1])
    count = len(zipfile.ZipFile(io.BytesIO(workbook)).infolist())
    monkeypatch.setattr(archive, "MAX_ENTRIES", count)
    assert (await read_here(tmp_path, "x.xlsx", workbook)).num_rows == 1
    monkeypatch.setattr(archive, "MAX_ENTRIES", count - 1)
    with pytest.raises(PayloadTooLarge, match="files in it"):
        await read_here(tmp_path, "x.xlsx", workbook)


async def test_a_workbook_may_unpack_to_so_many_times_its_size_and_no_more(tmp_path: Path) -> None:
    padded = changed(book(["a"], [1]), lambda xml: xml + b" " * 20 * MB)
    with zipfile.ZipFile(io.BytesIO(padded)) as opened:
        entries = opened.infolist()
    ratio = -(-sum(e.file_size for e in entries) // sum(e.compress_size for e in entries))
    assert (await read_here(tmp_path, "x.xlsx", padded, ratio=ratio)).num_rows == 1
    with pytest.raises(PayloadTooLarge, match=rf"{ratio - 1} times its size"):
        await read_here(tmp_path, "x.xlsx", padded, ratio=ratio - 1)


async def test_a_packed_csv_may_unpack_to_so_many_times_its_size_and_no_more(
    tmp_path: Path,
) -> None:
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 3 * MB)
    assert (await read_here(tmp_path, "x.csv.gz", packed, ratio=5000)).num_rows == 3 * MB
    with pytest.raises(PayloadTooLarge, match=r"more than 200 times its size"):
        await read_here(tmp_path, "x.csv.gz", packed)


@pytest.mark.parametrize("claim", [0, 7, 2**31])
async def test_a_workbook_that_claims_another_size_than_it_has_is_refused(
    tmp_path: Path, claim: int
) -> None:
    data = bytearray(book(["a"], [1]))
    directory = data.index(b"PK\x01\x02")
    place = data.index(SHEET.encode(), directory) - 46
    struct.pack_into("<I", data, place + 24, claim)
    with pytest.raises((InvalidInput, PayloadTooLarge), match=r"which is wrong|times its size"):
        await read_here(tmp_path, "x.xlsx", bytes(data))


@pytest.mark.parametrize("tag", [b"<row/>", b"<x>"])
async def test_a_sheet_whose_rows_never_end_is_refused(
    tmp_path: Path, tag: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbooks, "MAX_SHEET_ROW_BYTES", 2 * MB)
    endless = changed(
        book(["a"], [1]), lambda xml: xml.replace(b"</sheetData>", tag * (4 * MB // len(tag)))
    )
    with pytest.raises(PayloadTooLarge, match=r"A row of the sheet is larger than"):
        await read_here(tmp_path, "x.xlsx", endless, ratio=100_000, cells=10**12)


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


NUMBERS = pa.table({"id": pa.array(range(10)), "b": pa.array(["x"] * 10)})


async def test_a_parquet_file_may_have_so_many_rows_columns_and_bytes_and_no_more(
    tmp_path: Path,
) -> None:
    data = parquet(NUMBERS, row_group_size=3)
    assert (await read_here(tmp_path, "x.parquet", data, rows=10, columns=2)).equals(NUMBERS)
    with pytest.raises(PayloadTooLarge, match="more than 9 rows"):
        await read_here(tmp_path, "x.parquet", data, rows=9)
    with pytest.raises(InvalidInput, match="has 2 columns; the limit is 1"):
        await read_here(tmp_path, "x.parquet", data, columns=1)
    with pytest.raises(PayloadTooLarge, match="unpacks to more than 99 bytes"):
        await read_here(tmp_path, "x.parquet", data, unpacked_bytes=99)


async def test_a_csv_may_have_so_many_rows_and_columns_and_no_more(tmp_path: Path) -> None:
    data = b"a,b\n1,2\n3,4\n"
    assert (await read_here(tmp_path, "x.csv", data, rows=2, columns=2)).num_rows == 2
    with pytest.raises(PayloadTooLarge, match="more than 1 rows"):
        await read_here(tmp_path, "x.csv", data, rows=1)
    with pytest.raises(InvalidInput, match="has 2 columns; the limit is 1"):
        await read_here(tmp_path, "x.csv", data, columns=1)


async def test_a_small_parquet_file_of_endless_repetition_is_refused(tmp_path: Path) -> None:
    """A value that stands once in the file and a million times in its rows."""
    index = pa.array([0] * 1_000_000, pa.int32())
    column = pa.DictionaryArray.from_arrays(index, pa.array(["x" * 100_000]))
    data = parquet(pa.table({"a": column}).replace_schema_metadata(None), store_schema=False)
    assert len(data) < 300_000
    with pytest.raises(PayloadTooLarge, match=r"more than 512 MB of memory|unpacks to more than"):
        await convert(tmp_path, "x.parquet", data)


async def test_a_parquet_file_whose_footer_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = parquet(NUMBERS)
    length = int.from_bytes(data[-8:-4], "little")
    monkeypatch.setattr(row_groups, "MAX_FOOTER_BYTES", length)
    assert (await read_here(tmp_path, "x.parquet", data)).num_rows == 10
    monkeypatch.setattr(row_groups, "MAX_FOOTER_BYTES", length - 1)
    with pytest.raises(PayloadTooLarge, match="footer is larger than"):
        await read_here(tmp_path, "x.parquet", data)


async def test_a_stored_file_has_row_groups_of_a_bounded_size_and_nothing_else_of_the_given_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_groups, "GROUP_BYTES", MB)
    uploaded = pa.table({"id": pa.array(range(500)), "text": pa.array(["x" * 10_000] * 500)})
    data = parquet(uploaded.replace_schema_metadata({"hidden": "y" * 1000}))
    (tmp_path / "work").mkdir()
    (tmp_path / "given").write_bytes(data)
    path = await as_parquet(tmp_path / "given", Reading(name="x.parquet"), tmp_path / "work")
    with pq.ParquetFile(path) as file:
        assert file.read().equals(uploaded)
        assert b"hidden" not in (file.schema_arrow.metadata or {})
        groups = [file.read_row_group(number).nbytes for number in range(file.num_row_groups)]
    assert len(groups) > 1
    assert max(groups) <= MB


async def test_a_row_may_be_as_large_as_a_row_group_and_no_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads a row has its whole group in memory, and 300 MB of one sign pack into 10 KB."""
    monkeypatch.setattr(row_groups, "GROUP_BYTES", MB)
    offset = 4
    largest = pa.table({"text": ["x" * (MB - offset)]})
    assert (await read_here(tmp_path, "x.parquet", parquet(largest))).equals(largest)
    one_past = pa.table({"text": ["x" * (MB - offset + 1)]})
    with pytest.raises(PayloadTooLarge, match=r"A row of the file has more than 1,048,576 bytes"):
        await read_here(tmp_path, "x.parquet", parquet(one_past))


SHARED = pa.DictionaryArray.from_arrays(
    pa.array([0, 0, None, 1], pa.int32()), pa.array(["ab", "c"])
)
OFFSETS = pa.array([0, 1, 2, 3, 4], pa.int32())


@pytest.mark.parametrize(
    "column",
    [
        SHARED,
        pa.ListArray.from_arrays(OFFSETS, SHARED),
        pa.StructArray.from_arrays([SHARED], ["inner"]),
        pa.MapArray.from_arrays(OFFSETS, pa.array(["k"] * 4), SHARED),
        pa.array(["ab", "ab", None, "c"], pa.string_view()),
    ],
    ids=lambda column: str(column.type),
)
async def test_a_stored_file_has_no_value_that_rows_share(tmp_path: Path, column: pa.Array) -> None:
    table = await read_here(tmp_path, "x.parquet", parquet(pa.table({"a": column})))
    assert "dictionary" not in str(table.schema)
    assert "view" not in str(table.schema)
    assert table["a"].to_pylist() == column.to_pylist()


async def test_a_small_file_of_one_long_value_that_all_rows_share_is_refused(
    tmp_path: Path,
) -> None:
    """5 KB that would be 16 GB in whatever shows its rows."""
    indices = pa.array([0] * 2000, pa.int32())
    shared = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 8_000_000]))
    data = parquet(pa.table({"id": pa.array(range(2000)), "text": shared}), compression="zstd")
    assert len(data) < 10_000
    with pytest.raises(PayloadTooLarge, match="memory to read"):
        await convert(tmp_path, "x.parquet", data)


def encodings() -> Iterator[str]:
    for name in sorted(set(aliases.aliases.values())):
        with suppress(InvalidInput):
            text_encoding(name)
            yield name


@pytest.mark.parametrize("encoding", list(encodings()))
async def test_a_table_is_read_in_every_encoding_that_is_taken(
    tmp_path: Path, encoding: str
) -> None:
    table = await read_here(tmp_path, "x.csv", "a,b\n1,2\n".encode(encoding), encoding=encoding)
    assert table.to_pylist() == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize("name", ["undefined", "idna", "punycode", "unicode_escape", "rot13", "é"])
def test_what_is_no_encoding_of_files_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="no encoding"):
        text_encoding(name)
    assert text_encoding("cp1252") == codecs.lookup("cp1252")


async def test_a_file_that_takes_too_much_processor_time_is_refused(tmp_path: Path) -> None:
    data = b"a,b\n" + b'"x",2\n' * 8_000_000
    with pytest.raises(PayloadTooLarge, match="takes longer to read than 1 s"):
        await convert(tmp_path, "x.csv", data, parser(cpu_seconds=1))


LIMIT_MODULE = "tests.reconcile.limited_child"


@pytest.mark.parametrize(
    ("task", "reason"),
    [("wait", "time"), ("spin", "time"), ("allocate", "memory"), ("abort", "crash")],
)
async def test_a_process_that_meets_a_limit_is_gone_with_all_that_it_started(
    tmp_path: Path, task: str, reason: str
) -> None:
    limits = replace(LIMITS, cpu_seconds=1, wall_seconds=5)
    with pytest.raises(ProcessStopped) as stopped:
        await limited_process.run(LIMIT_MODULE, {"task": task}, tmp_path, limits)
    assert stopped.value.reason == reason
    with (tmp_path / "lock").open() as lock:  # the process and its child have it while they live
        async with asyncio.timeout(10):
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)


async def test_a_process_writes_no_larger_file_than_it_may_and_sees_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SERVICE_TOKEN", "secret")
    limits = replace(LIMITS, file_bytes=MB)
    answer = await limited_process.run(LIMIT_MODULE, {"task": "write"}, tmp_path, limits)
    assert answer == b'{"written":1048576,"environment":[]}'


async def test_slow_files_of_one_user_leave_a_process_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Path] = []

    async def run(module: str, request: Any, folder: Path, limits: ProcessLimits) -> bytes:
        if folder.name.startswith("slow"):
            begun.append(folder)
            await asyncio.Event().wait()
        return await run_process(module, request, folder, limits)

    run_process = limited_process.run
    monkeypatch.setattr(limited_process, "run", run)
    both = parser(parallel=2)
    file = tmp_path / "slow.csv"
    slow = [
        asyncio.create_task(
            both.convert(file, Reading(name="x.csv"), tmp_path / f"slow{n}", username="mallory")
        )
        for n in range(2)
    ]
    await asyncio.sleep(0)
    assert [folder.name for folder in begun] == ["slow0"]
    assert (await convert(tmp_path, "x.csv", b"a\n1\n", both)).rows == 1
    assert len(begun) == 1
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


async def test_a_filtered_sample_is_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    stored = tmp_path / "stored.parquet"
    pq.write_table(NUMBERS, stored)
    side = Side.model_validate(
        {
            "upload": "0" * 32,
            "primary_key": ["id"],
            "filters": [{"column": "id", "op": "gte", "value": 4}],
        }
    )
    path = await parser().sample(stored, side, 3, tmp_path, username="ann")
    with pa.OSFile(str(path)) as file:
        assert pa.ipc.open_file(file).read_all().column("id").to_pylist() == [4, 5, 6]
