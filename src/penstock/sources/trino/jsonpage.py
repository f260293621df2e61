"""Parse a page as JSON: slower than `csvpage`, for every page, including nested values.

Values are converted to Arrow column by column and level by level: an array's elements, a map's keys
and a row's fields are columns again, so one set of conversions handles any depth.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sources.errors import SourceError
from penstock.sources.trino import types
from penstock.sources.trino.csvpage import finish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Values: TypeAlias = Sequence[Any]
    """JSON of one type, which the column's type says; Arrow rejects what does not fit it."""


def read(page: bytes, columns: Sequence[types.Column]) -> pa.RecordBatch:
    with _collector_paused():
        try:
            rows = orjson.loads(page)
            values = list(zip(*rows, strict=True)) if rows != [] else [()] * len(columns)
            arrays = [_named(column, array) for column, array in zip(columns, values, strict=True)]
        except (TypeError, ValueError):
            raise SourceError("Trino sent rows that are not a table of JSON values.") from None
    return pa.RecordBatch.from_arrays(arrays, schema=types.schema(columns))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector: rows have no cycles, and scanning them doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _named(column: types.Column, values: Values) -> pa.Array:
    try:
        return _array(values, column.type, column.arrow)
    except (pa.ArrowException, TypeError, OverflowError):
        raise SourceError(
            f"Column {column.name}: a value does not fit {column.arrow}.",
            hint="Cast the column in the query, for example to varchar.",
        ) from None


def _array(values: Values, kind: types.TrinoType, arrow: pa.DataType) -> pa.Array:
    match kind.name:
        case "array":
            return _list(values, kind, arrow)
        case "map":
            return _map(values, kind, arrow)
        case "row":
            return _struct(values, kind, arrow)
        case "double" | "real":
            return pa.array([float(v) if isinstance(v, str) else v for v in values], arrow)
        case "bigint" | "integer" | "smallint" | "tinyint" | "boolean" if any(
            isinstance(v, str) for v in values
        ):
            return pa.array(values, pa.string()).cast(arrow)
        case "bigint" | "integer" | "smallint" | "tinyint" | "boolean" | "unknown":
            return pa.array(values, arrow)
        case _:
            return finish(_parsed(pa.array(values, pa.string()), types.read_type(arrow)), arrow)


def _parsed(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Arrow's cast, with a workaround for text to time, which Arrow lacks."""
    if pa.types.is_time(arrow):
        return (
            pc.binary_join_element_wise("1970-01-01", text, " ")
            .cast(pa.timestamp(arrow.unit))
            .cast(arrow)
        )
    return text.cast(arrow)


def _list(values: Values, kind: types.TrinoType, arrow: pa.DataType) -> pa.Array:
    [(_, element)] = kind.children
    inner = list(chain.from_iterable(v for v in values if v is not None))
    items = _array(inner, element, arrow.value_type)
    return pa.ListArray.from_arrays(_offsets(values), items, type=arrow)


def _map(values: Values, kind: types.TrinoType, arrow: pa.DataType) -> pa.Array:
    (_, key), (_, item) = kind.children
    present = [v for v in values if v is not None]
    keys = _array(list(chain.from_iterable(present)), key, arrow.key_type)
    items = _array(list(chain.from_iterable(v.values() for v in present)), item, arrow.item_type)
    return pa.MapArray.from_arrays(_offsets(values), keys, items, type=arrow)


def _struct(values: Values, kind: types.TrinoType, arrow: pa.DataType) -> pa.Array:
    absent = pa.array([v is None for v in values], pa.bool_())
    fields = [
        _array([None if v is None else v[number] for v in values], child, arrow.field(number).type)
        for number, (_, child) in enumerate(kind.children)
    ]
    return pa.StructArray.from_arrays(fields, fields=list(arrow), mask=absent)


def _offsets(values: Values) -> pa.Array:
    """The offsets of a list array; a null has no offset."""
    ends = list(accumulate((0 if v is None else len(v) for v in values), initial=0))
    starts = [None if v is None else start for v, start in zip(values, ends[:-1], strict=True)]
    return pa.array([*starts, ends[-1]], pa.int32())
