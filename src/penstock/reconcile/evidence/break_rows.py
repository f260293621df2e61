"""Rows of breaks, merged from the source files and the reasons: both are in row order, so a merge
join is enough.

Nothing is prefetched: the reader would hold all of a file's bytes, and be slower.
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
    """A name that is not taken: the name itself, or with the prefix as often as needed."""
    while name in taken:
        name = f"{prefix}_{name}"
    return name


def _taken(column: pa.Array, kind: pa.DataType, places: pa.Array) -> pa.Array:
    """Rows of a column, cast to another type. Arrow cannot take from views: those are cast
    first."""
    if _has_views(column.type):
        return restored(column, kind).take(places)
    return restored(column.take(places), kind)


def _has_views(kind: pa.DataType) -> bool:
    parts = [kind.field(place).type for place in range(kind.num_fields)]
    view = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return view or any(map(_has_views, parts))


class BreakRows:
    """`explained` has the row's position first, in order, then the explanation of each break. A
    file column with the same name as one of those is renamed to `source_…`."""

    def __init__(self, files: Sequence[Path], explained: pa.RecordBatchReader) -> None:
        self._files = files
        self._explained = explained
        self._source = plain(pq.read_schema(files[0]))
        ours = list(explained.schema)[1:]
        names = {field.name for field in ours}
        others = {*self._source.names, *names}
        renamed = {name: free_name(name, "source", others) for name in names}
        theirs = [field.with_name(renamed.get(field.name, field.name)) for field in self._source]
        self.schema = pa.schema([*theirs, *ours])
        self._waiting = pa.Table.from_batches([], explained.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for number, file in enumerate(self._files):
            first = number << ROW_BITS
            with pq.ParquetFile(file, pre_buffer=False) as parquet:
                for batch in parquet.iter_batches(_BATCH, use_threads=False):
                    explained = self._before(first + batch.num_rows)
                    if explained.num_rows:
                        yield self._beside(batch, explained, first)
                    first += batch.num_rows

    def _before(self, end: int) -> pa.Table:
        """The explanations of rows before a position."""
        while not self._waiting.num_rows or self._waiting.column(0)[-1].as_py() < end:
            batch = next(iter(self._explained), None)
            if batch is None:
                break
            self._waiting = pa.concat_tables([self._waiting, pa.Table.from_batches([batch])])
        count = pc.sum(pc.less(self._waiting.column(0), end)).as_py() or 0
        explained, self._waiting = self._waiting.slice(0, count), self._waiting.slice(count)
        return explained

    def _beside(self, batch: pa.RecordBatch, explained: pa.Table, first: int) -> pa.RecordBatch:
        places = pc.subtract(explained.column(0).combine_chunks(), first)
        types = self._source.types
        theirs = [_taken(c, kind, places) for c, kind in zip(batch.columns, types, strict=True)]
        ours = [
            explained.column(number).combine_chunks() for number in range(1, explained.num_columns)
        ]
        return pa.RecordBatch.from_arrays([*theirs, *ours], schema=self.schema)
