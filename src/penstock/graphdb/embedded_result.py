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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.graphdb.shapes import Shapes

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
        self._by_rows = not nested_arrow and any(_has_struct(name) for name in engine)

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        raw = self._from_rows(size) if self._by_rows else self._from_arrow(size)
        yield from (self._shapes.batch(batch, self.columns) for batch in raw)

    def _from_arrow(self, size: int) -> Iterator[pa.RecordBatch]:
        """The library gives all or nothing, so its own copy goes at once, and each batch as soon as it was taken."""
        found = _narrowed(self._table(size))
        self._found.close()
        left = deque(found.to_batches() if self.rows else [_empty(found.schema)])
        del found
        while left:
            yield left.popleft()

    def _table(self, size: int) -> pa.Table:
        try:
            return self._found.get_as_arrow(size, fallbackExtensionTypes=True)
        except (pa.ArrowException, RuntimeError) as e:
            raise CypherError(f"The answer cannot be told: {e}.", hint="Nest its lists and structs less.") from e

    def close(self) -> None:
        self._found.close()

    def _from_rows(self, size: int) -> Iterator[pa.RecordBatch]:
        schema = self._table(size).schema
        if not self.rows:
            yield _empty(schema)
        self._found.reset_iterator()
        while rows := self._found.get_n(size):
            columns = [
                pa.array([as_stored(row[i], field.type) for row in rows], field.type) for i, field in enumerate(schema)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])


def as_stored(value: Any, kind: pa.DataType) -> Any:
    """A value of the library's row interface, as Arrow's builder of that type takes it."""
    if value is None:
        return None
    if types.is_struct(kind):
        by_name = {name.upper() if name in _INTERNAL else name: item for name, item in value.items()}
        return {field.name: as_stored(by_name.get(field.name), field.type) for field in kind}
    if types.is_map(kind):
        return [(as_stored(k, kind.key_type), as_stored(v, kind.item_type)) for k, v in value.items()]
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return [as_stored(item, kind.value_type) for item in value]
    return str(value) if isinstance(value, UUID) else value


def _narrowed(found: pa.Table) -> pa.Table:
    """Sums of whole numbers have 128 bits; where 64 are enough, as nearly always, the column has 64."""
    for i, field in enumerate(found.schema):
        if types.is_decimal(field.type) and field.type.scale == 0:
            with suppress(pa.ArrowInvalid):
                found = found.set_column(i, field.name, found.column(i).cast(pa.int64()))
    return found


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _has_struct(engine: str) -> bool:
    return any(word in engine for word in ("STRUCT(", "NODE", "REL"))
