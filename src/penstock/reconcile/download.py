"""Evidence in the form that a tool reads, as a stream: the size does not matter, but a spreadsheet has an end.

Every value comes out as it is, in every form. What a form has no type for (lists in CSV, 20 digits in a spreadsheet) is
text there, never rounded and never left out.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

MAX_SHEET_ROWS = 1_048_575
MAX_CELL = 32_767
_SHEET_DIGITS = 15
_FIRST_SHEET_YEAR = 1900
_CHUNK = 1024 * 1024
Writer = Callable[[pa.Schema, "Iterable[pa.RecordBatch]"], Iterator[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    media_type: str
    suffix: str
    write: Writer


class _Spool:
    """What a writer has written since it was last asked."""

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
        """Whoever asks takes it."""

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        data, self._pieces = b"".join(self._pieces), []
        return data


def _csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    spool = _Spool()
    flat = pa.schema([pa.field(field.name, _csv_type(field.type)) for field in schema])
    with arrow_csv.CSVWriter(pa.PythonFile(spool, "w"), flat) as writer:
        for batch in batches:
            writer.write_batch(_flat(batch, flat))
            yield spool.take()
    yield spool.take()


def _csv_type(kind: pa.DataType) -> pa.DataType:
    """Text for what the writer of CSV does not know."""
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    unknown = pa.types.is_nested(kind) or pa.types.is_duration(kind) or isinstance(kind, pa.BaseExtensionType)
    return pa.string() if binary or unknown else kind


def _flat(batch: pa.RecordBatch, flat: pa.Schema) -> pa.RecordBatch:
    columns = [
        column if column.type == field.type else pa.array([_said(value) for value in column.to_pylist()], pa.string())
        for column, field in zip(batch.columns, flat, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=flat)


def _said(value: object) -> str | None:
    """A value as text: nested ones as JSON, bytes as hexadecimals."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    return _plain(value)


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
    """An array of objects; amounts are text, for a JSON number is a float to most readers."""
    yield b"["
    first = True
    for batch in batches:
        for row in _exact(batch).to_pylist():
            yield (b"" if first else b",") + orjson.dumps(row, default=_plain, option=orjson.OPT_NON_STR_KEYS)
            first = False
    yield b"]"


def _exact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Nanoseconds are more than Python's times have; they are text."""
    for place, field in enumerate(batch.schema):
        nanos = (pa.types.is_timestamp(field.type) or pa.types.is_time64(field.type)) and field.type.unit == "ns"
        if nanos:
            batch = batch.set_column(place, field.name, batch.column(place).cast(pa.string()))
    return batch


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _xlsx(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    with tempfile.TemporaryDirectory(prefix="penstock-sheet-") as folder:
        path = Path(folder) / "evidence.xlsx"
        _sheet(path, schema, batches)
        with path.open("rb") as file:
            while data := file.read(_CHUNK):
                yield data


def _sheet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    from xlsxwriter import Workbook

    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "remove_timezone": True}
    with Workbook(str(path), options) as book:
        sheet = book.add_worksheet("evidence")
        days = book.add_format({"num_format": "yyyy-mm-dd"})
        moments = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"})
        sheet.write_row(0, 0, schema.names, book.add_format({"bold": True}))
        sheet.freeze_panes(1, 0)
        at = 0
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in _exact(batch).columns), strict=True):
                at += 1
                check_rows(at)
                for place, value in enumerate(row):
                    _cell(sheet, at, place, value, days, moments)


def check_rows(count: int) -> None:
    if count > MAX_SHEET_ROWS:
        raise InvalidInput(f"A sheet has {MAX_SHEET_ROWS:,} rows at most.", hint="Take csv, parquet or arrow.")


def _cell(sheet: Worksheet, row: int, place: int, value: object, days: Format, moments: Format) -> None:
    match value:
        case None:
            return
        case bool():
            sheet.write_boolean(row, place, value)
        case int() | float() | Decimal() if _fits_sheet(value):
            sheet.write_number(row, place, value)
        case datetime() if value.year >= _FIRST_SHEET_YEAR:
            sheet.write_datetime(row, place, value, moments)
        case date() if value.year >= _FIRST_SHEET_YEAR and not isinstance(value, datetime):
            sheet.write_datetime(row, place, value, days)
        case _:
            _text_cell(sheet, row, place, _said(value) or "")


def _fits_sheet(value: float | Decimal) -> bool:
    """A cell's number is a double: it shows 15 digits as they are."""
    if isinstance(value, Decimal):
        return value.is_finite() and len(value.as_tuple().digits) <= _SHEET_DIGITS
    return abs(value) < 10**_SHEET_DIGITS if isinstance(value, int) else math.isfinite(value)


def _text_cell(sheet: Worksheet, row: int, place: int, text: str) -> None:
    if len(text) > MAX_CELL:
        raise InvalidInput(
            f"A cell of a sheet has {MAX_CELL:,} characters at most; row {row} has a text of {len(text):,}.",
            hint="Take csv, parquet or arrow.",
        )
    sheet.write_string(row, place, text)


FORMS: Mapping[str, Form] = {
    "json": Form(media_type="application/json", suffix="json", write=_json),
    "csv": Form(media_type="text/csv; charset=utf-8", suffix="csv", write=_csv),
    "parquet": Form(media_type="application/vnd.apache.parquet", suffix="parquet", write=_parquet),
    "arrow": Form(media_type="application/vnd.apache.arrow.stream", suffix="arrow", write=_arrow),
    "xlsx": Form(
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", suffix="xlsx", write=_xlsx
    ),
}
