"""Values of every type in every download format, read back by other readers and compared with the
Arrow values."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl.utils.escape import unescape

from penstock.kit.errors import InvalidInput
from penstock.reconcile.evidence.download import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = [0, -1, 1_706_702_400, 253_402_300_799, 253_402_300_800, -62_135_596_800, -62_135_596_801]
SECONDS += [-62_167_219_200, -62_167_219_201, -2_208_988_800, -2_203_891_200, -5_000_000_000]
SECONDS += [-2_208_988_801, 4_000_000_000, 9_000_000_000_000, -9_000_000_000_000, 1_729_989_000]
DAYS = [0, -719_162, -719_163, 2_932_896, 2_932_897, -(2**31), 2**31 - 1, -25_567, -25_509, -25_508]
TEXTS = [
    "",
    " a ",
    "=1+1",
    "@SUM(1)",
    "+1",
    "-1",
    "'x",
    "http://x.y",
    "a\nb\r\nc",
    "a\rb",
    "\x01\x0b",
]
TEXTS += [
    "_x0041_",
    "\U0001f468\u200d\U0001f469",
    'a"b,c;d',
    "null",
    "nan",
    "\ufffe\uffff",
    "1e5",
    "0001",
    "\t",
    "\u2028",
]
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FLOATS = [0.1, 0.1 + 0.2, -0.0, 5e-324, 1.7976931348623157e308, 1234567890123456.7, math.nan]
FLOATS += [math.inf, -math.inf, 1e15, 123456789012345.6]
NEARLY = 2**62


def moments(unit: str, zone: str | None) -> pa.Array:
    many = [second * PER_SECOND[unit] for second in SECONDS]
    ticks = [tick for tick in many if -(2**63) <= tick < 2**63]
    ticks += [] if unit == "s" else [1, -1, 1_706_702_400 * PER_SECOND[unit] + 1]
    return pa.array([*ticks, None], pa.timestamp(unit, zone))


def decimals(digits: int, scale: int) -> pa.Array:
    numbers = [Decimal(f"{n}E-{scale}") for n in (0, 1, -1, 10**15 - 1, 10**15, 10**digits - 1)]
    kind = pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)
    return pa.array([*(n for n in numbers if abs(n) < Decimal(f"1E{digits - scale}")), None], kind)


COLUMNS: dict[str, pa.Array] = {
    "boolean": pa.array([True, False, None]),
    "int8": pa.array([-128, 127, None], pa.int8()),
    "int64": pa.array([-(2**63), 2**63 - 1, 10**15 - 1, 10**15, 2**53 + 1, None]),
    "uint64": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "half": pa.array([0.1, 65504.0, math.inf, math.nan, None], pa.float32()).cast(pa.float16()),
    "float": pa.array([0.1, 1e-45, 3.4e38, 16777216.0, math.nan, -math.inf, None], pa.float32()),
    "double": pa.array([*FLOATS, None]),
    **{
        f"decimal {d} {s}": decimals(d, s)
        for d, s in ((5, 2), (18, 2), (38, 0), (38, 6), (38, 38), (60, 30))
    },
    "text": pa.array([*TEXTS, None]),
    "large text": pa.array([*TEXTS, None], pa.large_string()),
    "dictionary": pa.array([*TEXTS, None]).dictionary_encode(),
    "bytes": pa.array([b"", b"\x00\xff", None]),
    "fixed": pa.array([b"\x00\xff", None], pa.binary(2)),
    "date": pa.array([*DAYS, None], pa.date32()),
    "date64": pa.array([*(day * 86_400_000 for day in DAYS), None], pa.date64()),
    **{
        f"time {kind.unit}": pa.array([0, 1, 86_400 * PER_SECOND[kind.unit] - 1, None], kind)
        for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
    },
    **{
        f"moment {unit} {zone}": moments(unit, zone)
        for unit in PER_SECOND
        for zone in (
            None,
            "UTC",
            "Europe/Vienna",
            "Pacific/Kiritimati",
            "America/New_York",
            "+05:30",
            "Moon/Base",
        )
    },
    **{
        f"duration {unit}": pa.array([0, 1, -1, NEARLY, -(2**63) + 1, None], pa.duration(unit))
        for unit in PER_SECOND
    },
    "null": pa.nulls(2),
}


def written(form: str, column: pa.Array) -> bytes:
    """In one batch, and the same in a batch for each row."""
    table = pa.table({"before": range(len(column)), "c": column})
    whole = b"".join(FORMS[form].write(table.schema, table.to_batches()))
    if form != "xlsx":
        single = [batch for n in range(len(table)) for batch in table.slice(n, 1).to_batches()]
        by_row = b"".join(FORMS[form].write(table.schema, single))
        assert read_back(form, by_row) == read_back(form, whole)
    return whole


def read_back(form: str, data: bytes) -> list[Any]:
    match form:
        case "json":
            return [row["c"] for row in json.loads(data)]
        case "csv":
            rows = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
            assert rows[0] == ["before", "c"]
            return [row[1] for row in rows[1:]]
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert sheet is not None
    cells = list(sheet.iter_rows(values_only=True, min_col=1, max_col=2))
    assert cells[0] == ("before", "c")
    # Its reader leaves the escapes of characters that XML does not have, as the format writes them.
    return [unescape(row[1]) if isinstance(row[1], str) else row[1] for row in cells[1:]]


def ticks_of(value: Any, per_second: int) -> int:
    """A moment, read by NumPy: it has years of any length."""
    if isinstance(value, datetime):
        value = value.isoformat()
    parts = re.fullmatch(
        r"(?P<day>.+\d\d)[T ](?P<clock>[0-9:]+)([.](?P<rest>\d+))?(?P<zone>Z|[+-][\d:]+)?", value
    )
    assert parts is not None, value
    seconds = int(
        np.datetime64(f"{parts['day'].removeprefix('+')}T{parts['clock']}", "s").astype("int64")
    )
    zone = (parts["zone"] or "Z").replace(":", "")
    assert len(zone) in (1, 5), value
    if zone != "Z":
        seconds -= int(f"{zone[0]}1") * (int(zone[1:3]) * 3600 + int(zone[3:]) * 60)
    rest = Decimal(f"0.{parts['rest'] or 0}") * per_second
    assert rest == int(rest)
    return seconds * per_second + int(rest)


def day_of(value: Any) -> int:
    if isinstance(value, datetime):
        assert value.time() == time(0)
        value = value.date()
    text = value.isoformat() if isinstance(value, date) else value
    return int(np.datetime64(text.removeprefix("+"), "D").astype("int64"))


def clock_of(value: Any, per_second: int) -> Decimal:
    text = value.isoformat() if isinstance(value, time) else value
    hours, minutes, seconds = text.split(":")
    return ((int(hours) * 60 + int(minutes)) * 60 + Decimal(seconds)) * per_second


def float_of(kind: pa.DataType) -> Callable[[Any], bytes]:
    code = {16: "e", 32: "f", 64: "d"}[kind.bit_width]

    def packed(value: Any) -> bytes:
        number = float(value)
        return struct.pack(code, 0.0 if number == 0 else math.nan if math.isnan(number) else number)

    return packed


def is_true(value: Any) -> bool:
    return {"true": True, "false": False}.get(value, value)


def reader_of(kind: pa.DataType) -> Callable[[Any], Any]:
    """What a value that was read back is, as something to compare."""
    readers: list[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]]] = [
        (pa.types.is_boolean, is_true),
        (pa.types.is_integer, int),
        (pa.types.is_decimal, lambda value: Decimal(str(value))),
        (pa.types.is_timestamp, lambda value: ticks_of(value, PER_SECOND[kind.unit])),
        (pa.types.is_date, day_of),
        (pa.types.is_time, lambda value: clock_of(value, PER_SECOND[kind.unit])),
        (pa.types.is_duration, lambda value: Decimal(value) * PER_SECOND[kind.unit]),
        (pa.types.is_binary, bytes.fromhex),
        (pa.types.is_fixed_size_binary, bytes.fromhex),
    ]
    if pa.types.is_floating(kind):
        return float_of(kind)
    return next((read for is_kind, read in readers if is_kind(kind)), str)


def truth_of(column: pa.Array) -> list[Any]:
    """The Arrow values, as the same."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.to_pylist()
    if pa.types.is_floating(kind):
        return [None if value is None else float_of(kind)(value) for value in column.to_pylist()]
    if pa.types.is_date(kind):
        return [
            None if not s.is_valid else s.value // (86_400_000 if kind == pa.date64() else 1)
            for s in column
        ]
    if pa.types.is_temporal(kind):
        return [scalar.value if scalar.is_valid else None for scalar in column]
    return column.to_pylist()


@pytest.mark.parametrize("form", ["json", "csv", "xlsx"])
@pytest.mark.parametrize("what", COLUMNS)
def test_every_value_of_every_type_reads_back_as_it_was(what: str, form: str) -> None:
    column = COLUMNS[what]
    back, truth = read_back(form, written(form, column)), truth_of(column)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    read = reader_of(kind)
    # Neither the csv module nor a sheet tells an empty text from null; the next test does.
    empty = (None, "") if form != "json" else (None,)
    values = [None if value in empty else read(value) for value in back]
    assert values == [
        None if value in empty or (form != "json" and value == b"") else value for value in truth
    ]


@pytest.mark.parametrize("what", ["text", "dictionary", "double", "date", "moment us None"])
def test_a_csv_tells_nulls_from_empty_texts(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(written("csv", COLUMNS[what]))
    options = (
        "header=true, all_varchar=true, allow_quoted_nulls=false, "
        "quote='\"', escape='\"', delim=','"
    )
    nulls = duckdb.sql(
        f"SELECT c IS NULL FROM read_csv('{path}', {options}, new_line='\\n')"
        " ORDER BY CAST(before AS INT)"
    )
    assert [row[0] for row in nulls.fetchall()] == [
        value is None for value in truth_of(COLUMNS[what])
    ]


@pytest.mark.parametrize("what", COLUMNS)
def test_parquet_and_arrow_have_the_very_values(what: str) -> None:
    table = pa.table({"c": COLUMNS[what]})
    stream = b"".join(FORMS["arrow"].write(table.schema, table.to_batches()))
    assert str(pa.ipc.open_stream(stream).read_all().column("c")) == str(table.column("c"))
    file = b"".join(FORMS["parquet"].write(table.schema, table.to_batches()))
    back = pq.read_table(io.BytesIO(file)).column("c")
    same = back.cast(table.schema.types[0]).combine_chunks()
    assert same.to_string(window=50) == COLUMNS[what].to_string(window=50)


SPLIT = pa.StructArray.from_arrays(
    [pa.array([1.5, math.nan]), pa.array([b"\x01", None])], names=["a", "a"]
)
NESTED: dict[str, tuple[pa.Array, list[Any]]] = {
    "floats": (
        pa.array([[math.nan, 0.1], [-math.inf], None, []]),
        [["nan", 0.1], ["-inf"], None, []],
    ),
    "fixed list": (
        pa.array([[math.nan, 1.0], None], pa.list_(pa.float64(), 2)),
        [["nan", 1.0], None],
    ),
    "large list": (pa.array([[b"\xff"], None], pa.large_list(pa.binary())), [["ff"], None]),
    "far dates": (pa.array([[2_932_897, None]], pa.list_(pa.date32())), [["+10000-01-01", None]]),
    "two fields of one name": (SPLIT, [[["a", 1.5], ["a", "01"]], [["a", "nan"], ["a", None]]]),
    "struct": (
        pa.array(
            [{"a": [Decimal("1E-7")], "b": None}, None],
            pa.struct([("a", pa.list_(pa.decimal128(9, 8))), ("b", pa.int8())]),
        ),
        [{"a": ["0.00000010"], "b": None}, None],
    ),
    "no fields": (pa.array([{}, None], pa.struct([])), [{}, None]),
    "map": (
        pa.array([[("a", math.nan), ("a", 1.0)], [], None], pa.map_(pa.string(), pa.float64())),
        [[["a", "nan"], ["a", 1.0]], [], None],
    ),
    "lists of lists": (pa.array([[[math.nan], None, []]]), [[["nan"], None, []]]),
    "intervals": (
        pa.array([(1, -2, 3), (-1, 0, -1), None], pa.month_day_nano_interval()),
        ["P1M-2DT0.000000003S", "P-1M0DT-0.000000001S", None],
    ),
    "a slice": (pa.array([[1.0], [math.inf], [2.0]]).slice(1), [["inf"], [2.0]]),
    "moments": (
        pa.array([[253_402_300_799]], pa.list_(pa.timestamp("s", "Pacific/Kiritimati"))),
        [["9999-12-31T23:59:59Z"]],
    ),
}


@pytest.mark.parametrize("what", NESTED)
def test_nested_values_are_json_in_every_form(what: str) -> None:
    column, truth = NESTED[what]
    assert read_back("json", written("json", column)) == truth
    for form in ("csv", "xlsx"):
        texts = [text or None for text in read_back(form, written(form, column))]
        plain = what == "intervals"
        assert [text if plain or text is None else json.loads(text) for text in texts] == truth


def test_a_moment_of_an_offset_with_seconds_is_in_utc() -> None:
    """Vienna was 1:05:21 ahead in 1880; offsets are written with minutes only."""
    at = datetime(1880, 1, 1, tzinfo=UTC)
    column = pa.array([at], pa.timestamp("us", "Europe/Vienna"))
    for form in ("json", "csv", "xlsx"):
        assert read_back(form, written(form, column)) == ["1880-01-01T00:00:00.000000Z"]


def test_a_sheet_has_so_many_columns_and_no_more() -> None:
    table = pa.table({f"c{n}": [n] for n in range(16_385)})
    with pytest.raises(InvalidInput, match="16,384 columns at most; this would have 16,385"):
        b"".join(FORMS["xlsx"].write(table.schema, table.to_batches()))
    narrow = table.select(range(16_384))
    assert b"".join(FORMS["xlsx"].write(narrow.schema, narrow.to_batches()))
