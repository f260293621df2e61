"""Evidence files: Parquet whose bytes depend only on the rows.

Row groups have a fixed number of rows, whatever batches an engine returns. File names contain the
digest of the bytes, so a retry writes the same objects and no attempt can overwrite another's.
Columns whose first values repeat are dictionary-encoded; the others are not, because trying a
dictionary on keys costs more than all other writing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.engines.spill import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

GROUP_ROWS = 100_000
FILE_ROWS = 5_000_000
_DIGEST = 16
_SAMPLE_ROWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile:
    """`name` is its key below the run's prefix, `path` the local file before upload."""

    table: str
    name: str
    path: Path
    rows: int
    size: int
    sha256: str


def write(
    table: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], folder: Path
) -> list[EvidenceFile]:
    """Writes at least one file: an empty table still has a schema."""
    files: list[EvidenceFile] = []
    groups = _groups(schema, batches)
    group = next(groups, None)
    while group is not None or not files:
        path = folder / f"{table}-{len(files)}.parquet"
        rows = 0
        repeating = [] if group is None else _repeating(group.slice(0, _SAMPLE_ROWS))
        options = {"compression": "zstd", "use_dictionary": repeating}
        with writing(folder), pq.ParquetWriter(path, schema, **options) as writer:
            while group is not None and rows < FILE_ROWS:
                writer.write_table(group, row_group_size=GROUP_ROWS)
                rows += group.num_rows
                group = next(groups, None)
        files.append(_finished(table, len(files), path, rows))
    return files


def _repeating(sample: pa.Table) -> list[str]:
    """Columns in which each value occurs twice or more on average."""
    candidates = [field.name for field in sample.schema if _countable(field.type)]
    return [name for name in candidates if _repeats(sample.column(name))]


def _repeats(values: pa.ChunkedArray) -> bool:
    different: int = pc.count_distinct(values, mode="only_valid").as_py()
    non_null: int = len(values) - values.null_count
    return 2 * different <= non_null


def _countable(kind: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(kind) or pa.types.is_null(kind) or isinstance(kind, pa.BaseExtensionType)
    )


def _finished(table: str, number: int, path: Path, rows: int) -> EvidenceFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = f"{table}/{table}-{number:05d}-{digest[:_DIGEST]}.parquet"
    return EvidenceFile(
        table=table, name=name, path=path, rows=rows, size=path.stat().st_size, sha256=digest
    )


def _groups(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= GROUP_ROWS:
            table = pa.Table.from_batches(waiting, schema)
            whole = count - count % GROUP_ROWS
            for start in range(0, whole, GROUP_ROWS):
                yield table.slice(start, GROUP_ROWS)
            waiting, count = table.slice(whole).to_batches(), count - whole
    if count:
        yield pa.Table.from_batches(waiting, schema)
