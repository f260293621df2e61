"""The rows of breaks, out of the very files that were read: both come in order, so they are laid side by side.

Nothing is read ahead: the reader would hold all of a file's bytes, and take longer for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.engines.contract import ROW_BITS
from penstock.engines.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BATCH = 50_000


class BreakRows:
    """`told` has `_id` first, in order, then what is told of each break. A column of the files by one of its names is
    called `source_…`."""

    def __init__(self, files: Sequence[Path], told: pa.RecordBatchReader) -> None:
        self._files = files
        self._told = told
        self._source = plain(pq.read_schema(files[0]))
        ours = [field for field in told.schema if field.name != "_id"]
        names = {field.name for field in ours}
        theirs = [
            pa.field(f"source_{field.name}" if field.name in names else field.name, field.type)
            for field in self._source
        ]
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
        rows = batch.take(places)
        theirs = [rows.column(field.name).cast(field.type) for field in self._source]
        ours = [told.column(number).combine_chunks() for number in range(1, told.num_columns)]
        return pa.RecordBatch.from_arrays([*theirs, *ours], schema=self.schema)
