"""Map BigQuery's types to Arrow, and cast batches to the mapped schema.

The Storage Read API sends every NUMERIC as decimal128(38, 9) and every BIGNUMERIC as decimal256(76,
38). A column declared with a precision gets exactly that one; the cast fails rather than lose
digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Required, TypeAlias, TypedDict

import pyarrow as pa

from penstock.sources.batch_checks import distinct
from penstock.sources.errors import SourceError, SourceQueryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Field(TypedDict, total=False):
    """A column of a table, or a part of one, as BigQuery describes it."""

    name: Required[str]
    type: Required[str]
    mode: str
    fields: list[Field]
    rangeElementType: Field
    precision: str
    scale: str
    defaultValueExpression: str


Fields: TypeAlias = "Sequence[Field]"

_SIMPLE: Mapping[str, pa.DataType] = {
    "BOOL": pa.bool_(),
    "BOOLEAN": pa.bool_(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
    "DATETIME": pa.timestamp("us"),
    "FLOAT": pa.float64(),
    "FLOAT64": pa.float64(),
    "GEOGRAPHY": pa.string(),
    "INT64": pa.int64(),
    "INTEGER": pa.int64(),
    "JSON": pa.string(),
    "STRING": pa.string(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}
_DECIMALS: Mapping[str, pa.DataType] = {
    "BIGDECIMAL": pa.decimal256(76, 38),
    "BIGNUMERIC": pa.decimal256(76, 38),
    "DECIMAL": pa.decimal128(38, 9),
    "NUMERIC": pa.decimal128(38, 9),
}
_DECIMAL128_DIGITS = 38


def schema_of(fields: Fields) -> pa.Schema:
    distinct([field["name"] for field in fields])
    return pa.schema([(field["name"], _type(field)) for field in fields])


def cast_to_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the types of the schema."""
    if batch.schema.names != schema.names:
        raise SourceError("BigQuery sent different columns than it described.")
    try:
        arrays = [
            column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise SourceError(f"BigQuery sent a value that does not fit its column: {e}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _type(field: Field) -> pa.DataType:
    one = _element(field)
    return pa.list_(pa.field("item", one)) if field.get("mode") == "REPEATED" else one


def _element(field: Field) -> pa.DataType:
    kind = field["type"]
    if kind in ("RECORD", "STRUCT"):
        return pa.struct([(child["name"], _type(child)) for child in field["fields"]])
    if kind == "RANGE":
        ends = _element(field["rangeElementType"])
        return pa.struct([("start", ends), ("end", ends)])
    if kind in _DECIMALS:
        return _decimal(kind, field)
    if kind not in _SIMPLE:
        raise SourceQueryError(
            f"Column {field.get('name', '')} is {kind}, which Parquet cannot store.",
            hint=f"CAST({field.get('name', 'it')} AS STRING)",
        )
    return _SIMPLE[kind]


def _decimal(kind: str, field: Field) -> pa.DataType:
    if "precision" not in field:
        return _DECIMALS[kind]
    precision, scale = int(field["precision"]), int(field.get("scale", 0))
    return (pa.decimal128 if precision <= _DECIMAL128_DIGITS else pa.decimal256)(precision, scale)
