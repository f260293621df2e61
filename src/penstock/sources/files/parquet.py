from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.sources.files.place import ObjectFile

_BATCH = 16 * 1024 * 1024
_LEAST_ROWS = 4
_MOST_ROWS = 32_768
_BUFFERS = 64 * 1024 * 1024
_LEAST_BUFFER = 64 * 1024
_MOST_BUFFER = 1024 * 1024


def schema(file: ObjectFile) -> pa.Schema:
    with pq.ParquetFile(file) as parquet:
        return _plain(parquet.schema_arrow)


def group_sizes(file: ObjectFile) -> list[tuple[int, int]]:
    """Bytes and rows of each row group, from the footer."""
    with pq.ParquetFile(file) as parquet:
        groups = (parquet.metadata.row_group(i) for i in range(parquet.metadata.num_row_groups))
        return [(group.total_byte_size, group.num_rows) for group in groups]


def batches(
    file: ObjectFile, columns: Sequence[str], groups: Sequence[int] | None
) -> Iterator[pa.RecordBatch]:
    # Column chunks are read in buffers: a row group of any size then costs little memory.
    with pq.ParquetFile(file, buffer_size=_buffer(len(columns)), pre_buffer=False) as parquet:
        found = _plain(parquet.schema_arrow)
        wanted = pa.schema([found.field(name) for name in columns])
        chosen = range(parquet.metadata.num_row_groups) if groups is None else groups
        for batch in parquet.iter_batches(
            _rows(parquet.metadata, chosen), row_groups=chosen, columns=columns, use_threads=False
        ):
            yield batch.select(columns).cast(wanted)


def _plain(found: pa.Schema) -> pa.Schema:
    """Dictionaries as their values, and no metadata: both belong to how the file was written."""
    return pa.schema(
        [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in found]
    )


def _rows(footer: pq.FileMetaData, groups: Sequence[int]) -> int:
    """Rows a batch, by what the footer says of their size."""
    found = [footer.row_group(number) for number in groups]
    size: int = sum(group.total_byte_size for group in found)
    rows: int = sum(group.num_rows for group in found)
    return max(_LEAST_ROWS, min(_MOST_ROWS, _BATCH * rows // max(size, 1)))


def _buffer(columns: int) -> int:
    return max(_LEAST_BUFFER, min(_MOST_BUFFER, _BUFFERS // max(columns, 1)))
