"""Rewrites Parquet files that the embedded engines cannot read correctly; others are used as is.

The engines cannot read columns of some types (nanoseconds, decimals, times, bare UUID bytes). They
support the encodings listed here. They decode DELTA_BINARY_PACKED to wrong numbers, without an
error, where 64-bit values are far apart, and reject it for 8 and 16 bits. Files from other writers,
and snapshots of older versions, use it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.graphdb.files.timestamp_units import cut_moments
from penstock.graphdb.typenames import loadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DECODED = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"})
_COPIES = "conformed-"


def conform(files: Sequence[Path], declared: Mapping[str, str], folder: Path) -> list[Path]:
    """The files to load: the given ones, or readable copies in a new folder below `folder`. Copies
    are kept until all tables are loaded, for the diagnosis of errors."""
    if not files:
        return []
    schema = pq.read_schema(files[0])
    target = pa.schema([f.with_type(loadable(f.type, declared.get(f.name, ""))) for f in schema])
    is_loadable = target.types == schema.types
    bad = {file for file in files if not is_loadable or not _is_decoded(file)}
    if not bad:
        return list(files)
    place = Path(mkdtemp(prefix=_COPIES, dir=folder))
    return [
        _rewritten(file, target, place / f"{number}.parquet") if file in bad else file
        for number, file in enumerate(files)
    ]


def remove_copies(folder: Path) -> None:
    for place in folder.glob(f"{_COPIES}*"):
        shutil.rmtree(place)


def _is_decoded(file: Path) -> bool:
    """Whether the file's footer lists only encodings that the engines decode."""
    footer = pq.read_metadata(file)
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    columns = (group.column(number) for group in groups for number in range(group.num_columns))
    return all(_DECODED.issuperset(column.encodings) for column in columns)


def _rewritten(file: Path, target: pa.Schema, copy: Path) -> Path:
    with pq.ParquetFile(file) as source, pq.ParquetWriter(copy, target) as sink:
        for batch in source.iter_batches():
            columns = [
                _cast(values, field.type)
                for values, field in zip(batch.columns, target, strict=True)
            ]
            sink.write_batch(pa.RecordBatch.from_arrays(columns, schema=target))
    return copy


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind == pa.uuid() and values.type != kind:
        return pa.ExtensionArray.from_storage(kind, values)
    if pa.types.is_timestamp(kind) and values.type != kind:
        return cut_moments(values, "us").cast(kind)
    # Nanoseconds inside lists and structs are truncated to microseconds, the engines' finest unit.
    return values.cast(kind, safe=False)
