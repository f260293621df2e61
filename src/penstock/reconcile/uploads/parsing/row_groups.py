"""Writes the Parquet file that an upload is stored as, in row groups of a bounded size.

Later readers, a preview in the control plane or a match in a worker, only read files written here
and never a user's own Parquet file: one row group is the most that must fit in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kit.errors import InvalidInput, PayloadTooLarge
from penstock.reconcile.uploads.parsing.limits import MAX_FOOTER_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.reconcile.uploads.parsing.limits import TableLimits

GROUP_BYTES = 32 * 1024 * 1024
GROUP_ROWS = 128 * 1024
_BATCH_ROWS = 4096
_BUFFER_BYTES = 64 * 1024
_TRAILER_BYTES = 8
_MAGIC = b"PAR1"


class RowGroupWriter:
    def __init__(self, path: Path, schema: pa.Schema, limits: TableLimits) -> None:
        limits.check_columns(len(schema))
        self._schema = schema.remove_metadata()
        self._limits = limits
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._batches: list[pa.RecordBatch] = []
        self._waiting_bytes = self._waiting_rows = 0
        self.rows = self.bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        self._limits.check_rows(self.rows)
        for part in _split(batch):
            if self._waiting_bytes + part.nbytes > GROUP_BYTES:
                self.flush()
            self._batches.append(part)
            self._waiting_bytes += part.nbytes
            self._waiting_rows += part.num_rows
            if self._waiting_rows >= GROUP_ROWS:
                self.flush()

    def flush(self) -> None:
        if self._batches:
            arrays = [
                pa.RecordBatch.from_arrays(b.columns, schema=self._schema) for b in self._batches
            ]
            self._writer.write_table(pa.Table.from_batches(arrays, self._schema))
        self._batches = []
        self._waiting_bytes = self._waiting_rows = 0

    def finish(self) -> None:
        self.flush()
        self._writer.close()


def _split(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Halves a batch until each part fits into a row group; a single row cannot be halved."""
    if batch.nbytes <= GROUP_BYTES and batch.num_rows <= GROUP_ROWS:
        return [batch]
    if batch.num_rows <= 1:
        message = f"A row of the file has more than {GROUP_BYTES:,} bytes."
        raise PayloadTooLarge(message, hint="Leave its longest column out.", limit=GROUP_BYTES)
    half = batch.num_rows // 2
    return [*_split(batch.slice(0, half)), *_split(batch.slice(half))]


def rewrite(source: Path, path: Path, limits: TableLimits) -> None:
    """Rewrite an uploaded Parquet file with the same rows and types."""
    try:
        _check_trailer(source)
        with pq.ParquetFile(source, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            _check_footer(file.metadata, source.stat().st_size, limits)
            schema = plain_schema(file.schema_arrow)
            with RowGroupWriter(path, schema, limits) as writer:
                for group in range(file.metadata.num_row_groups):
                    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group]):
                        writer.write(batch.cast(schema))
                        _check_unpacked(writer.bytes, limits)
                writer.finish()
            if writer.rows != file.metadata.num_rows:
                raise _damaged(
                    f"its footer says {file.metadata.num_rows:,} rows, it has {writer.rows:,}"
                )
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as e:
        raise _damaged(str(e)[:200]) from None


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with plain types: a value that many rows share would weigh nothing here and be
    copied for every row by its readers."""
    return pa.schema([field.with_type(_plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.DictionaryType | pa.RunEndEncodedType):
        return _plain(kind.value_type)
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if isinstance(kind, pa.MapType):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type), kind.keys_sorted)
    if isinstance(kind, pa.FixedSizeListType):
        return pa.list_(_plain_field(kind), kind.list_size)
    if isinstance(kind, pa.LargeListType | pa.LargeListViewType):
        return pa.large_list(_plain_field(kind))
    if isinstance(kind, pa.ListType | pa.ListViewType):
        return pa.list_(_plain_field(kind))
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _plain_field(
    kind: pa.FixedSizeListType
    | pa.LargeListType
    | pa.LargeListViewType
    | pa.ListType
    | pa.ListViewType,
) -> pa.Field:
    return kind.value_field.with_type(_plain(kind.value_type))


def _check_trailer(source: Path) -> None:
    size = source.stat().st_size
    with source.open("rb") as file:
        file.seek(max(0, size - _TRAILER_BYTES))
        trailer = file.read(_TRAILER_BYTES)
    if size < len(_MAGIC) + _TRAILER_BYTES or trailer[4:] != _MAGIC:
        raise _damaged("it does not end as one")
    length = int.from_bytes(trailer[:4], "little")
    if length > size - len(_MAGIC) - _TRAILER_BYTES:
        raise _damaged("its footer is larger than the file")
    if length > MAX_FOOTER_BYTES:
        message = f"The file's footer is larger than {MAX_FOOTER_BYTES:,} bytes."
        raise PayloadTooLarge(
            message, hint="Write it with fewer row groups.", limit=MAX_FOOTER_BYTES
        )


def _check_footer(footer: pq.FileMetaData, size: int, limits: TableLimits) -> None:
    """Check the file's metadata before reading any value."""
    limits.check_columns(footer.num_columns)
    limits.check_rows(footer.num_rows)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    if footer.num_rows < 0 or sum(group.num_rows for group in groups) != footer.num_rows:
        raise _damaged("its row groups have other rows than its footer says")
    packed = unpacked = 0
    for group in groups:
        for place in range(group.num_columns):
            chunk = group.column(place)
            if min(chunk.total_compressed_size, chunk.total_uncompressed_size) < 0:
                raise _damaged("a column has a negative size")
            packed += chunk.total_compressed_size
            unpacked += chunk.total_uncompressed_size
    if packed > size:
        raise _damaged("its columns are larger than the file")
    _check_unpacked(unpacked, limits)


def _check_unpacked(size: int, limits: TableLimits) -> None:
    if size > limits.unpacked_bytes:
        message = f"The file unpacks to more than {limits.unpacked_bytes:,} bytes."
        raise PayloadTooLarge(message, hint="Split the file.", limit=limits.unpacked_bytes)


def _damaged(why: str) -> InvalidInput:
    return InvalidInput(f"The Parquet file cannot be read: {why}.", hint="Write the file again.")
