"""Map Trino's types to Arrow types that represent them exactly.

A type that Arrow cannot represent exactly (picoseconds, a time with a zone, intervals) becomes the
text that Trino prints. A type without a text form (sketches, tiles) is rejected by name, before the
query runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from penstock.sources.errors import SourceQueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FIXED = {
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "integer": pa.int32(),
    "real": pa.float32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "unknown": pa.null(),
}
_TEXTS = frozenset(
    {
        "char",
        "geometry",
        "interval day to second",
        "interval year to month",
        "ipaddress",
        "json",
        "number",
        "sphericalgeography",
        "time with time zone",
        "uuid",
        "varchar",
    }
)
ZONED = "timestamp with time zone"


class Argument(TypedDict):
    """An argument of a type; what `value` is depends on `kind` (LONG, TYPE, NAMED_TYPE)."""

    kind: str
    value: Any


class Signature(TypedDict):
    """Trino's `typeSignature`."""

    rawType: str
    arguments: list[Argument]


class Described(TypedDict):
    """A column as a response describes it; `type` is for people."""

    name: str
    type: str
    typeSignature: Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class TrinoType:
    """A type signature: `numbers` are precision, scale or length, `children` the nested types."""

    name: str
    numbers: tuple[int, ...] = ()
    children: tuple[tuple[str, TrinoType], ...] = ()

    @property
    def precision(self) -> int:
        return self.numbers[0] if self.numbers else 3

    @property
    def nested(self) -> bool:
        return bool(self.children)

    @property
    def zoned(self) -> bool:
        """Whether it contains a zoned timestamp to convert to UTC; picoseconds stay text."""
        here = self.name == ZONED and self.precision <= 9
        return here or any(child.zoned for _, child in self.children)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A result column; `arrow` is its output type."""

    name: str
    type: TrinoType
    arrow: pa.DataType


def parse(signature: Signature) -> TrinoType:
    numbers: list[int] = []
    children: list[tuple[str, TrinoType]] = []
    for argument in signature["arguments"]:
        value = argument["value"]
        match argument["kind"]:
            case "LONG":
                numbers.append(value)
            case "TYPE":
                children.append(("", parse(value)))
            case "NAMED_TYPE":
                name = (value.get("fieldName") or {}).get("name")
                children.append((name or f"field{len(children)}", parse(value["typeSignature"])))
    return TrinoType(
        name=signature["rawType"].lower(), numbers=tuple(numbers), children=tuple(children)
    )


def arrow_type(kind: TrinoType) -> pa.DataType:
    match kind.name:
        case name if name in _FIXED:
            return _FIXED[name]
        case name if name in _TEXTS:
            return pa.string()
        case "date":
            return pa.date32()
        case "decimal":
            return pa.decimal128(*kind.numbers)
        case "varbinary":
            return pa.binary()
        case "time":
            return pa.string() if kind.precision > 9 else pa.time64(_unit(kind))
        case "timestamp":
            return pa.string() if kind.precision > 9 else pa.timestamp(_unit(kind))
        case name if name == ZONED:
            return pa.string() if kind.precision > 9 else pa.timestamp(_unit(kind), tz="UTC")
        case "array" | "map" | "row":
            return _nested(kind)
        case name:
            raise SourceQueryError(
                f"Trino's type {name} has no exact Arrow type.",
                hint="Cast the column to varchar in the query.",
            )


def _unit(kind: TrinoType) -> str:
    return "us" if kind.precision <= 6 else "ns"


def _nested(kind: TrinoType) -> pa.DataType:
    parts = [(name, arrow_type(child)) for name, child in kind.children]
    match kind.name:
        case "array":
            return pa.list_(parts[0][1])
        case "map" if kind.children[0][1].nested:
            raise SourceQueryError(
                "A map whose keys are arrays, maps or rows has no exact form in Trino's protocol.",
                hint="Select map_entries(column) in the query.",
            )
        case "map":
            return pa.map_(parts[0][1], parts[1][1])
        case _:
            return pa.struct(parts)


def columns(described: Iterable[Described]) -> tuple[Column, ...]:
    """The columns of a response; duplicate names are rejected, because a file cannot have them."""
    columns = tuple(_column(item["name"], parse(item["typeSignature"])) for item in described)
    names = Counter(column.name for column in columns)
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise SourceQueryError(
            f"The query has more than one column named {', '.join(twice)}.",
            hint="Give each column a unique name with AS.",
        )
    return columns


def _column(name: str, kind: TrinoType) -> Column:
    return Column(name=name, type=kind, arrow=arrow_type(kind))


def schema(of: Sequence[Column]) -> pa.Schema:
    return pa.schema([(column.name, column.arrow) for column in of])


def shape(of: Sequence[Column]) -> list[tuple[str, object]]:
    """Names and types without zones, to compare a query before and after `in_utc`."""
    return [(c.name, c.type.name if c.type.nested else _without_zone(c.arrow)) for c in of]


def read_type(arrow: pa.DataType) -> pa.DataType:
    """The type to parse a scalar's text as: base64 is text, a timestamp has no zone and is UTC."""
    return pa.string() if pa.types.is_binary(arrow) else _without_zone(arrow)


def _without_zone(arrow: pa.DataType) -> pa.DataType:
    return pa.timestamp(arrow.unit) if pa.types.is_timestamp(arrow) else arrow
