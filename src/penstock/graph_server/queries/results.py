"""Encodes query results: Arrow unchanged, JSON by columns.

Flat columns become Python lists a column at a time and the JSON writer does the rest; only what a
client must see otherwise than Arrow has it (a node without other labels' properties, a map as an
object) is rebuilt value by value.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
import pyarrow as pa
from pyarrow import types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.graphdb.contract import GraphSchema, Result

    Entity: TypeAlias = dict[str, Any]
    """A node or an edge: `_id`, `_label` or `_type`, and properties of all types that there are."""
    Rebuild: TypeAlias = Callable[[Any], object]
    """Makes of a value of one Arrow type what clients see."""

ARROW = "application/vnd.apache.arrow.stream"
BATCH_ROWS = 65_536
NESTED_ROWS = 2_048
JSON_ROWS = 1_024
"""Rows turned into JSON in one go: neither Arrow nor the JSON writer lets another thread in before
it is done, and other queries must not wait. Nodes and other nested values take many times longer
than flat ones, so a stream has fewer of those in a batch, too."""
_WHOLE = frozenset({"INT8", "INT16", "INT32", "INT64"})
_FLAT = frozenset("STRING INT64 DOUBLE BOOL DATE TIMESTAMP INTERVAL UUID BLOB".split())  # noqa: SIM905
RESERVED = frozenset({"_id", "_label", "_type", "_src", "_dst"})
_DAY = timedelta(days=1)
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_OPTIONS = (
    orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The properties, with their types, that a node has by its label and an edge by its type.

    Engines give those of all that could match, and one that has several types among them as text.
    """

    labels: Mapping[str, Mapping[str, str]]
    types: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, schema: GraphSchema, written: Callable[[str], Mapping[str, str]]) -> Own:
        """`written` gives the properties that algorithms added to a label."""
        labels = {
            table.label: {p.name: p.type for p in table.columns} | dict(written(table.label))
            for table in schema.nodes
        }
        types = {
            name: {p.name: p.type for pair in schema.pairs(name) for p in pair.properties}
            for name in schema.edge_types
        }
        return cls(labels=labels, types=types)

    def only(self, entity: Entity, as_text: frozenset[str]) -> Entity:
        kinds = (
            self.labels.get(entity["_label"])
            if "_label" in entity
            else self.types.get(entity["_type"])
        )
        if kinds is None:
            return entity
        for name in as_text & kinds.keys():
            if kinds[name] in _WHOLE and entity[name] is not None:
                entity[name] = int(entity[name])
        return {name: value for name, value in entity.items() if name in kinds or name in RESERVED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: bytes
    row_count: int
    truncated: bool


def fetch(result: Result, *, max_rows: int, own: Own, check: Callable[[], None]) -> Rows:
    """At most `max_rows`, as JSON by now; `check` is called between two pieces, to stop it."""
    pieces: list[bytes] = []
    left = max_rows
    for batch in result.batches(min(JSON_ROWS, max_rows)):
        check()
        taken = batch.slice(0, left)
        left -= len(taken)
        if len(taken):
            pieces.append(_rows(taken, own))
        if not left:
            break
    return Rows(
        columns=result.columns,
        types=result.types,
        rows=joined(pieces),
        row_count=max_rows - left,
        truncated=result.rows > max_rows,
    )


def _rows(batch: pa.RecordBatch, own: Own) -> bytes:
    return dump(list(zip(*(values(column, own) for column in batch.columns), strict=True)))


def joined(lists: Sequence[bytes]) -> bytes:
    """One JSON list of several, none of which is empty."""
    return b"[" + b",".join(memoryview(part)[1:-1] for part in lists) + b"]"


def encode(rows: Rows, *, milliseconds: int) -> bytes:
    body = {
        "columns": rows.columns,
        "column_types": rows.types,
        "rows": orjson.Fragment(rows.rows),
        "row_count": rows.row_count,
        "execution_time_ms": milliseconds,
        "truncated": rows.truncated,
    }
    return dump(body)


def dump(body: object) -> bytes:
    return orjson.dumps(body, default=_plain, option=_OPTIONS)


def warm() -> None:
    """Arrow looks for pandas when it first meets a list, which takes a second where there is one:
    not of a query."""
    pa.array([1]).to_numpy()


def stream_rows(result: Result) -> int:
    """How many rows a batch of a stream has."""
    return BATCH_ROWS if _FLAT.issuperset(result.types) else NESTED_ROWS


def arrow_stream(batches: Iterator[pa.RecordBatch]) -> Iterator[memoryview | bytes]:
    """The bytes of an Arrow stream, a batch at a time."""
    first = True
    for batch in batches:
        if first:
            yield memoryview(batch.schema.serialize())
            first = False
        yield memoryview(batch.serialize())
    yield _END_OF_STREAM


def values(column: pa.Array, own: Own) -> list[Any]:
    kind = column.type
    if (types.is_integer(kind) or types.is_floating(kind)) and not column.null_count:
        flat: list[object] = column.to_numpy(zero_copy_only=False).tolist()
        return flat
    if types.is_timestamp(kind) and kind.unit == "ns":
        # Python's moments have microseconds.
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    try:
        items: list[object] = column.to_pylist()
    except (OverflowError, ValueError, SystemError):
        # A day or moment beyond the years of Python. A list in a list gives a SystemError for it.
        items = [_spelled(value) for value in column]
    rebuild = _rebuilder(kind, own)
    return (
        items if rebuild is None else [None if value is None else rebuild(value) for value in items]
    )


def _spelled(value: pa.Scalar) -> object:
    """The value, with a text in the place of each day and moment beyond the years of Python."""
    kind = value.type
    if not value.is_valid:
        return None
    if types.is_map(kind):
        return [(_spelled(pair["key"]), _spelled(pair["value"])) for pair in value.values]
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return [_spelled(item) for item in value.values]
    if types.is_struct(kind):
        return {name: _spelled(item) for name, item in value.items()}
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return value.cast(pa.string()).as_py()


def _rebuilder(kind: pa.DataType, own: Own) -> Rebuild | None:
    """The conversion of a value of this type for JSON; None if unchanged."""
    if types.is_map(kind):
        inner = _rebuilder(kind.item_type, own)
        return lambda pairs: {_key(k): inner(v) if inner and v is not None else v for k, v in pairs}
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        convert = _rebuilder(kind.value_type, own)
        return (
            None
            if convert is None
            else lambda items: [None if i is None else convert(i) for i in items]
        )
    if types.is_struct(kind):
        return _struct(kind, own)
    return None


def _struct(kind: pa.DataType, own: Own) -> Rebuild | None:
    inside = {field.name: _rebuilder(field.type, own) for field in kind}
    special = {name: rebuild for name, rebuild in inside.items() if rebuild is not None}
    is_entity = inside.keys() >= {"_id", "_label"} or inside.keys() >= {"_id", "_type"}
    if not special and not is_entity:
        return None
    as_text = frozenset(field.name for field in kind if types.is_string(field.type))

    def rebuilt(value: Entity) -> Entity:
        for name, rebuild in special.items():
            if value[name] is not None:
                value[name] = rebuild(value[name])
        return own.only(value, as_text) if is_entity else value

    return rebuilt


def _key(key: object) -> object:
    return _plain(key) if isinstance(key, bytes | Decimal | timedelta) else key


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return duration(value)
    return str(value)


def duration(length: timedelta) -> str:
    """ISO 8601, in days and seconds."""
    sign, length = ("-", -length) if length < timedelta(0) else ("", length)
    seconds = (
        f"{length.seconds}.{length.microseconds:06}".rstrip("0").rstrip(".")
        if length % _DAY
        else ""
    )
    days = f"{length.days}D" if length.days or not seconds else ""
    return f"{sign}P{days}" + (f"T{seconds}S" if seconds else "")
