"""Three vocabularies of types: Arrow's, the embedded engines' own, and the wire's, which clients
see."""

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


def engine_type(declared: str, found: pa.DataType | None, column: str) -> str:
    """What the engine calls a column: a plain type as it was declared, a nested one as its files
    have it."""
    if declared in _DECLARED:
        return declared
    if found is None:
        raise SchemaRefused(
            f"Column {column} is {declared}, and nothing says what is inside.", column=column
        )
    return nested(found, column)


def nested(found: pa.DataType, column: str = "") -> str:
    """The engine's name for an Arrow type."""
    if found in _ENGINE:
        return _ENGINE[found]
    if _is_text(found) or types.is_null(found) or types.is_decimal(found) or types.is_time(found):
        return "STRING"
    if types.is_binary(found) or types.is_large_binary(found) or types.is_fixed_size_binary(found):
        return "BLOB"
    if types.is_timestamp(found):
        return "TIMESTAMP"
    if types.is_duration(found):
        return "INTERVAL"
    if types.is_dictionary(found):
        return nested(found.value_type, column)
    if types.is_map(found):
        return f"MAP({nested(found.key_type, column)}, {nested(found.item_type, column)})"
    if types.is_struct(found):
        return f"STRUCT({', '.join(f'{quoted(f.name)} {nested(f.type, column)}' for f in found)})"
    if types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found):
        return f"{nested(found.value_type, column)}[]"
    raise SchemaRefused(
        f"Column {column} is {found}, which no graph engine can hold.", column=column
    )


def wire_type(engine: str) -> str:
    """What clients are told of an engine's type."""
    if match := _ARRAY.search(engine):
        return f"LIST<{wire_type(engine[: match.start()])}>"
    for compound in ("STRUCT", "MAP"):
        if engine.startswith(f"{compound}("):
            return compound
    return engine if engine in _SAME else _WIRE.get(engine, "ANY")


def loadable(found: pa.DataType, declared: str = "") -> pa.DataType:
    """The type in which the embedded engines read a column from Parquet; itself for nearly all."""
    if declared == "UUID" and found == pa.binary(16):
        return pa.uuid()
    if types.is_timestamp(found) and found.unit == "ns":
        return pa.timestamp("us", found.tz)
    if types.is_decimal(found) or types.is_time(found):
        return pa.string()
    if types.is_map(found):
        return pa.map_(loadable(found.key_type), loadable(found.item_type))
    if types.is_struct(found):
        return pa.struct([f.with_type(loadable(f.type)) for f in found])
    if types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found):
        inner = loadable(found.value_type)
        return found if inner == found.value_type else pa.list_(inner)
    return found


def quoted(name: str) -> str:
    """A name that may be a keyword; one with a backtick cannot be written at all."""
    if "`" in name or not name:
        raise SchemaRefused(
            f"{name[:80]!r} cannot be a name in a graph.", hint="Use letters, digits and _."
        )
    return f"`{name}`"


def _is_text(found: pa.DataType) -> bool:
    return bool(
        types.is_string(found) or types.is_large_string(found) or types.is_string_view(found)
    )
