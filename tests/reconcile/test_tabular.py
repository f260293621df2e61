"""Real-world files of any delimiter and encoding: read correctly, or refused with a message."""

from __future__ import annotations

import gzip
import io
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from xlsxwriter import Workbook

from penstock.kit.errors import InvalidInput, PayloadTooLarge
from penstock.reconcile.uploads.parsing.limits import TableLimits
from penstock.reconcile.uploads.tabular import Reading, as_parquet

if TYPE_CHECKING:
    from pathlib import Path


async def read(folder: Path, name: str, data: bytes, **options: Any) -> pa.Table:
    source = folder / "given"
    source.write_bytes(data)
    work = folder / f"work-{len(list(folder.iterdir()))}"
    work.mkdir()
    return pq.read_table(await as_parquet(source, Reading(name=name, **options), work))


def book(*rows: list[Any]) -> bytes:
    out = io.BytesIO()
    with Workbook(out) as workbook:
        sheet = workbook.add_worksheet()
        day = workbook.add_format({"num_format": "yyyy-mm-dd"})
        for number, row in enumerate(rows):
            for place, value in enumerate(row):
                sheet.write(number, place, value, day if isinstance(value, date) else None)
    return out.getvalue()


def parquet(*names: str) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * len(names), names=list(names)), out)
    return out.getvalue()


NOTE = 'two\nlines, "quoted"; and | more'
QUOTED = NOTE.replace('"', '""')
CSVS: list[tuple[str, bytes, dict[str, str]]] = [
    ("comma.csv", f'id,note\n1,"{QUOTED}"\n'.encode(), {}),
    ("semicolon.csv", f'id;note\r\n1;"{QUOTED}"\r\n'.encode(), {}),
    ("tab.tsv", f'id\tnote\n1\t"{QUOTED}"\n'.encode(), {}),
    ("pipe.txt", f'id|note\n1|"{QUOTED}"\n'.encode(), {}),
    ("told.csv", f'id~note\n1~"{QUOTED}"\n'.encode(), {"delimiter": "~"}),
    ("marked.csv", b"\xef\xbb\xbf" + f'id,note\n1,"{QUOTED}"\n'.encode(), {}),
    ("wide.csv", f'id,note\n1,"{QUOTED}"\n'.encode("utf-16"), {}),
    ("packed.csv.gz", gzip.compress(f'id,note\n1,"{QUOTED}"\n'.encode()), {}),
    ("no-newline-at-its-end.csv", f'id,note\n1,"{QUOTED}"'.encode(), {}),
]


@pytest.mark.parametrize(("name", "data", "options"), CSVS, ids=[name for name, *_ in CSVS])
async def test_a_csv_has_its_rows_whatever_it_looks_like(
    tmp_path: Path, name: str, data: bytes, options: dict[str, str]
) -> None:
    assert (await read(tmp_path, name, data, **options)).to_pylist() == [{"id": "1", "note": NOTE}]


@pytest.mark.parametrize(
    "encoding", ["cp1252", "latin-1", "iso8859-15", "utf-8", "utf-8-sig", "utf-16-le"]
)
async def test_an_encoding_that_is_told_is_read(tmp_path: Path, encoding: str) -> None:
    table = await read(
        tmp_path, "x.csv", "n\u00e4me,b\nJ\u00fcrgen,2\n".encode(encoding), encoding=encoding
    )
    assert table.to_pylist() == [{"n\u00e4me": "J\u00fcrgen", "b": "2"}]


async def test_an_empty_field_is_null_and_a_quoted_one_is_empty(tmp_path: Path) -> None:
    table = await read(tmp_path, "x.csv", b'a,b\n,""\n')
    assert table.to_pylist() == [{"a": None, "b": ""}]


async def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    for name, data in (("x.csv", b"a,b\n"), ("x.csv", b"a,b"), ("x.xlsx", book(["a", "b"]))):
        table = await read(tmp_path, name, data)
        assert (table.num_rows, table.column_names) == (0, ["a", "b"])


async def test_an_inch_sign_within_a_field_is_no_open_quote(tmp_path: Path) -> None:
    assert (await read(tmp_path, "x.csv", b'a,b\n5" pipe,2\n')).to_pylist() == [
        {"a": '5" pipe', "b": "2"}
    ]


REFUSED: list[tuple[str, bytes, dict[str, Any], str]] = [
    ("x.pdf", b"%PDF", {}, "not a file that can be read"),
    ("x.csv", b"", {}, "empty"),
    ("x.csv", b"\n\n\n", {}, "no header"),
    ("x.csv", b"a,a\n1,2\n", {}, "more than one column named a"),
    ("x.csv", b"a,\n1,2\n", {}, "name every column"),
    ("x.csv", b"sep=;\na;b\n1;2\n", {}, "name every column"),
    ("x.csv", b"a,b\n1,2,3\n", {}, r"Row #2: Expected 2 columns, got 3"),
    ("x.csv", b"a,b\n1\n", {}, r"Row #2: Expected 2 columns, got 1"),
    ("x.csv", b'a,b\n1,2\n3,"4\n5,6\n7,8\n', {}, r"never closed, in the row that begins in line 3"),
    ("x.csv", b'a;b\n1;2\n3;"4\n5;6\n', {}, r"never closed, in the row that begins in line 3"),
    ("x.csv", b"a,b\n1,\xe4\n", {}, "not utf-8"),
    ("x.csv", b"\x00\x00\x00", {}, "NUL characters"),
    ("x.csv", parquet("a"), {}, "NUL characters|not utf-8"),
    ("x.csv", b"a,b\n1,2\n", {"encoding": "klingon"}, "no encoding 'klingon'"),
    ("x.csv", b"a,b\n1,2\n", {"encoding": "base64"}, "no encoding 'base64'"),
    ("x.csv", b"a,b\n1,2\n", {"delimiter": '"'}, "cannot be a delimiter"),
    ("x.csv", b"a,b\n1,2\n", {"delimiter": "\n"}, "cannot be a delimiter"),
    ("x.csv", b"a,b\n1,2\n", {"delimiter": "\u00e9"}, "cannot be a delimiter"),
    ("x.csv.gz", b"not gzip", {}, "cannot be unpacked"),
    ("x.csv.gz", gzip.compress(b"a,b\n1,2\n")[:-6], {}, "cannot be unpacked"),
    ("x.parquet", b"PAR1", {}, "Parquet file"),
    ("x.parquet", parquet("a")[:-20] + b"PAR1", {}, "Parquet file"),
    ("x.parquet", parquet("a", "a"), {}, "more than one column named a"),
    ("x.parquet", parquet(), {}, "name every column"),
    ("x.xlsx", b"PK", {}, "workbook cannot be read"),
    ("x.xls", b"garbage", {}, "workbook cannot be read"),
    ("x.xlsx", book(), {}, "name every column"),
    ("x.xlsx", book(["a", ""], [1, 2]), {}, "name every column"),
    ("x.xlsx", book(["a"], [1, 2]), {}, "name every column"),
    ("x.xlsx", book(["a", "a"], [1, 2]), {}, "more than one column named a"),
]


@pytest.mark.parametrize(
    ("name", "data", "options", "says"), REFUSED, ids=[f"{n}-{w[:20]}" for n, _, _, w in REFUSED]
)
async def test_what_cannot_be_meant_is_refused_with_a_sentence(
    tmp_path: Path, name: str, data: bytes, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        await read(tmp_path, name, data, **options)


async def test_a_file_may_unpack_to_so_much_and_no_more(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n1,2\n")
    assert (
        await read(tmp_path, "x.csv.gz", packed, limits=TableLimits(unpacked_bytes=8))
    ).num_rows == 1
    with pytest.raises(PayloadTooLarge, match="more than 7 characters"):
        await read(tmp_path, "x.csv.gz", packed, limits=TableLimits(unpacked_bytes=7))
    workbook = book(["a"], [1])
    with pytest.raises(PayloadTooLarge, match="more than 1,000 bytes"):
        await read(tmp_path, "x.xlsx", workbook, limits=TableLimits(unpacked_bytes=1000))


async def test_a_sheet_s_column_of_one_kind_has_its_type_and_any_other_is_text(
    tmp_path: Path,
) -> None:
    day = date(2024, 2, 29)
    table = await read(
        tmp_path,
        "x.xlsx",
        book(
            ["id", "amount", "mixed", "day", "yes", "huge"],
            [1, 1.5, "A", day, True, 1e300],
            [2, 2.25, 7, None, False, 1],
            [None, 3, 7.5, day, True, 2],
        ),
    )
    assert table.to_pylist() == [
        {"id": 1, "amount": 1.5, "mixed": "A", "day": day, "yes": True, "huge": 1e300},
        {"id": 2, "amount": 2.25, "mixed": "7", "day": None, "yes": False, "huge": 1.0},
        {"id": None, "amount": 3.0, "mixed": "7.5", "day": day, "yes": True, "huge": 2.0},
    ]
