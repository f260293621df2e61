"""Evidence downloads as CSV, JSON, XLSX, Parquet or Arrow, streamed: only spreadsheets have a size
limit.

Values are exact in every format. What a format has no type for (lists in CSV, 20 digits in a
spreadsheet) is written as text (see `exact_values`), never rounded and never left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from penstock.kit.errors import InvalidInput
from penstock.kit.scratch import scratch_folder
from penstock.reconcile.evidence.formulas import neutralized
from penstock.reconcile.matching.exact_values import far_texts, near, rows, values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

    from penstock.reconcile.evidence.formulas import Formulas

MAX_SHEET_ROWS = 1_048_575
MAX_SHEET_COLUMNS = 16_384
MAX_CELL = 32_767
_SHEET_DIGITS = 15
_DECIMALS = 6
_FIRST_SHEET_DAY = date(1900, 3, 1)
_CHUNK = 1024 * 1024
Writer = Callable[[pa.Schema, "Iterable[pa.RecordBatch]"], Iterator[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    media_type: str
    suffix: str
    write: Writer


class _Spool:
    """Buffer of the bytes written since the last `take`."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def write(self, data: bytes | memoryview) -> int:
        self._pieces.append(bytes(data))
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Does nothing: `take` returns the buffered bytes."""

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        data, self._pieces = b"".join(self._pieces), []
        return data


def _csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    return _csv_pieces(schema, batches, lambda texts: texts)


def _csv_for_spreadsheets(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    return _csv_pieces(schema, batches, neutralized)


def _csv_pieces(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    change: Callable[[pa.Array], pa.Array],
) -> Iterator[bytes]:
    """`change` is applied to every text, including the column names."""
    spool = _Spool()
    names = change(pa.array(schema.names, pa.string())).to_pylist()
    header = pa.schema([pa.field(name, pa.string()) for name in names])
    with arrow_csv.CSVWriter(pa.PythonFile(spool, "w"), header):
        pass
    yield spool.take()
    options = arrow_csv.WriteOptions(include_header=False)
    for batch in batches:
        columns = [_csv_column(column) for column in batch.columns]
        columns = [change(column) if _is_text(column.type) else column for column in columns]
        flat = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        arrow_csv.write_csv(flat, pa.PythonFile(spool, "w"), options)
        yield spool.take()


def _csv_column(column: pa.Array) -> pa.Array:
    """Text for values that Arrow's CSV writer does not support, or would not write exactly."""
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        if column.null_count == len(column):
            return pa.nulls(len(column))
        far = far_texts(column)
        return column if far is None else _csv_moments(column, far)
    if _is_csv_type(kind):
        return column
    return pa.array([_text(value) for value in values(column)], pa.string())


def _csv_moments(column: pa.Array, far: Sequence[str | None]) -> pa.Array:
    """Ordinary timestamps as Arrow's CSV writer formats them."""
    usual = near(column)
    if usual.null_count == len(usual):
        return pa.array(far, pa.string())
    return pc.coalesce(pa.array(far, pa.string()), usual.cast(pa.string()))


def _is_csv_type(kind: pa.DataType) -> bool:
    # Of more decimals it writes small numbers with an exponent.
    decimal = pa.types.is_decimal(kind) and kind.scale <= _DECIMALS
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or decimal
    simple = pa.types.is_boolean(kind) or pa.types.is_null(kind)
    return bool(_is_text(kind) or number or simple or pa.types.is_time(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _text(value: object) -> str | None:
    """A value as text: nested ones as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    spool = _Spool()
    with pa.ipc.new_stream(pa.PythonFile(spool, "w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield spool.take()
    yield spool.take()


def _parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    spool = _Spool()
    with pq.ParquetWriter(pa.PythonFile(spool, "w"), schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield spool.take()
    yield spool.take()


def _json(_schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """An array of objects; amounts are strings, because most readers parse JSON numbers as
    floats."""
    yield b"["
    first = True
    for batch in batches:
        for row in rows(batch):
            yield (b"" if first else b",") + orjson.dumps(row, option=orjson.OPT_NON_STR_KEYS)
            first = False
    yield b"]"


def _xlsx(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    with scratch_folder("sheet") as folder:
        path = folder / "evidence.xlsx"
        _sheet(path, schema, batches)
        with path.open("rb") as file:
            while data := file.read(_CHUNK):
                yield data


def _sheet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    from xlsxwriter import Workbook

    check_columns(len(schema))
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with Workbook(str(path), options) as book:
        sheet = book.add_worksheet("evidence")
        days = book.add_format({"num_format": "yyyy-mm-dd"})
        moments = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"})
        bold = book.add_format({"bold": True})
        for place, name in enumerate(schema.names):
            _text_cell(sheet, 0, place, name, bold)
        sheet.freeze_panes(1, 0)
        at = 0
        for batch in batches:
            columns = [_sheet_values(column) for column in batch.columns]
            for row in zip(*columns, strict=True):
                at += 1
                check_rows(at)
                for place, value in enumerate(row):
                    _cell(sheet, at, place, value, days, moments)


def _sheet_values(column: pa.Array) -> list[object]:
    """Decimals of few digits stay numbers: a cell holds them exactly."""
    decimals: list[object] = column.to_pylist() if pa.types.is_decimal(column.type) else []
    return decimals or values(column)


def check_columns(count: int) -> None:
    if count > MAX_SHEET_COLUMNS:
        message = f"A sheet has {MAX_SHEET_COLUMNS:,} columns at most; this would have {count:,}."
        raise InvalidInput(message, hint="Take csv, parquet or arrow.")


def check_rows(count: int) -> None:
    if count > MAX_SHEET_ROWS:
        raise InvalidInput(
            f"A sheet has {MAX_SHEET_ROWS:,} rows at most.", hint="Take csv, parquet or arrow."
        )


def _cell(
    sheet: Worksheet, row: int, place: int, value: object, days: Format, moments: Format
) -> None:
    match value:
        case None:
            return
        case bool():
            sheet.write_boolean(row, place, value)
        case int() | float() | Decimal() if _fits_sheet(value):
            sheet.write_number(row, place, value)
        case datetime() if _is_sheet_moment(value):
            sheet.write_datetime(row, place, value, moments)
        case date() if not isinstance(value, datetime) and value >= _FIRST_SHEET_DAY:
            sheet.write_datetime(row, place, value, days)
        case Decimal():
            _text_cell(sheet, row, place, f"{value:f}")
        case _:
            _text_cell(sheet, row, place, _text(value) or "")


def _fits_sheet(value: float | Decimal) -> bool:
    """Whether a cell holds the number exactly: a double has 15 digits, or 16 where they suffice."""
    if isinstance(value, Decimal):
        return len(value.as_tuple().digits) <= _SHEET_DIGITS
    if isinstance(value, int):
        return bool(abs(value) < 10**_SHEET_DIGITS)
    return math.isfinite(value) and float(f"{value:.16G}") == value


def _is_sheet_moment(value: datetime) -> bool:
    """Whether a cell can hold the timestamp: no zone, not before March 1900 (readers disagree on
    earlier days), and at most milliseconds."""
    exact = value.tzinfo is None and value.microsecond % 1000 == 0
    return exact and value.date() >= _FIRST_SHEET_DAY


def _text_cell(
    sheet: Worksheet,
    row: int,
    place: int,
    text: str,
    style: Format | None = None,
) -> None:
    if len(text) > MAX_CELL:
        raise InvalidInput(
            f"A cell of a sheet has {MAX_CELL:,} characters at most; "
            f"row {row} has a text of {len(text):,}.",
            hint="Take csv, parquet or arrow.",
        )
    sheet.write_string(row, place, text, style)


FORMS: Mapping[str, Form] = {
    "json": Form(media_type="application/json", suffix="json", write=_json),
    "csv": Form(media_type="text/csv; charset=utf-8", suffix="csv", write=_csv),
    "parquet": Form(media_type="application/vnd.apache.parquet", suffix="parquet", write=_parquet),
    "arrow": Form(media_type="application/vnd.apache.arrow.stream", suffix="arrow", write=_arrow),
    "xlsx": Form(
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        suffix="xlsx",
        write=_xlsx,
    ),
}


def form_of(name: str, formulas: Formulas) -> Form:
    """In CSV, formulas are neutralized unless the caller keeps them; in a sheet every text is typed
    as text."""
    if name == "csv" and formulas == "neutralize":
        return replace(FORMS["csv"], write=_csv_for_spreadsheets)
    return FORMS[name]
