"""The content of many rows as one number that does not depend on their order.

Every bit of a value counts: floats are compared as they are stored, so -0.0 is not 0.0 and one NaN is not another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    rows: int = 0
    total: int = 0
    """The sum of a hash of each row, over all its columns."""

    def __add__(self, other: Digest) -> Digest:
        return Digest(rows=self.rows + other.rows, total=self.total + other.total)


class Checksum:
    def __init__(self) -> None:
        self._engine = duckdb.connect(":memory:", config={"threads": 1})

    def of(self, batch: pa.Table) -> Digest:
        """Columns count by their place: an engine that ignores case would take `a` for `A`."""
        places = [f"c{at}" for at in range(batch.num_columns)]
        plain = [pa.chunked_array(map(stored, column.chunks), _stored_type(column.type)) for column in batch.columns]
        self._engine.register("batch", pa.Table.from_arrays(plain, names=places))
        sql = f"SELECT count(*), coalesce(sum(hash({', '.join(places)})::HUGEINT), 0) FROM batch"
        [(rows, total)] = self._engine.execute(sql).fetchall()
        self._engine.unregister("batch")
        return Digest(rows=rows, total=int(total))

    def all(self, batches: Iterable[pa.Table]) -> Digest:
        return sum((self.of(batch) for batch in batches), Digest())

    def close(self) -> None:
        self._engine.close()


def stored(array: pa.Array) -> pa.Array:
    """The same array with every leaf as plain numbers or bytes."""
    target = _stored_type(array.type)
    if target == array.type:
        return array
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pa.types.is_struct(array.type):
        fields = [stored(array.field(at)) for at in range(array.type.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=mask)
    if pa.types.is_list(array.type):
        return _nested(array, target, stored(array.values))
    if pa.types.is_map(array.type):
        entries = [stored(array.keys), stored(array.items)]
        fields = [target.value_field.type.field(at) for at in range(2)]
        return _nested(array, target, pa.StructArray.from_arrays(entries, fields=fields))
    return array.view(target)


def _nested(array: pa.Array, type_: pa.DataType, child: pa.Array) -> pa.Array:
    own = array.buffers()[:2]
    return pa.Array.from_buffers(type_, len(array), own, array.null_count, array.offset, [child])


def _stored_type(type_: pa.DataType) -> pa.DataType:
    types = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        return type_.storage_type
    if types.is_struct(type_):
        # Numbered: names that differ only in case would be one name for the engine.
        return pa.struct([pa.field(f"f{at}", _stored_type(field.type)) for at, field in enumerate(type_)])
    if types.is_list(type_):
        return pa.list_(_stored_type(type_.value_type))
    if types.is_map(type_):
        key, item = _stored_type(type_.key_type), _stored_type(type_.item_type)
        return pa.list_(pa.struct([pa.field("key", key), pa.field("value", item)]))
    if types.is_floating(type_) or types.is_temporal(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    return type_
