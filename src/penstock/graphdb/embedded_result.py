"""A query's answer from an embedded engine, as the contract wants it."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
from pyarrow import types

from penstock.graphdb.errors import CypherError
from penstock.graphdb.typenames import wire_type
from penstock.kit import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.graphdb.shapes import Shapes

_SAMPLED_ROWS = 32
_GROWTH = 2.5
"""Buffers double when they are full, and the old one is there until it was copied."""
_INTERNAL = frozenset({"_dst", "_id", "_label", "_nodes", "_rels", "_src"})


class EmbeddedResult:
    """A `Result` on the library's own, which the engine has made whole by now."""

    def __init__(self, found: Any, shapes: Shapes, *, nested_arrow: bool) -> None:
        self._found = found
        self._shapes = shapes
        self.columns: tuple[str, ...] = tuple(found.get_column_names())
        engine: list[str] = found.get_column_data_types()
        self.types = tuple(wire_type(name) for name in engine)
        self.rows: int = found.get_num_tuples()
        self._by_rows = not nested_arrow and any(map(is_broken_in_arrow, engine))

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        raw = self._from_rows(size) if self._by_rows else self._from_arrow(size)
        yield from (self._shapes.batch(batch, self.columns) for batch in raw)

    def _from_arrow(self, size: int) -> Iterator[pa.RecordBatch]:
        """The library gives all or nothing, so its own copy goes at once, and each batch as soon as
        it was taken."""
        found = _narrowed(self._table(size))
        self._found.close()
        left = deque(found.to_batches() if self.rows else [_empty(found.schema)])
        del found
        while left:
            yield left.popleft()

    def _table(self, size: int) -> pa.Table:
        self._check_size()
        try:
            return self._found.get_as_arrow(size, fallbackExtensionTypes=True)
        except (pa.ArrowException, RuntimeError) as e:
            raise CypherError(
                f"The answer cannot be told: {e}.", hint="Nest its lists and structs less."
            ) from e

    def close(self) -> None:
        self._found.close()

    def _check_size(self) -> None:
        """The library makes all of a result at once, and crashes where an allocation fails. So what
        would not fit is refused before, by the width of the first rows."""
        left = memory.left_bytes() if self.rows > _SAMPLED_ROWS else None
        if left is None:
            return
        sample = self._found.get_n(_SAMPLED_ROWS)
        self._found.reset_iterator()
        needed = sum(map(width, sample)) * self.rows * _GROWTH / len(sample)
        if needed > left:
            raise MemoryError(f"about {int(needed)} bytes of results, {left} left")

    def _from_rows(self, size: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from row_batches(self._found, size)
        except (pa.ArrowException, RuntimeError) as e:
            raise CypherError(
                f"The answer cannot be told: {e}.", hint="Nest its lists and structs less."
            ) from e


def row_batches(found: Any, size: int) -> Iterator[pa.RecordBatch]:
    """A result of the library by its row interface; its columns are called 0, 1, 2 …"""
    schema = _schema(found, size)
    if not found.get_num_tuples():
        yield _empty(schema)
    found.reset_iterator()
    while rows := found.get_n(size):
        columns = [
            pa.array([as_stored(row[i], field.type) for row in rows], field.type)
            for i, field in enumerate(schema)
        ]
        names = [str(i) for i in range(len(columns))]
        yield pa.RecordBatch.from_arrays([_narrow(column) for column in columns], names=names)


def _schema(found: Any, size: int) -> pa.Schema:
    """Once all rows were read, the Arrow export has nothing left to export wrongly but the schema."""
    while found.get_n(size):
        continue
    return found.get_as_arrow(size, fallbackExtensionTypes=True).schema


def is_broken_in_arrow(engine: str) -> bool:
    """Whether Ryugraph exports values of an engine's type wrongly where some are null: a struct
    loses what is in it, a UUID becomes another row's or crashes the process."""
    return any(word in engine for word in ("STRUCT(", "NODE", "REL", "UUID"))


def as_stored(value: Any, kind: pa.DataType) -> Any:
    """A value of the library's row interface, as Arrow's builder of that type takes it."""
    if value is None:
        return None
    if types.is_struct(kind):
        by_name = {
            name.upper() if name in _INTERNAL else name: item for name, item in value.items()
        }
        return {field.name: as_stored(by_name.get(field.name), field.type) for field in kind}
    if types.is_map(kind):
        return [
            (as_stored(k, kind.key_type), as_stored(v, kind.item_type)) for k, v in value.items()
        ]
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return [as_stored(item, kind.value_type) for item in value]
    return str(value) if isinstance(value, UUID) else value


def width(value: object) -> int:
    """Bytes that a value of the library's row interface takes in Arrow, about."""
    match value:
        case str() | bytes():
            return len(value) + 8
        case list() | tuple():
            return 8 + sum(map(width, value))
        case dict():
            return sum(map(width, value.values()))
    return 9


def _narrowed(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        narrow = _narrow(table.column(i))
        if narrow.type != field.type:
            table = table.set_column(i, field.name, narrow)
    return table


def _narrow(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Sums of whole numbers have 128 bits; where 64 are enough, as nearly always, the column has
    64, also inside lists, structs and maps."""
    narrow = _narrow_type(values.type)
    if narrow != values.type:
        with suppress(pa.ArrowInvalid):
            return values.cast(narrow)
    return values


def _narrow_type(kind: pa.DataType) -> pa.DataType:
    if types.is_decimal(kind):
        return pa.int64() if kind.scale == 0 else kind
    if types.is_list(kind):
        return pa.list_(_narrow_field(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(_narrow_field(kind.value_field), kind.list_size)
    if types.is_struct(kind):
        return pa.struct([_narrow_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(_narrow_field(kind.key_field), _narrow_field(kind.item_field))
    return kind


def _narrow_field(field: pa.Field) -> pa.Field:
    return field.with_type(_narrow_type(field.type))


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
