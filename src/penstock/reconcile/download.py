"""Evidence in the form that a tool reads, as a stream: the size does not matter, but a spreadsheet has an end."""

from __future__ import annotations

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
    with arrow_csv.CSVWriter(pa.PythonFile(spool, "w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield spool.take()
    yield spool.take()


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
        for row in batch.to_pylist():
            yield (b"" if first else b",") + orjson.dumps(row, default=_plain)
            first = False
    yield b"]"


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
        sheet.write_row(0, 0, schema.names, book.add_format({"bold": True}))
        sheet.freeze_panes(1, 0)
        at = 0
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                at += 1
                if at > MAX_SHEET_ROWS:
                    raise InvalidInput(
                        f"A sheet has {MAX_SHEET_ROWS:,} rows at most.", hint="Take csv, parquet or arrow."
                    )
                for place, value in enumerate(row):
                    _cell(sheet, at, place, value, days)


def _cell(sheet: Worksheet, row: int, place: int, value: object, days: Format) -> None:
    match value:
        case None:
            return
        case bool() | int() | float() | Decimal():
            sheet.write(row, place, value)
        case datetime() | date():
            sheet.write(row, place, value, days)
        case _:
            sheet.write(row, place, str(value))


FORMS: Mapping[str, Form] = {
    "json": Form(media_type="application/json", suffix="json", write=_json),
    "csv": Form(media_type="text/csv; charset=utf-8", suffix="csv", write=_csv),
    "parquet": Form(media_type="application/vnd.apache.parquet", suffix="parquet", write=_parquet),
    "arrow": Form(media_type="application/vnd.apache.arrow.stream", suffix="arrow", write=_arrow),
    "xlsx": Form(
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", suffix="xlsx", write=_xlsx
    ),
}
