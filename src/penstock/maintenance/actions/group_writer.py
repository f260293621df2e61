"""Writes the rows of a file group into new files and verifies that no row changed.

Memory is bounded: one batch is read and one row group buffered, however large the table is. Rows
are counted and checksummed while reading; the written files are read back and must match.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import _get_parquet_writer_kwargs
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from penstock.maintenance.actions.model import MB, Action
from penstock.maintenance.errors import ContentDiffers, Refused
from penstock.maintenance.tables.commit.file_statistics import (
    FileStatistics,
    NanCounter,
    StatisticsPlan,
    footer_statistics,
)
from penstock.maintenance.tables.layout.row_order import read_order
from penstock.maintenance.tables.layout.sorting import in_order
from penstock.maintenance.tables.layout.z_curve import ZCurve, sampled
from penstock.maintenance.tables.reading.content import DeleteIndex
from penstock.maintenance.tables.reading.data_file_reader import DataFileReader
from penstock.maintenance.tables.reading.file_schema import file_schema
from penstock.maintenance.tables.reading.positions import positions_by_path
from penstock.maintenance.tables.verification.checksum import Checksum, Digest
from penstock.maintenance.tables.verification.independent_readers import IndependentReaders
from penstock.maintenance.tables.verification.promises import check_promises

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.actions.compaction_plan import Group
    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.layout.row_order import RowOrder
    from penstock.maintenance.tables.layout.sorting import Keys

LARGEST_INT = 2**31 - 1
_LEAST = {
    "data_page_size": ("write.parquet.page-size-bytes", 1),
    "dictionary_pagesize_limit": ("write.parquet.dict-size-bytes", 0),
    "write_batch_size": ("write.parquet.page-row-limit", 1),
}
"""Table properties with their minimum; below it, Arrow loops for ever or aborts the process."""
ROW_GROUP_BYTES, LEAST_ROW_GROUP_BYTES = 32 * MB, MB // 16
CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
SAMPLE_ROWS = 10_000
REPEATED = 0.5
"""Columns with a smaller share of distinct values in the sample are dictionary encoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    group: Group
    files: tuple[DataFile, ...]
    rows: int

    @property
    def bytes(self) -> int:
        return sum(file.file_size_in_bytes for file in self.files)


def discard(table: Table, files: tuple[DataFile, ...]) -> None:
    """Delete new files; only for files that no commit can reference."""
    for file in files:
        with suppress(OSError):
            table.io.delete(file.file_path)


class GroupWriter:
    """Writes the rows of a group into new files and verifies that they are the same rows."""

    def __init__(self, table: Table, context: ActionContext, action: Action, target: int) -> None:
        self._table = table
        self._context = context
        self._target = target
        self._arrow = file_schema(table.schema())
        self._statistics = StatisticsPlan.of(table.schema(), table.properties)
        self._order = read_order(table, self._arrow, action.text("sort_order"))
        self._reader = DataFileReader(table, self._arrow)
        self._others = IndependentReaders(table, self._arrow, self._reader)
        self._checked: set[tuple[bytes, bool]] = set()
        self._checksum = Checksum()
        self._number = 0

    def close(self) -> None:
        self._checksum.close()

    def write(self, group: Group) -> Rewritten:
        """Rewrite a group; on any error the new files are deleted."""
        files: list[_Written] = []
        deleted = self._deleted(group)
        try:
            read = self._write(group, deleted, files)
            self._context.step("files_written")
            self._verify(group, deleted, files, read)
        except BaseException:
            discard(self._table, tuple(output.file for output in files))
            raise
        return Rewritten(group=group, files=tuple(output.file for output in files), rows=read.rows)

    def check_independently(self, rewritten: Rewritten) -> None:
        """Let independent readers check the smallest file of a rewritten group."""
        if rewritten.files:
            self._others.check(min(rewritten.files, key=_size), (), None)

    def _deleted(self, group: Group) -> Mapping[str, pa.ChunkedArray]:
        return positions_by_path(self._table.io, group.deletes, group.inputs)

    def _write(
        self, group: Group, deleted: Mapping[str, pa.ChunkedArray], files: list[_Written]
    ) -> Digest:
        read = Digest()
        share = group.bytes / group.outputs(self._target)
        part: _Part | None = None
        try:
            for rows in self._row_groups(group, deleted, share):
                read += self._checksum.of(rows)
                if part is None:
                    part = _Part(self._table, self._location(), rows, self._statistics)
                part.write(rows)
                del rows
                pa.default_memory_pool().release_unused()
                self._context.check()
                if part.size >= share:
                    files.append(part.close(group, self._order_id))
                    part = None
            if part is not None:
                files.append(part.close(group, self._order_id))
                part = None
        finally:
            if part is not None:
                part.abort()
        return read

    def _row_groups(
        self, group: Group, deleted: Mapping[str, pa.ChunkedArray], share: float
    ) -> Iterator[pa.Table]:
        limit = int(min(ROW_GROUP_BYTES, max(LEAST_ROW_GROUP_BYTES, share / 2)))
        batches = self._batches(group, deleted)
        if self._order is not None:
            batches = self._ordered(group, batches, self._order)
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

    def _batches(
        self, group: Group, deleted: Mapping[str, pa.ChunkedArray]
    ) -> Iterator[pa.RecordBatch]:
        for entry in group.inputs:
            self._context.check()
            file = entry.data_file
            yield from self._reader.batches(file, deleted.get(file.file_path))

    def _ordered(
        self, group: Group, batches: Iterator[pa.RecordBatch], order: RowOrder
    ) -> Iterator[pa.RecordBatch]:
        if order.curve:
            curve = ZCurve(self._sample(group, order.curve))
            return self._sorted(
                batches,
                lambda batch: [curve.places([batch.column(at) for at in order.curve])],
                ["ASC"],
            )
        ways = [term.way for term in order.terms]
        return self._sorted(
            batches, lambda batch: [batch.column(term.column) for term in order.terms], ways
        )

    def _sorted(
        self, batches: Iterator[pa.RecordBatch], keys: Keys, ways: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        return in_order(batches, keys, ways, check=self._context.check)

    def _sample(self, group: Group, columns: tuple[int, ...]) -> list[pa.Array]:
        """Includes deleted rows, which do not matter for a sample."""
        files = (entry.data_file for entry in group.inputs)
        batches = (batch for file in files for batch in self._reader.columns(file, columns))
        return sampled(batches, group.rows)

    def _verify(
        self,
        group: Group,
        deleted: Mapping[str, pa.ChunkedArray],
        files: Sequence[_Written],
        read: Digest,
    ) -> None:
        self._check_inputs(group, deleted)
        inputs = [entry.data_file for entry in group.inputs]
        gone = sum(pc.count_distinct(positions).as_py() for positions in deleted.values())
        check_promises(
            inputs, [output.statistics for output in files], self._statistics.leaves, gone
        )
        written = Digest()
        for output in files:
            with self._table.io.new_input(output.file.file_path).open() as source:
                parquet = pq.ParquetFile(source)
                for number in range(parquet.num_row_groups):
                    self._context.check()
                    written += self._checksum.of(parquet.read_row_group(number, use_threads=False))
        if written != read:
            raise ContentDiffers(
                f"The written files differ from their inputs ({read.rows} rows read, "
                f"{written.rows} rows written).",
                hint="Nothing was committed. Report the table, and keep its files.",
            )

    def _check_inputs(self, group: Group, deleted: Mapping[str, pa.ChunkedArray]) -> None:
        """Let independent readers check the smallest file of each layout, with and without deleted
        rows."""
        index = DeleteIndex(group.deletes)
        for entry in sorted(group.inputs, key=lambda entry: _size(entry.data_file)):
            file = entry.data_file
            positions = deleted.get(file.file_path)
            kind = self._reader.layout(file).key, positions is not None
            if kind not in self._checked:
                self._context.check()
                deletes = [] if positions is None else index.applying_to(entry)
                self._others.check(file, [delete.data_file for delete in deletes], positions)
                self._checked.add(kind)

    @property
    def _order_id(self) -> int | None:
        return None if self._order is None else self._order.order_id

    def _location(self) -> str:
        self._number += 1
        name = f"{self._context.name}/{self._number:05d}.parquet"
        return f"{data_root(self._table)}/{name}"


def _pieces(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    rows = max(1, limit * batch.num_rows // max(1, batch.nbytes))
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _size(file: DataFile) -> int:
    return file.file_size_in_bytes


def data_root(table: Table) -> str:
    return str(
        table.properties.get("write.data.path") or f"{table.location().rstrip('/')}/data"
    ).rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    file: DataFile
    statistics: FileStatistics


class _Part:
    """A Parquet file that is being written."""

    def __init__(self, table: Table, location: str, first: pa.Table, plan: StatisticsPlan) -> None:
        self._table = table
        self._plan = plan
        self._nans = NanCounter(plan.leaves)
        self._output = table.io.new_output(location)
        self._sink = self._output.create(overwrite=True)
        try:
            self._writer = pq.ParquetWriter(
                self._sink,
                first.schema,
                store_decimal_as_integer=True,
                use_dictionary=_repetitive(first),
                **_options(table.properties),
            )
        except ValueError as e:
            self.abort()
            raise Refused(f"The table's Parquet properties are not supported: {e}") from e

    def write(self, rows: pa.Table) -> None:
        self._nans.add(rows)
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def close(self, group: Group, order_id: int | None) -> _Written:
        self._writer.close()
        self._sink.close()
        statistics = footer_statistics(
            self._writer.writer.metadata, self._plan.leaves, self._nans.groups
        )
        arguments = self._plan.arguments(statistics) | {"sort_order_id": order_id}
        file = data_file(self._output.location, len(self._output), group, arguments)
        return _Written(file=file, statistics=statistics)

    def abort(self) -> None:
        with suppress(Exception):
            self._sink.close()
        with suppress(OSError):
            self._table.io.delete(self._output.location)


def _options(properties: Mapping[str, str]) -> dict[str, Any]:
    options = _get_parquet_writer_kwargs(dict(properties))
    codec = str(options["compression"]).lower()
    if codec not in CODECS:
        raise ValueError(
            f"the compression {options['compression']!r} is none of {', '.join(CODECS)}"
        )
    for name, (property_name, least) in _LEAST.items():
        if not least <= options[name] <= LARGEST_INT:
            raise ValueError(
                f"{property_name} is {options[name]:.6g}, not from {least} to {LARGEST_INT}"
            )
    return options | {"compression_level": _level(codec, options["compression_level"])}


def _level(codec: str, level: int | None) -> int | None:
    """None where the codec has no levels. Java also ignores the level then, and a table keeps its
    level when the codec is changed.
    """
    if level is None or codec == "none" or not pa.Codec.supports_compression_level(codec):
        return None
    low, high = (
        pa.Codec.minimum_compression_level(codec),
        pa.Codec.maximum_compression_level(codec),
    )
    if not low <= level <= high:
        raise ValueError(f"the level of {codec} is {level:.6g}, not from {low} to {high}")
    return level


def _repetitive(rows: pa.Table) -> bool | list[str]:
    """The columns to dictionary encode; True (all) if nested columns make names ambiguous."""
    if any(pa.types.is_nested(field.type) for field in rows.schema):
        return True
    sample = rows.slice(0, SAMPLE_ROWS)
    plain = {name: _plain(sample[name]) for name in sample.column_names}
    distinct = {
        name: pc.count_distinct(values, mode="all").as_py() for name, values in plain.items()
    }
    return [name for name, count in distinct.items() if count < REPEATED * sample.num_rows]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array(
            [chunk.storage for chunk in column.chunks], column.type.storage_type
        )
    return column


def data_file(path: str, size: int, group: Group, statistics: Mapping[str, Any]) -> DataFile:
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=group.partition,
        file_size_in_bytes=size,
        equality_ids=None,
        key_metadata=None,
        **statistics,
    )
    file.spec_id, _ = group.key
    return file
