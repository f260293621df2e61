"""The rows of breaks, out of the very files that were read: both come in order, so they are laid
side by side.

Nothing is read ahead: the reader would hold all of a file's bytes, and take longer for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.engines.column_names import restored
from penstock.engines.contract import ROW_BITS
from penstock.engines.plain_types import plain

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from pathlib import Path

_BATCH = 50_000


def free_name(name: str, prefix: str, taken: Container[str]) -> str:
    """A name that is not taken: itself, or with the prefix as often as it needs."""
    while name in taken:
        name = f"{prefix}_{name}"
    return name


def _taken(column: pa.Array, kind: pa.DataType, places: pa.Array) -> pa.Array:
    """Rows of a column as another type. Arrow takes nothing out of views: those are cast first."""
    if _has_views(column.type):
        return restored(column, kind).take(places)
    return restored(column.take(places), kind)


def _has_views(kind: pa.DataType) -> bool:
    parts = [kind.field(place).type for place in range(kind.num_fields)]
    view = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return view or any(map(_has_views, parts))


class BreakRows:
    """`told` has the row's place first, in order, then what is told of each break. A column of
    the files by one of its names is called `source_…`."""

    def __init__(self, files: Sequence[Path], told: pa.RecordBatchReader) -> None:
        self._files = files
        self._told = told
        self._source = plain(pq.read_schema(files[0]))
        ours = list(told.schema)[1:]
        names = {field.name for field in ours}
        others = {*self._source.names, *names}
        renamed = {name: free_name(name, "source", others) for name in names}
        theirs = [field.with_name(renamed.get(field.name, field.name)) for field in self._source]
        self.schema = pa.schema([*theirs, *ours])
        self._waiting = pa.Table.from_batches([], told.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for number, file in enumerate(self._files):
            first = number << ROW_BITS
            with pq.ParquetFile(file, pre_buffer=False) as parquet:
                for batch in parquet.iter_batches(_BATCH, use_threads=False):
                    told = self._before(first + batch.num_rows)
                    if told.num_rows:
                        yield self._beside(batch, told, first)
                    first += batch.num_rows

    def _before(self, end: int) -> pa.Table:
        """What is told of rows up to a place."""
        while not self._waiting.num_rows or self._waiting.column(0)[-1].as_py() < end:
            batch = next(iter(self._told), None)
            if batch is None:
                break
            self._waiting = pa.concat_tables([self._waiting, pa.Table.from_batches([batch])])
        count = pc.sum(pc.less(self._waiting.column(0), end)).as_py() or 0
        told, self._waiting = self._waiting.slice(0, count), self._waiting.slice(count)
        return told

    def _beside(self, batch: pa.RecordBatch, told: pa.Table, first: int) -> pa.RecordBatch:
        places = pc.subtract(told.column(0).combine_chunks(), first)
        types = self._source.types
        theirs = [_taken(c, kind, places) for c, kind in zip(batch.columns, types, strict=True)]
        ours = [told.column(number).combine_chunks() for number in range(1, told.num_columns)]
        return pa.RecordBatch.from_arrays([*theirs, *ours], schema=self.schema)
