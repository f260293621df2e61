"""Converts type names between Arrow, the embedded engines and the wire format."""

from __future__ import annotations

import re

import pyarrow as pa
from pyarrow import types

from penstock.graphdb.errors import SchemaRefused

_ENGINE = {
    pa.bool_(): "BOOL",
    pa.int8(): "INT8",
    pa.int16(): "INT16",
    pa.int32(): "INT32",
    pa.int64(): "INT64",
    pa.uint8(): "UINT8",
    pa.uint16(): "UINT16",
    pa.uint32(): "UINT32",
    pa.uint64(): "UINT64",
    pa.float16(): "FLOAT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.date64(): "DATE",
    pa.uuid(): "UUID",
}
_DECLARED = frozenset(
    "STRING INT64 INT32 INT16 INT8 DOUBLE FLOAT DATE TIMESTAMP BOOL BLOB UUID".split()  # noqa: SIM905
)
_WIRE = {
    "SERIAL": "INT64",
    "INT128": "INT64",
    "UINT64": "INT64",
    "INT8": "INT64",
    "INT16": "INT64",
    "INT32": "INT64",
    "UINT8": "INT64",
    "UINT16": "INT64",
    "UINT32": "INT64",
    "FLOAT": "DOUBLE",
    "RECURSIVE_REL": "PATH",
    "INTERNAL_ID": "STRING",
    "TIMESTAMP_NS": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_SEC": "TIMESTAMP",
    "TIMESTAMP_TZ": "TIMESTAMP",
}
_SAME = frozenset("STRING INT64 DOUBLE BOOL DATE TIMESTAMP INTERVAL UUID BLOB NODE REL".split())  # noqa: SIM905
_ARRAY = re.compile(r"\[\d*\]$")


def engine_type(declared: str, arrow: pa.DataType | None, column: str) -> str:
    """The engine's type of a column: a scalar type as declared, a nested one as in its files."""
    if declared in _DECLARED:
        return declared
    if arrow is None:
        raise SchemaRefused(
            f"Column {column} is {declared}, but its item types are unknown.", column=column
        )
    return nested(arrow, column)


def nested(arrow: pa.DataType, column: str = "") -> str:
    """The engine's name for an Arrow type."""
    if arrow in _ENGINE:
        return _ENGINE[arrow]
    if _is_text(arrow) or types.is_null(arrow) or types.is_decimal(arrow) or types.is_time(arrow):
        return "STRING"
    if types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow):
        return "BLOB"
    if types.is_timestamp(arrow):
        return "TIMESTAMP"
    if types.is_duration(arrow):
        return "INTERVAL"
    if types.is_dictionary(arrow):
        return nested(arrow.value_type, column)
    if types.is_map(arrow):
        return f"MAP({nested(arrow.key_type, column)}, {nested(arrow.item_type, column)})"
    if types.is_struct(arrow):
        return f"STRUCT({', '.join(f'{quoted(f.name)} {nested(f.type, column)}' for f in arrow)})"
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return f"{nested(arrow.value_type, column)}[]"
    raise SchemaRefused(
        f"Column {column} is {arrow}, which no graph engine supports.", column=column
    )


def wire_type(engine: str) -> str:
    """The wire type of an engine's type."""
    if match := _ARRAY.search(engine):
        return f"LIST<{wire_type(engine[: match.start()])}>"
    for compound in ("STRUCT", "MAP"):
        if engine.startswith(f"{compound}("):
            return compound
    return engine if engine in _SAME else _WIRE.get(engine, "ANY")


def loadable(arrow: pa.DataType, declared: str = "") -> pa.DataType:
    """The type as which the embedded engines can read a column from Parquet; usually the same."""
    if declared == "UUID" and arrow == pa.binary(16):
        return pa.uuid()
    if types.is_timestamp(arrow) and arrow.unit == "ns":
        return pa.timestamp("us", arrow.tz)
    if types.is_decimal(arrow) or types.is_time(arrow):
        return pa.string()
    if types.is_map(arrow):
        return pa.map_(loadable(arrow.key_type), loadable(arrow.item_type))
    if types.is_struct(arrow):
        return pa.struct([f.with_type(loadable(f.type)) for f in arrow])
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        inner = loadable(arrow.value_type)
        return arrow if inner == arrow.value_type else pa.list_(inner)
    return arrow


def quoted(name: str) -> str:
    """The name in backticks, since it may be a keyword; a backtick in it cannot be escaped."""
    if "`" in name or not name:
        raise SchemaRefused(
            f"{name[:80]!r} cannot be a name in a graph.", hint="Use letters, digits and _."
        )
    return f"`{name}`"


def _is_text(arrow: pa.DataType) -> bool:
    return bool(
        types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow)
    )
