"""The rows of a data file in the table's schema of today, without those that are deleted.

A file that was written with that very schema is read straight through; any other one by the library, which knows how
columns were added, renamed and widened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, _task_to_record_batches, pyarrow_to_schema
from pyiceberg.table import FileScanTask

from penstock.maintenance.action import MB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

BATCH_BYTES = 4 * MB


class DataFileReader:
    def __init__(self, table: Table, written: Schema) -> None:
        """`written` is the schema as files name it, which is the table's but for characters that files do not take."""
        self._table = table
        self._fields = _fields(written)
        self._met: dict[bytes, bool] = {}

    def batches(self, file: DataFile, gone: pa.ChunkedArray | None) -> Iterator[pa.RecordBatch]:
        with self._table.io.new_input(file.file_path).open() as source:
            parquet = pq.ParquetFile(source)
            if self._same(parquet.schema_arrow):
                yield from _straight(parquet, gone)
                return
        yield from self._by_library(file, gone, self._table.schema())

    def columns(self, file: DataFile, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns, in the order in which they are named; of deleted rows too."""
        for batch in self._by_library(file, None, self._table.schema().select(*names)):
            yield batch.select(names)

    def _same(self, schema: pa.Schema) -> bool:
        """Files have few schemas among them, and it takes longer to compare one than to read a small file."""
        known = schema.serialize().to_pybytes()
        if known not in self._met:
            self._met[known] = self._compared(schema)
        return self._met[known]

    def _compared(self, schema: pa.Schema) -> bool:
        metadata = self._table.metadata
        try:
            found = pyarrow_to_schema(
                schema, metadata.name_mapping(), downcast_ns_timestamp_to_us=False, format_version=2
            )
        except (TypeError, ValueError, UnsupportedPyArrowTypeException):
            return False
        return _fields(found) == self._fields

    def _by_library(self, file: DataFile, gone: pa.ChunkedArray | None, schema: Schema) -> Iterator[pa.RecordBatch]:
        metadata = self._table.metadata
        return _task_to_record_batches(
            self._table.io,
            FileScanTask(file),
            AlwaysTrue(),
            schema,
            self._table.schema(),
            schema.field_ids,
            None if gone is None else [gone],
            True,
            metadata.name_mapping(),
            metadata.specs()[file.spec_id],
            metadata.format_version,
        )


def _fields(schema: Schema) -> list[tuple[int, str, str]]:
    return [(field.field_id, field.name, str(field.field_type)) for field in schema.fields]


def _straight(parquet: pq.ParquetFile, gone: pa.ChunkedArray | None) -> Iterator[pa.RecordBatch]:
    rows = max(1, parquet.metadata.num_rows)
    size = sum(parquet.metadata.row_group(i).total_byte_size for i in range(parquet.metadata.num_row_groups))
    deleted = None if gone is None else np.unique(gone.to_numpy())
    start = 0
    for batch in parquet.iter_batches(batch_size=max(1000, BATCH_BYTES * rows // max(1, size)), use_threads=False):
        yield batch if deleted is None else _without(batch, start, deleted)
        start += batch.num_rows


def _without(batch: pa.RecordBatch, start: int, deleted: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.RecordBatch:
    inside = deleted[(deleted >= start) & (deleted < start + batch.num_rows)] - start
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[inside] = False
    return batch.filter(pa.array(keep))
