"""The output types of MySQL columns: exact and storable in Parquet.

The server formats numbers and times as text, and Arrow parses them and rejects what does not fit: a
zero date, a TIME of 24 hours and more, a BOOLEAN of 2. FLOAT is cast to DOUBLE first, because MySQL
prints it with six digits. Text is quoted, to distinguish NULL (nothing) from the empty string (two
quotes); bytes are in hex.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from penstock.sources import batch_checks
from penstock.sources.errors import SourceError, SourceQueryError
from penstock.sources.mysql.connection import FIELD_TYPE
from penstock.sources.single_table import bare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.sources.mysql.connection import Field

_BINARY = 63
_DECIMAL128_DIGITS = 38
_INTEGERS = {
    FIELD_TYPE.TINY: (pa.int8(), pa.uint8()),
    FIELD_TYPE.SHORT: (pa.int16(), pa.uint16()),
    FIELD_TYPE.INT24: (pa.int32(), pa.uint32()),
    FIELD_TYPE.LONG: (pa.int32(), pa.uint32()),
    FIELD_TYPE.LONGLONG: (pa.int64(), pa.uint64()),
    FIELD_TYPE.YEAR: (pa.int16(), pa.int16()),
}
_TIMES = {
    FIELD_TYPE.DATE: pa.date32(),
    FIELD_TYPE.NEWDATE: pa.date32(),
    FIELD_TYPE.TIME: pa.time64("us"),
    FIELD_TYPE.DATETIME: pa.timestamp("us"),
    FIELD_TYPE.TIMESTAMP: pa.timestamp("us"),
}
_COLUMN = re.compile(
    r"In CSV column #(\d+): (?:Row #\d+: )?(?:CSV conversion error to \S+: )?(.*)", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """One column: its SQL expression, the type it is parsed as, and the conversion to `kind`."""

    name: str
    expression: str
    parsed: pa.DataType
    kind: pa.DataType
    convert: Callable[[pa.Array], pa.Array] | None = None


def output_columns(fields: Sequence[Field], *, tinyint1_is_bool: bool) -> Sequence[OutputColumn]:
    if not fields:
        raise SourceQueryError("Sources are read-only: the query must be exactly one SELECT.")
    batch_checks.distinct([field.name for field in fields])
    return [_column(field, tinyint1_is_bool) for field in fields]


def schema_of(columns: Sequence[OutputColumn]) -> pa.Schema:
    return pa.schema([(column.name, column.kind) for column in columns])


def query(columns: Sequence[OutputColumn], sql: str) -> str:
    """A query for one CSV line per row; with the empty last field a single null is not blank."""
    fields = ", ".join(column.expression for column in columns)
    return (
        f"SELECT CAST(CONCAT_WS(',', {fields}, '') AS BINARY) FROM (\n{bare(sql, 'mysql')}\n) AS q"
    )


def parse(
    columns: Sequence[OutputColumn], schema: pa.Schema, lines: Sequence[bytes | None]
) -> pa.RecordBatch:
    if None in lines:
        raise SourceError(
            "A row is larger than the server's max_allowed_packet.",
            hint="Raise max_allowed_packet, or select fewer columns.",
        )
    text = b"\n".join(line for line in lines if line is not None)
    try:
        table = csv.read_csv(pa.BufferReader(text), *_options(columns, len(text)))
        arrays = [_converted(column, table.column(place)) for place, column in enumerate(columns)]
    except pa.ArrowInvalid as e:
        raise _unfit(columns, str(e)) from None
    if table.num_rows != len(lines):
        raise SourceError(
            f"The server sent {len(lines)} rows, of which {table.num_rows} could be parsed."
        )
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _options(
    columns: Sequence[OutputColumn], size: int
) -> tuple[csv.ReadOptions, csv.ParseOptions, csv.ConvertOptions]:
    """CSV options with columns by position, because names may be empty or ambiguous; the last
    field is skipped."""
    names = [str(place) for place in range(len(columns) + 1)]
    return (
        csv.ReadOptions(use_threads=False, block_size=size + 1, column_names=names),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={
                name: column.parsed for name, column in zip(names, columns, strict=False)
            },
            include_columns=names[:-1],
            null_values=[""],
            true_values=["1"],
            false_values=["0"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _converted(column: OutputColumn, values: pa.ChunkedArray) -> pa.Array:
    array = values.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    return array if column.convert is None else column.convert(array)


def _unfit(columns: Sequence[OutputColumn], text: str) -> SourceQueryError:
    match = _COLUMN.search(text)
    if match is None:
        return SourceQueryError(f"A row could not be parsed: {text[:300]}")
    column = columns[int(match[1])]
    return SourceQueryError(
        f"Column {column.name} has a value that does not fit {column.kind}: {match[2][:300]}",
        hint="Replace it in the query, for example with NULLIF, or "
        f"CAST({quoted(column.name)} AS CHAR).",
    )


def _column(field: Field, tinyint1_is_bool: bool) -> OutputColumn:
    name, kind = quoted(field.name), field.kind
    if kind == FIELD_TYPE.TINY and field.length == 1 and not field.unsigned and tinyint1_is_bool:
        return _simple(field, name, pa.bool_())
    if kind in _INTEGERS:
        return _simple(field, name, _INTEGERS[kind][field.unsigned])
    if kind in {FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL}:
        return _decimal(field, name)
    if kind == FIELD_TYPE.FLOAT:
        return _simple(field, f"{name} + 0E0", pa.float32())
    if kind == FIELD_TYPE.DOUBLE:
        return _simple(field, name, pa.float64())
    if kind == FIELD_TYPE.BIT:
        return _simple(field, f"{name} + 0", pa.bool_() if field.length == 1 else pa.uint64())
    if kind in _TIMES:
        return _time(field, name)
    if field.charset == _BINARY and field.length > 0:
        hexed = f"COALESCE(CONCAT('\"', HEX({name}), '\"'), '')"
        return OutputColumn(
            name=field.name,
            expression=hexed,
            parsed=pa.string(),
            kind=pa.binary(),
            convert=_unhexed,
        )
    return OutputColumn(
        name=field.name, expression=_text(name), parsed=pa.string(), kind=pa.string()
    )


def _simple(field: Field, value: str, kind: pa.DataType) -> OutputColumn:
    return OutputColumn(
        name=field.name, expression=f"COALESCE({value}, '')", parsed=kind, kind=kind
    )


def _time(field: Field, name: str) -> OutputColumn:
    column = _simple(field, name, _TIMES[field.kind])
    if field.kind != FIELD_TYPE.TIMESTAMP:
        return column
    # The session's time zone is UTC.
    moment = pa.timestamp("us", tz="UTC")
    return replace(column, kind=moment, convert=lambda array: array.cast(moment))


def _text(name: str) -> str:
    value = f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"
    return f"""COALESCE(CONCAT('"', REPLACE({value}, '"', '""'), '"'), '')"""


def _decimal(field: Field, name: str) -> OutputColumn:
    """`length` includes the point and the sign. Arrow's CSV parser does not support decimal256, its
    cast does."""
    precision = max(field.length - (field.scale > 0) - (not field.unsigned), field.scale, 1)
    if precision <= _DECIMAL128_DIGITS:
        return _simple(field, name, pa.decimal128(precision, field.scale))
    wide = pa.decimal256(precision, field.scale)
    return replace(
        _simple(field, name, pa.string()), kind=wide, convert=lambda array: array.cast(wide)
    )


def _unhexed(array: pa.StringArray) -> pa.Array:
    """Decode all values at once: half as many bytes, at half the offsets."""
    array = pa.concat_arrays([array])
    validity, offsets, data = array.buffers()
    whole = bytes.fromhex(data.to_pybytes().decode()) if data is not None else b""
    halves = pc.divide(pa.Array.from_buffers(pa.int32(), len(array) + 1, [None, offsets]), 2).cast(
        pa.int32()
    )
    return pa.Array.from_buffers(
        pa.binary(), len(array), [validity, halves.buffers()[1], pa.py_buffer(whole)]
    )
