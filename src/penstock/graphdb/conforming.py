"""Files whose columns the embedded engines cannot read (nanoseconds, decimals, times, bare UUID bytes) are written anew
next to the others, a row group at a time; all others are taken as they are."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.graphdb.typenames import loadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def conform(files: Sequence[Path], declared: Mapping[str, str], folder: Path) -> list[Path]:
    """The files to load: the given ones, or copies with types that can be read, in a new place below `folder`: those of
    a table stay as they are until all were loaded, to find out what went wrong."""
    if not files:
        return []
    found = pq.read_schema(files[0])
    target = pa.schema([f.with_type(loadable(f.type, declared.get(f.name, ""))) for f in found])
    if target.types == found.types:
        return list(files)
    place = Path(mkdtemp(prefix="conformed-", dir=folder))
    return [_rewritten(file, target, place / f"{number}.parquet") for number, file in enumerate(files)]


def _rewritten(file: Path, target: pa.Schema, copy: Path) -> Path:
    with pq.ParquetFile(file) as source, pq.ParquetWriter(copy, target) as sink:
        for batch in source.iter_batches():
            columns = [_cast(values, field.type) for values, field in zip(batch.columns, target, strict=True)]
            sink.write_batch(pa.RecordBatch.from_arrays(columns, schema=target))
    return copy


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind == pa.uuid() and values.type != kind:
        return pa.ExtensionArray.from_storage(kind, values)
    # Nanoseconds are cut to microseconds, the finest that the engines keep with a TIMESTAMP.
    return values.cast(kind, safe=False)
