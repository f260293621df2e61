"""Choose the Parquet encoding of each column.

pyarrow tries a dictionary on every column, which costs half of the CPU and bytes where values do
not repeat. Here a column gets a dictionary only if a sample of its first rows is repetitive.
Integers (and what Parquet stores as integers: times, dates, decimals of up to 18 digits) can be
delta-packed instead, which is the smallest; the embedded graph engines decode that wrongly, so it
is off for files that they read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE_ROWS = 32_768
REPETITIVE = 0.05

_WHOLE = {"INT32", "INT64"}
_OPTIONS = {
    "compression": "zstd",
    "compression_level": 1,
    "version": "2.6",
    "store_decimal_as_integer": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encodings:
    """Leaf paths by encoding, as Parquet names them (`tags.list.element`)."""

    dictionary: tuple[str, ...]
    delta: tuple[str, ...]

    def open(self, sink: object, schema: pa.Schema) -> pq.ParquetWriter:
        delta = dict.fromkeys(self.delta, "DELTA_BINARY_PACKED")
        return pq.ParquetWriter(
            sink,
            schema,
            use_dictionary=list(self.dictionary),
            column_encoding=delta or None,
            **_OPTIONS,
        )


def choose(sample: pa.Table, *, delta_packed: bool) -> Encodings:
    """`delta_packed` allows DELTA_BINARY_PACKED for integers; only for readers that decode it as
    specified."""
    delta, dictionary = [], []
    rows = sample.slice(0, SAMPLE_ROWS).combine_chunks()
    values = [leaf for column in rows.columns for leaf in _leaves(_whole(column))]
    for (path, physical), leaf in zip(_leaf_paths(sample.schema), values, strict=True):
        if delta_packed and physical in _WHOLE:
            delta.append(path)
        elif physical != "BOOLEAN" and _repeats(leaf):
            dictionary.append(path)
    return Encodings(dictionary=tuple(dictionary), delta=tuple(delta))


def _leaf_paths(schema: pa.Schema) -> list[tuple[str, str]]:
    """Paths and physical types of the leaves, taken from an empty Parquet file."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, **_OPTIONS).close()
    columns = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return [(columns.column(i).path, columns.column(i).physical_type) for i in range(len(columns))]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """The flat arrays of a nested array, in the order of Parquet's leaves."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(values.storage)
    elif pa.types.is_map(kind):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif pa.types.is_struct(kind):
        for field in values.flatten():
            yield from _leaves(field)
    elif hasattr(values, "flatten"):
        yield from _leaves(values.flatten())
    else:
        yield values


def _repeats(leaf: pa.Array) -> bool:
    try:
        distinct: int = pc.count_distinct(leaf).as_py()
    except pa.ArrowNotImplementedError:
        return False
    return distinct < REPETITIVE * len(leaf)
