"""An order-independent checksum over the content of many rows.

Every bit of a value counts: floats are compared as stored, so -0.0 differs from 0.0 and NaNs differ
by their bits. The shape of nested values counts too. DuckDB's hash is equal for a null list, an
empty list and a list of one null, for a null struct and a struct of nulls, and for `[[1], [2]]` and
`[[1, 2]]`. Therefore a list is hashed with its length, and a struct with a presence flag.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LENGTH_BITS = 32
_ITEMS = 1
"""Where the items of a list are, after their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    rows: int = 0
    total: int = 0
    """The sum of the row hashes."""

    def __add__(self, other: Digest) -> Digest:
        return Digest(rows=self.rows + other.rows, total=self.total + other.total)


class Checksum:
    def __init__(self) -> None:
        self._engine = duckdb.connect(":memory:", config={"threads": 1})

    def of(self, batch: pa.Table) -> Digest:
        """Columns are identified by position, because DuckDB ignores the case of names."""
        places = [f"c{at}" for at in range(batch.num_columns)]
        plain = [
            pa.chunked_array(map(stored, column.chunks), _stored_type(column.type))
            for column in batch.columns
        ]
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
    """The array with every leaf as plain numbers or bytes, and the shape of every nested value."""
    return _stored(array, count(1))


def _stored(array: pa.Array, places: Iterator[int]) -> pa.Array:
    """`places` numbers the lists and structs of a type."""
    target = _stored_type(array.type)
    if target == array.type:
        return array
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pa.types.is_struct(array.type):
        present = _mark(array.is_valid(), next(places))
        children = [_stored(array.field(at), places) for at in range(array.type.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays([present, *children], fields=list(target), mask=mask)
    if pa.types.is_list(array.type):
        place = next(places)
        return _list(array, target, place, _stored(array.values, places))
    if pa.types.is_map(array.type):
        place = next(places)
        fields = list(target.field(_ITEMS).type.value_type)
        entries = [_stored(array.keys, places), _stored(array.items, places)]
        child = pa.StructArray.from_arrays(entries, fields=fields)
        return _list(array, target, place, child)
    return array.view(target)


def _list(array: pa.Array, target: pa.StructType, place: int, child: pa.Array) -> pa.Array:
    items = pa.Array.from_buffers(
        target.field(_ITEMS).type,
        len(array),
        array.buffers()[:2],
        array.null_count,
        array.offset,
        [child],
    )
    length = _mark(pc.list_value_length(items), place)
    return pa.StructArray.from_arrays([length, items], fields=list(target))


def _mark(shape: pa.Array, place: int) -> pa.Array:
    """Adds the position: DuckDB combines hashes so that two equal ones, such as those of a list
    inside another, cancel out."""
    return pc.add(shape.cast(pa.int64()), place << _LENGTH_BITS)


def _stored_type(type_: pa.DataType) -> pa.DataType:
    types = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        return type_.storage_type
    if types.is_struct(type_):
        # Numbered, because DuckDB ignores the case of names.
        fields = [pa.field(f"f{at}", _stored_type(field.type)) for at, field in enumerate(type_)]
        return pa.struct([pa.field("present", pa.int64()), *fields])
    if types.is_list(type_):
        return _list_type(_stored_type(type_.value_type))
    if types.is_map(type_):
        key, item = _stored_type(type_.key_type), _stored_type(type_.item_type)
        return _list_type(pa.struct([pa.field("key", key), pa.field("value", item)]))
    if types.is_floating(type_) or types.is_temporal(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    return type_


def _list_type(of: pa.DataType) -> pa.StructType:
    return pa.struct([pa.field("length", pa.int64()), pa.field("items", pa.list_(of))])
