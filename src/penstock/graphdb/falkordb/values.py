"""FalkorDB values: parameters as escaped literals, and result values as Arrow columns."""

from __future__ import annotations

import base64
import math
import re
from datetime import date, datetime, time
from typing import TYPE_CHECKING, cast
from uuid import UUID

import orjson
import pyarrow as pa
from dateutil.relativedelta import relativedelta

from penstock.graphdb.errors import CypherError
from penstock.graphdb.typenames import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SPECIAL = re.compile(r"['\\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS: Mapping[type, tuple[str, pa.DataType]] = {
    bool: ("BOOL", pa.bool_()),
    int: ("INT64", pa.int64()),
    float: ("DOUBLE", pa.float64()),
    str: ("STRING", pa.string()),
    date: ("DATE", pa.date32()),
    datetime: ("TIMESTAMP", pa.timestamp("us")),
}
_TEXTS = frozenset({time, relativedelta})
"""Types without an Arrow equivalent that are converted to text."""
_LEAST, _MOST = -(2**63), 2**63 - 1
_INFINITY = "1e400"
"""Its parser reads this as infinite; there is no literal for infinity."""


def prefix(parameters: Mapping[str, object]) -> str:
    """The parameters as `CYPHER a=1 b='x' `, which precedes the statement."""
    for name in parameters:
        if not _NAME.fullmatch(name):
            raise CypherError(f"{name[:80]!r} cannot be the name of a parameter.")
    return (
        f"CYPHER {' '.join(f'{name}={literal(value)}' for name, value in parameters.items())} "
        if parameters
        else ""
    )


def literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool() | int() | float():
            return _number(value)
        case str() | UUID():
            return _text(str(value))
        case datetime() | date():
            return _text(value.isoformat())
        case bytes():
            return _text(base64.b64encode(value).decode())
        case list() | tuple():
            return f"[{','.join(literal(item) for item in value)}]"
        case dict():
            return f"{{{','.join(f'{quoted(str(k))}:{literal(v)}' for k, v in value.items())}}}"
    raise CypherError(f"A parameter is a {type(value).__name__}, which FalkorDB does not support.")


def _number(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            raise CypherError(
                "FalkorDB does not accept NaN as a parameter.",
                hint="Write toFloat('nan') in the query.",
            )
        return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}{_INFINITY}"
    if not _LEAST <= value <= _MOST:
        raise CypherError(
            "A parameter has a value that the engine cannot store.", hint="Integers have 64 bits."
        )
    return str(value)


def _text(value: str) -> str:
    if "\x00" in value:
        raise CypherError("FalkorDB cannot store a text with a zero byte.")
    return "'" + _SPECIAL.sub(r"\\\g<0>", value) + "'"


def column(values: Sequence[object]) -> tuple[str, pa.Array]:
    """A column of plain values and its wire type. Values without a common type become JSON."""
    kinds = {_kind(value) for value in values if value is not None}
    if kinds == {int, float}:
        kinds = {float}
    if not kinds:
        return "STRING", pa.nulls(len(values), pa.string())
    if kinds <= _TEXTS:
        return "STRING", pa.array([None if v is None else _as_text(v) for v in values], pa.string())
    if len(kinds) == 1 and (kind := kinds.pop()) in _SCALARS:
        name, arrow = _SCALARS[kind]
        return name, pa.array([_of(kind, value) for value in values], arrow)
    if all(value is None or isinstance(value, list) for value in values):
        return _lists(cast("Sequence[list[object] | None]", values))
    return _documents(values)


def _of(kind: type, value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return float(value) if kind is float and isinstance(value, int | float) else value


def _kind(value: object) -> type:
    return bool if isinstance(value, bool) else type(value)


def _lists(values: Sequence[list[object] | None]) -> tuple[str, pa.Array]:
    name, inner = column([item for value in values if value is not None for item in value])
    offsets, end = [0], 0
    for value in values:
        end += len(value or ())
        offsets.append(end)
    mask = pa.array([value is None for value in values])
    return f"LIST<{name}>", pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), inner, mask=mask
    )


def _documents(values: Sequence[object]) -> tuple[str, pa.Array]:
    maps = [value for value in values if isinstance(value, dict)]
    if len(maps) == sum(value is not None for value in values):
        names = list(dict.fromkeys(name for value in maps for name in value))
        fields = {
            name: column([v.get(name) if isinstance(v, dict) else None for v in values])[1]
            for name in names
        }
        mask = pa.array([value is None for value in values])
        return "MAP", pa.StructArray.from_arrays(
            list(fields.values()), names=list(fields), mask=mask
        )
    texts = [None if v is None else orjson.dumps(v, default=_as_text).decode() for v in values]
    return "ANY", pa.array(texts, pa.string())


def _as_text(value: object) -> str:
    match value:
        case time():
            return value.isoformat()
        case relativedelta():
            return _duration(value)
    return str(value)


def _duration(length: relativedelta) -> str:
    """ISO 8601 with a sign for each part, as the server writes it."""
    days = {"Y": length.years, "M": length.months, "D": length.days}
    seconds = {"H": length.hours, "M": length.minutes, "S": length.seconds}
    day_part, time_part = (
        "".join(f"{count}{unit}" for unit, count in parts.items() if count)
        for parts in (days, seconds)
    )
    if not day_part and not time_part:
        return "PT0S"
    return f"P{day_part}" + (f"T{time_part}" if time_part else "")
