"""The rows of a group of files, written into new ones and proven to be the same.

Streaming: one batch is read, one row group is gathered, however large the table is. What was read is counted and
summed up, and what was written is read back and must come to the same.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    _get_parquet_writer_kwargs,
    _pyarrow_schema_ensure_small_types,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import sanitize_column_names
from pyiceberg.typedef import Record

from penstock.maintenance.action import MB, Action
from penstock.maintenance.checksum import Checksum, Digest
from penstock.maintenance.data_file_reader import DataFileReader
from penstock.maintenance.errors import ContentDiffers
from penstock.maintenance.positions import positions_by_path
from penstock.maintenance.row_order import read_order
from penstock.maintenance.sorting import in_order
from penstock.maintenance.z_curve import ZCurve, sampled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

    from penstock.maintenance.compaction_plan import Group
    from penstock.maintenance.row_order import RowOrder
    from penstock.maintenance.run import Run
    from penstock.maintenance.sorting import Keys

ROW_GROUP_BYTES, LEAST_ROW_GROUP_BYTES = 32 * MB, MB // 16
SAMPLE_ROWS = 10_000
REPEATED = 0.5
"""A column of whose sample fewer than this are distinct is worth a dictionary; for others it is tried in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    group: Group
    files: tuple[DataFile, ...]
    rows: int


def discard(table: Table, files: tuple[DataFile, ...]) -> None:
    """Only what no commit names for certain."""
    for file in files:
        with suppress(OSError):
            table.io.delete(file.file_path)


class GroupWriter:
    """Writes the rows of a group into new files and proves that they are the same rows."""

    def __init__(self, table: Table, run: Run, action: Action, target: int) -> None:
        self._table = table
        self._run = run
        self._target = target
        self._schema = sanitize_column_names(table.schema())
        self._arrow = _pyarrow_schema_ensure_small_types(schema_to_pyarrow(self._schema, include_field_ids=True))
        self._order = read_order(table, self._arrow, action.options.get("sort_order"))
        self._reader = DataFileReader(table, self._schema)
        self._checksum = Checksum(self._arrow.names)
        self._number = 0

    def close(self) -> None:
        self._checksum.close()

    def write(self, group: Group) -> Rewritten:
        """The files are gone again when anything goes wrong."""
        files: list[DataFile] = []
        try:
            read = self._write(group, files)
            self._run.step("files_written")
            self._verify(files, read)
        except BaseException:
            discard(self._table, tuple(files))
            raise
        return Rewritten(group=group, files=tuple(files), rows=read.rows)

    def _write(self, group: Group, files: list[DataFile]) -> Digest:
        read = Digest()
        share = group.bytes / group.outputs(self._target)
        part: _Part | None = None
        try:
            for rows in self._row_groups(group, share):
                read += self._checksum.of(rows)
                if part is None:
                    part = _Part(self._table, self._location(), rows)
                part.write(rows)
                del rows
                pa.default_memory_pool().release_unused()
                self._run.check()
                if part.size >= share:
                    files.append(part.close(self._schema, group, self._order_id))
                    part = None
            if part is not None:
                files.append(part.close(self._schema, group, self._order_id))
                part = None
        finally:
            if part is not None:
                part.abort()
        return read

    def _row_groups(self, group: Group, share: float) -> Iterator[pa.Table]:
        limit = int(min(ROW_GROUP_BYTES, max(LEAST_ROW_GROUP_BYTES, share / 2)))
        batches = self._batches(group) if self._order is None else self._ordered(group, self._order)
        gathered: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            for piece in _pieces(batch, limit):
                gathered.append(piece)
                size += piece.nbytes
                if size >= limit:
                    yield pa.Table.from_batches(gathered, self._arrow)
                    gathered, size = [], 0
        if gathered:
            yield pa.Table.from_batches(gathered, self._arrow)

    def _batches(self, group: Group) -> Iterator[pa.RecordBatch]:
        paths = [entry.data_file.file_path for entry in group.inputs]
        gone = positions_by_path(self._table.io, [entry.data_file for entry in group.deletes], paths)
        for entry in group.inputs:
            self._run.check()
            for batch in self._reader.batches(entry.data_file, gone.get(entry.data_file.file_path)):
                yield _as(batch, self._arrow)

    def _ordered(self, group: Group, order: RowOrder) -> Iterator[pa.RecordBatch]:
        if order.curve:
            curve = ZCurve(self._sample(group, order.curve))
            return self._sorted(group, lambda batch: [curve.places([batch.column(at) for at in order.curve])], ["ASC"])
        ways = [term.way for term in order.terms]
        return self._sorted(group, lambda batch: [batch.column(term.column) for term in order.terms], ways)

    def _sorted(self, group: Group, keys: Keys, ways: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return in_order(self._batches(group), keys, ways, check=self._run.check)

    def _sample(self, group: Group, columns: tuple[int, ...]) -> list[pa.Array]:
        """Deleted rows too; they do no harm to a sample."""
        names = [self._table.schema().fields[at].name for at in columns]
        batches = (batch for entry in group.inputs for batch in self._reader.columns(entry.data_file, names))
        wanted = pa.schema([self._arrow.field(at) for at in columns])
        return sampled((_as(batch, wanted) for batch in batches), group.rows)

    def _verify(self, files: list[DataFile], read: Digest) -> None:
        written = Digest()
        for file in files:
            with self._table.io.new_input(file.file_path).open() as source:
                parquet = pq.ParquetFile(source)
                for number in range(parquet.num_row_groups):
                    self._run.check()
                    written += self._checksum.of(parquet.read_row_group(number, use_threads=False))
        if written != read:
            raise ContentDiffers(
                f"{read.rows} rows were read and {written.rows} written, or their content differs.",
                hint="Nothing was committed. Say which table it is, and keep its files.",
            )

    @property
    def _order_id(self) -> int | None:
        return None if self._order is None else self._order.order_id

    def _location(self) -> str:
        self._number += 1
        name = f"{self._run.name}/{self._number:05d}.parquet"
        return f"{data_root(self._table)}/{name}"


def _pieces(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    rows = max(1, limit * batch.num_rows // max(1, batch.nbytes))
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, names=schema.names).cast(schema)


def data_root(table: Table) -> str:
    return str(table.properties.get("write.data.path") or f"{table.location().rstrip('/')}/data").rstrip("/")


class _Part:
    """One Parquet file on its way."""

    def __init__(self, table: Table, location: str, first: pa.Table) -> None:
        self._table = table
        self._output = table.io.new_output(location)
        self._sink = self._output.create(overwrite=True)
        self._writer = pq.ParquetWriter(
            self._sink,
            first.schema,
            store_decimal_as_integer=True,
            use_dictionary=_repetitive(first),
            **_get_parquet_writer_kwargs(table.properties),
        )

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def close(self, schema: Schema, group: Group, order_id: int | None) -> DataFile:
        self._writer.close()
        self._sink.close()
        statistics = data_file_statistics_from_parquet_metadata(
            self._writer.writer.metadata,
            compute_statistics_plan(schema, self._table.properties),
            parquet_path_to_id_mapping(schema),
        )
        known = statistics.to_serialized_dict() | {"sort_order_id": order_id}
        return data_file(self._output.location, len(self._output), group, known)

    def abort(self) -> None:
        with suppress(Exception):
            self._sink.close()
        with suppress(OSError):
            self._table.io.delete(self._output.location)


def _repetitive(rows: pa.Table) -> bool | list[str]:
    """The columns that are worth a dictionary; all, where a nested one makes names ambiguous."""
    if any(pa.types.is_nested(field.type) for field in rows.schema):
        return True
    sample = rows.slice(0, SAMPLE_ROWS)
    distinct = {name: pc.count_distinct(sample[name], mode="all").as_py() for name in sample.column_names}
    return [name for name, count in distinct.items() if count < REPEATED * sample.num_rows]


def data_file(path: str, size: int, group: Group, statistics: Mapping[str, Any]) -> DataFile:
    spec_id, partition = group.key
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        file_size_in_bytes=size,
        equality_ids=None,
        key_metadata=None,
        **statistics,
    )
    made.spec_id = spec_id
    return made
