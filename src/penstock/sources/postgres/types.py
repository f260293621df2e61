"""The output types of PostgreSQL columns: exact and storable in Parquet.

The server scales a numeric of up to 18 digits to an integer, which is read as int8 and
reinterpreted as a decimal; that takes 0.6 of the client's CPU time for text. Wider numerics are
read as text and parsed. A numeric without precision (every `sum`, `avg` or product is one) becomes
`decimal128(38, 9)`, and a value that does not fit exactly is an error that names the column. The
same applies to numeric arrays, whose precision the driver does not report.

Types that Parquet lacks are read as PostgreSQL's text: intervals in ISO 8601, uuid, inet, ranges,
composites and all others. Arrays have one dimension: the driver would silently flatten more, so the
query makes the server raise an error for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sources import batch_checks
from penstock.sources.batch_checks import Range
from penstock.sources.errors import SourceQueryError
from penstock.sources.single_table import bare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SCALED_DIGITS = 18
_DECIMAL128_DIGITS = 38
_DECIMAL256_DIGITS = 76
_UNTYPED = pa.decimal128(38, 9)

_PLAIN = {
    *(
        "bool",
        "bpchar",
        "bytea",
        "char",
        "date",
        "float4",
        "float8",
        "int2",
        "int4",
        "int8",
        "name",
        "text",
        "time",
    ),
    *("timestamp", "timestamptz", "varchar"),
}
_FIRST_DAY = -2_440_588  # 24 November 4714 BC; the infinities wrap to below it
REAL = Range(date32=(_FIRST_DAY, 2**31 - 1), timestamp=(_FIRST_DAY * 86_400_000_000, 2**63 - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """One column: its SQL expression, its Arrow type, and the conversion of the raw array."""

    name: str
    expression: str
    kind: pa.DataType
    convert: Callable[[pa.Array], pa.Array] | None = None


def output_columns(raw: pa.Schema) -> Sequence[OutputColumn]:
    """The columns of a prepared query, from the driver's schema."""
    if not raw.names:
        raise SourceQueryError(
            "Sources are read-only: the query must be exactly one SELECT with columns."
        )
    batch_checks.distinct(raw.names)
    return [_column(field) for field in raw]


def schema_of(columns: Sequence[OutputColumn]) -> pa.Schema:
    return pa.schema([(column.name, column.kind) for column in columns])


def query(columns: Sequence[OutputColumn], sql: str) -> str:
    asked = ", ".join(f"{column.expression} AS {quoted(column.name)}" for column in columns)
    return f"SELECT {asked} FROM (\n{bare(sql, 'postgres')}\n) AS q"


def convert(
    columns: Sequence[OutputColumn], schema: pa.Schema, batch: pa.RecordBatch
) -> pa.RecordBatch:
    arrays = [
        _converted(column, array) for column, array in zip(columns, batch.columns, strict=True)
    ]
    return batch_checks.finite(pa.RecordBatch.from_arrays(arrays, schema=schema), REAL)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def scaled_names(columns: Sequence[OutputColumn]) -> list[str]:
    return [
        column.name
        for column in columns
        if column.convert is not None and column.expression.endswith("::int8")
    ]


def _converted(column: OutputColumn, array: pa.Array) -> pa.Array:
    if column.convert is None:
        return array
    try:
        return column.convert(array)
    except pa.ArrowInvalid:
        raise SourceQueryError(
            f"Column {column.name} has a numeric value that does not fit {column.kind} exactly.",
            hint="Cast it in the query, for example "
            f"{quoted(column.name)}::numeric(38, 15), or to text.",
        ) from None


def _column(field: pa.Field) -> OutputColumn:
    name, source = quoted(field.name), (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if source == "numeric":
        return _numeric(field)
    if source in {"json", "jsonb"}:
        return OutputColumn(
            name=field.name, expression=name, kind=pa.string(), convert=lambda array: array.storage
        )
    if source == "oid":
        return OutputColumn(name=field.name, expression=f"{name}::int8", kind=pa.int64())
    if source == "money":
        return OutputColumn(
            name=field.name, expression=f"{name}::numeric", kind=_UNTYPED, convert=_parsed(_UNTYPED)
        )
    if pa.types.is_list(field.type):
        return _array(field, source)
    if source in _PLAIN or field.type == pa.string():
        return OutputColumn(name=field.name, expression=name, kind=field.type)
    return OutputColumn(name=field.name, expression=f"{name}::text", kind=pa.string())


def _numeric(field: pa.Field) -> OutputColumn:
    name, kind = quoted(field.name), _decimal(field)
    if kind.precision > _SCALED_DIGITS:
        return OutputColumn(name=field.name, expression=name, kind=kind, convert=_parsed(kind))
    return OutputColumn(
        name=field.name,
        expression=f"({name} * 1{'0' * kind.scale})::int8",
        kind=kind,
        convert=_scaled(kind),
    )


def _decimal(field: pa.Field) -> pa.DataType:
    """Decode the type modifier minus 4: precision in the high 16 bits, scale in 11 signed bits."""
    modifier = int(field.metadata.get(b"POSTGRESQL:typmod", b"-1")) - 4
    if modifier < 0:
        return _UNTYPED
    precision, scale = modifier >> 16 & 0xFFFF, ((modifier & 0x7FF) ^ 0x400) - 0x400
    precision, scale = max(precision - min(scale, 0), scale), max(scale, 0)
    if precision > _DECIMAL256_DIGITS:
        raise SourceQueryError(
            f"Column {field.name} has {precision} digits, more than a decimal can represent.",
            hint="Cast it to text.",
        )
    return (
        pa.decimal128(precision, scale)
        if precision <= _DECIMAL128_DIGITS
        else pa.decimal256(precision, scale)
    )


def _scaled(kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """Reinterpret scaled integers as decimals; both have the same bits."""
    return lambda array: array.view(pa.decimal64(kind.precision, kind.scale)).cast(kind)


def _parsed(kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    return lambda array: pc.cast(array.storage, kind)


def _array(field: pa.Field, source: str) -> OutputColumn:
    element, name = source.removeprefix("_"), quoted(field.name)
    if element == "numeric":
        kind = pa.list_(_UNTYPED)
        return OutputColumn(
            name=field.name,
            expression=_flat(field.name, source),
            kind=kind,
            convert=_parsed_list(kind),
        )
    if element in _PLAIN:
        return OutputColumn(name=field.name, expression=_flat(field.name, source), kind=field.type)
    if pa.types.is_struct(field.type.value_type):
        return OutputColumn(name=field.name, expression=f"{name}::text", kind=pa.string())
    text = f"{name}::text[]"
    return OutputColumn(
        name=field.name, expression=_flat(field.name, "_text", text), kind=pa.list_(pa.string())
    )


def _flat(name: str, kind: str, value: str | None = None) -> str:
    """The array; for more dimensions, a cast whose error message names the column."""
    column = quoted(name)
    words = f"column {name} has an array of more than one dimension: ".replace("'", "''")
    return (
        f"CASE WHEN array_ndims({column}) > 1 THEN ('{words}' || array_dims({column}))::{kind}"
        f" ELSE {value or column} END"
    )


def _parsed_list(kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    def parse(array: pa.ListArray) -> pa.Array:
        values = pc.cast(array.values.storage, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())

    return parse
