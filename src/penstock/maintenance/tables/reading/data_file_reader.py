"""Reads the rows of a data file in the table's current schema, without deleted rows.

The rewrite's only reader; `verification` compares what it gives with other readers.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.transforms import IdentityTransform

from penstock.maintenance.actions.model import MB
from penstock.maintenance.errors import UnreadableFile
from penstock.maintenance.tables.reading.file_schema import field_id
from penstock.maintenance.tables.reading.projection import Column, identify, missing_values, project

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

BATCH_BYTES = 4 * MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a file stores its rows; cached, because many files share a layout."""

    key: bytes
    schema: pa.Schema
    columns: tuple[Column, ...]
    int96: bool


class DataFileReader:
    def __init__(self, table: Table, target: pa.Schema) -> None:
        """`target` is the schema for written files, with an id on every field."""
        self._table = table
        self._target = target
        mapping = table.metadata.name_mapping()
        self._mapping = None if mapping is None else list(mapping)
        self._layouts: dict[bytes, Layout] = {}

    def batches(self, file: DataFile, deleted: pa.ChunkedArray | None) -> Iterator[pa.RecordBatch]:
        """All rows except those at the `deleted` positions."""
        return (batch for _, batch in self._read(file, self._target, deleted))

    def first(
        self, file: DataFile, deleted: pa.ChunkedArray | None, size: int
    ) -> tuple[pa.Table, int]:
        """The first rows, about `size` bytes without deleted ones, and how many rows of the file
        they cover."""
        batches, count, taken = [], 0, 0
        for rows, batch in self._read(file, self._target, deleted):
            batches.append(batch)
            count += rows
            taken += batch.nbytes
            if taken >= size:
                break
        return pa.Table.from_batches(batches, self._target), count

    def columns(self, file: DataFile, fields: Collection[int]) -> Iterator[pa.RecordBatch]:
        """Some columns by their position in the table, including deleted rows."""
        target = pa.schema([self._target.field(at) for at in fields])
        return (batch for _, batch in self._read(file, target, None))

    def layout(self, file: DataFile) -> Layout:
        with self._opened(file) as parquet:
            return self._layout(parquet)

    def unpacked_bytes(self, file: DataFile) -> int:
        with self._opened(file) as parquet:
            return _unpacked_bytes(parquet)

    def _read(
        self, file: DataFile, target: pa.Schema, deleted: pa.ChunkedArray | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Per batch, the number of rows in the file and the rows that are not deleted."""
        constants = identity_values(self._table, file)
        positions = None if deleted is None else np.unique(deleted.to_numpy())
        with self._opened(file) as parquet:
            names, columns = _selected(parquet, self._layout(parquet).columns, target)
            size = _batch_rows(parquet)
            start = 0
            for batch in parquet.iter_batches(batch_size=size, columns=names, use_threads=False):
                rows = batch.num_rows
                arrays = project(batch.columns, columns, target, rows=rows, constants=constants)
                _check_required(arrays, target)
                projected = pa.RecordBatch.from_arrays(arrays, schema=target)
                yield (
                    rows,
                    projected if positions is None else _without(projected, start, positions),
                )
                start += rows
        if start != file.record_count:
            raise UnreadableFile(
                f"{file.file_path} has {start} rows, but its manifest entry says "
                f"{file.record_count}."
            )

    @contextmanager
    def _opened(self, file: DataFile) -> Iterator[pq.ParquetFile]:
        """INT96 is read in microseconds: 64-bit nanoseconds overflow after the year 2262."""
        try:
            with self._table.io.new_input(file.file_path).open() as source:
                yield pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        except FileNotFoundError as e:
            raise UnreadableFile(f"{file.file_path} is missing.") from e
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
            raise UnreadableFile(f"{file.file_path} cannot be read: {str(e)[:300]}") from e
        except UnreadableFile as e:
            if e.message.startswith(file.file_path):
                raise
            raise UnreadableFile(f"{file.file_path} cannot be read: {e.message}") from e

    def _layout(self, parquet: pq.ParquetFile) -> Layout:
        schema = parquet.schema_arrow
        types = (parquet.schema.column(at).physical_type for at in range(len(parquet.schema)))
        int96 = "INT96" in types
        key = schema.remove_metadata().serialize().to_pybytes() + bytes([int96])
        if key not in self._layouts:
            columns = identify(schema, self._mapping)
            self._layouts[key] = Layout(key=key, schema=schema, columns=columns, int96=int96)
        return self._layouts[key]


def identity_values(table: Table, file: DataFile) -> dict[int | None, object]:
    """Identity partition values by field id; a file may lack the columns it is partitioned by."""
    spec = table.metadata.specs()[file.spec_id]
    return {
        field.source_id: file.partition[at]
        for at, field in enumerate(spec.fields)
        if isinstance(field.transform, IdentityTransform) and file.partition[at] is not None
    }


def _check_required(arrays: Sequence[pa.Array], target: pa.Schema) -> None:
    """A column may have been made required although old rows have nulls in it."""
    for array, field in zip(arrays, target, strict=True):
        if not field.nullable and array.null_count:
            raise missing_values(field)


def _selected(
    parquet: pq.ParquetFile, columns: tuple[Column, ...], target: pa.Schema
) -> tuple[list[str] | None, tuple[Column, ...]]:
    """The columns to read; all columns where names are ambiguous."""
    ids = {field_id(field) for field in target}
    schema = parquet.schema_arrow
    chosen = [at for at, column in enumerate(columns) if column.field_id in ids]
    names = [schema.names[at] for at in chosen]
    plain = len(set(schema.names)) == len(schema.names) and not any("." in name for name in names)
    if len(chosen) == len(columns) or not chosen or not plain:
        return None, columns
    return names, tuple(columns[at] for at in chosen)


def _batch_rows(parquet: pq.ParquetFile) -> int:
    rows = int(parquet.metadata.num_rows)
    return max(1, min(1_000_000, BATCH_BYTES * rows // max(1, _unpacked_bytes(parquet))))


def _unpacked_bytes(parquet: pq.ParquetFile) -> int:
    metadata = parquet.metadata
    groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
    return sum(int(group.total_byte_size) for group in groups)


def _without(
    batch: pa.RecordBatch, start: int, positions: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> pa.RecordBatch:
    inside = positions[(positions >= start) & (positions < start + batch.num_rows)] - start
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[inside] = False
    return batch.filter(pa.array(keep))
