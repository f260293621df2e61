from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.sources.files.place import ObjectFile

_BATCH = 16 * 1024 * 1024
_MIN_ROWS = 4
_MAX_ROWS = 32_768
_TOTAL_BUFFER = 64 * 1024 * 1024
_MIN_BUFFER = 64 * 1024
_MAX_BUFFER = 1024 * 1024


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
    # Column chunks are read through buffers, so a large row group needs little memory.
    with pq.ParquetFile(file, buffer_size=_buffer(len(columns)), pre_buffer=False) as parquet:
        schema = _plain(parquet.schema_arrow)
        selected = pa.schema([schema.field(name) for name in columns])
        chosen = range(parquet.metadata.num_row_groups) if groups is None else groups
        for batch in parquet.iter_batches(
            _rows(parquet.metadata, chosen), row_groups=chosen, columns=columns, use_threads=False
        ):
            yield batch.select(columns).cast(selected)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema without dictionary types and metadata, which differ between writers."""
    return pa.schema(
        [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema]
    )


def _rows(footer: pq.FileMetaData, groups: Sequence[int]) -> int:
    """Rows per batch, from the row sizes in the footer."""
    row_groups = [footer.row_group(number) for number in groups]
    size: int = sum(group.total_byte_size for group in row_groups)
    rows: int = sum(group.num_rows for group in row_groups)
    return max(_MIN_ROWS, min(_MAX_ROWS, _BATCH * rows // max(size, 1)))


def _buffer(columns: int) -> int:
    return max(_MIN_BUFFER, min(_MAX_BUFFER, _TOTAL_BUFFER // max(columns, 1)))
