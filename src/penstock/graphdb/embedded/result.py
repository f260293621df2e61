"""Query results of the embedded engines, converted to the contract's record batches."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
from pyarrow import types

from penstock.graphdb.errors import CypherError
from penstock.graphdb.typenames import wire_type
from penstock.kit import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.graphdb.embedded.library import LibraryResult
    from penstock.graphdb.embedded.shapes import Shapes

_SAMPLED_ROWS = 32
_GROWTH = 2.5
"""Buffers double when they are full, and the old one is kept until it is copied."""
_INTERNAL = frozenset({"_dst", "_id", "_label", "_nodes", "_rels", "_src"})


class EmbeddedResult:
    """A `Result` that wraps the library's own, which the engine has computed completely."""

    def __init__(self, result: LibraryResult, shapes: Shapes, *, nested_arrow: bool) -> None:
        self._result = result
        self._shapes = shapes
        self.columns: tuple[str, ...] = tuple(result.get_column_names())
        engine = result.get_column_data_types()
        self.types = tuple(wire_type(name) for name in engine)
        self.rows = result.get_num_tuples()
        self._by_rows = not nested_arrow and any(map(is_broken_in_arrow, engine))

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        raw = self._from_rows(size) if self._by_rows else self._from_arrow(size)
        yield from (self._shapes.batch(batch, self.columns) for batch in raw)

    def _from_arrow(self, size: int) -> Iterator[pa.RecordBatch]:
        """The library exports all or nothing, so its own copy is closed at once, and each batch is
        released as soon as it is taken."""
        table = _narrowed(self._table(size))
        self._result.close()
        left = deque(table.to_batches() if self.rows else [_empty(table.schema)])
        del table
        while left:
            yield left.popleft()

    def _table(self, size: int) -> pa.Table:
        self._check_size()
        try:
            return self._result.get_as_arrow(size, fallbackExtensionTypes=True)
        except (pa.ArrowException, RuntimeError) as e:
            raise CypherError(
                f"The result cannot be converted: {e}.", hint="Nest its lists and structs less."
            ) from e

    def close(self) -> None:
        self._result.close()

    def _check_size(self) -> None:
        """The library exports a result at once, and crashes where an allocation fails. So a result
        that would not fit is refused first, estimated by the width of its first rows."""
        left = memory.left_bytes() if self.rows > _SAMPLED_ROWS else None
        if left is None:
            return
        sample = self._result.get_n(_SAMPLED_ROWS)
        self._result.reset_iterator()
        needed = sum(map(width, sample)) * self.rows * _GROWTH / len(sample)
        if needed > left:
            raise MemoryError(f"about {int(needed)} bytes of results, {left} left")

    def _from_rows(self, size: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from row_batches(self._result, size)
        except (pa.ArrowException, RuntimeError) as e:
            raise CypherError(
                f"The result cannot be converted: {e}.", hint="Nest its lists and structs less."
            ) from e


def row_batches(result: LibraryResult, size: int) -> Iterator[pa.RecordBatch]:
    """A library's result, read by its row interface; the columns are named 0, 1, 2 …"""
    schema = _schema(result, size)
    if not result.get_num_tuples():
        yield _empty(schema)
    result.reset_iterator()
    while rows := result.get_n(size):
        columns = [
            pa.array([as_stored(row[i], field.type) for row in rows], field.type)
            for i, field in enumerate(schema)
        ]
        names = [str(i) for i in range(len(columns))]
        yield pa.RecordBatch.from_arrays([_narrow(column) for column in columns], names=names)


def _schema(result: LibraryResult, size: int) -> pa.Schema:
    """Once all rows are read, the Arrow export contains the schema alone."""
    while result.get_n(size):
        continue
    return result.get_as_arrow(size, fallbackExtensionTypes=True).schema


def is_broken_in_arrow(engine: str) -> bool:
    """Whether Ryugraph's Arrow export of an engine's type is wrong where some values are null: a
    struct loses its fields, a UUID becomes another row's or crashes the process."""
    return any(word in engine for word in ("STRUCT(", "NODE", "REL", "UUID"))


def as_stored(value: object, kind: pa.DataType) -> object:
    """A value of the library's row interface, in the form that Arrow's builder accepts."""
    if value is None:
        return None
    if types.is_struct(kind) and isinstance(value, dict):
        by_name = {
            name.upper() if name in _INTERNAL else name: item for name, item in value.items()
        }
        return {field.name: as_stored(by_name.get(field.name), field.type) for field in kind}
    if types.is_map(kind) and isinstance(value, dict):
        return [
            (as_stored(k, kind.key_type), as_stored(v, kind.item_type)) for k, v in value.items()
        ]
    if isinstance(value, list) and (types.is_list(kind) or types.is_fixed_size_list(kind)):
        return [as_stored(item, kind.value_type) for item in value]
    return str(value) if isinstance(value, UUID) else value


def width(value: object) -> int:
    """Estimated bytes of a value of the library's row interface in Arrow."""
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
    """Sums of integers have 128 bits; the column is narrowed to 64 where its values fit, also
    inside lists, structs and maps."""
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
