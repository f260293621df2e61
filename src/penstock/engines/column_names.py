"""Internal column names of an engine: columns by position, under names that no file can have.

A file may have any column names: `_id`, two that differ only in case, SQL keywords. Engines treat
such names differently, and DuckDB compares them case-insensitively. Inside an engine the columns of
a relation are therefore `f0`, `f1`, … and the row's position is `_id`; the names of the file come
back when rows leave the engine.

Types come back too: an engine may hold a value as another type (a decimal of more than 38 digits as
text, a time zone as UTC), so results are cast to the type of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.contract import ROW_BITS
from penstock.engines.errors import EngineQueryError
from penstock.engines.plain_types import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

ROW = "_id"
_BATCH = 65_536


def one_schema(files: Sequence[Path]) -> pa.Schema:
    """The common schema of files. All files must have the same one: columns are read by
    position."""
    schema = pq.read_schema(files[0])
    for file in files[1:]:
        if not pq.read_schema(file).equals(schema):
            raise EngineQueryError(
                f"{file.name} has different columns or types than {files[0].name}.",
                hint="Write all files of one side with the same columns, in the same order.",
            )
    return schema


def inner_name(place: int) -> str:
    """The name inside an engine of the column at this position."""
    return f"f{place}"


def quoted(name: str) -> str:
    """An identifier quoted for SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def with_names(relation: str, columns: Mapping[str, str]) -> str:
    """SELECT that gives a relation its outside column names; `columns` maps each name to its
    SQL."""
    chosen = [f"{sql} AS {quoted(name)}" for name, sql in columns.items()]
    return f"SELECT {', '.join(chosen)} FROM {relation}"


def inner_schema(schema: pa.Schema) -> pa.Schema:
    """A file's schema inside an engine, without the row id."""
    types = [inner_type(field.type) for field in plain(schema)]
    return pa.schema([pa.field(inner_name(place), kind) for place, kind in enumerate(types)])


def inner_type(kind: pa.DataType) -> pa.DataType:
    """Decimals of more than 38 digits are text, which every engine reads exactly; DuckDB would
    read doubles. It has no half floats either. Fields of a struct that differ only in case have
    places instead of names, like columns."""
    if pa.types.is_decimal256(kind):
        return pa.string()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(inner_type(kind.value_type))
    if pa.types.is_struct(kind):
        names, types = [field.name for field in kind], [inner_type(field.type) for field in kind]
        if len({name.casefold() for name in names}) < len(names):
            names = [inner_name(place) for place in range(len(names))]
        return pa.struct(list(zip(names, types, strict=True)))
    return kind


def needs_copy(schema: pa.Schema) -> bool:
    """Whether a file has types that an engine would misread if it read the file in place."""
    return any(inner_type(field.type) != field.type for field in plain(schema)) or any(
        isinstance(field.type, pa.BaseExtensionType) for field in schema
    )


def copy(files: Sequence[Path], target: Path) -> None:
    """Write the rows of files with their ids into one file, with the types used inside an
    engine."""
    schema = pq.read_schema(files[0])
    numbered = pa.schema([pa.field(ROW, pa.int64()), *inner_schema(schema)])
    # The statistics of floats leave out NaN: an engine would take 1 and NaN for a constant 1.
    counted = [field.name for field in numbered if not pa.types.is_floating(field.type)]
    with pq.ParquetWriter(target, numbered, write_statistics=counted) as writer:
        for number, file in enumerate(files):
            for batch in _numbered(file, number << ROW_BITS, numbered):
                writer.write_batch(batch)


def _numbered(file: Path, first: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file, pre_buffer=False) as parquet:
        for batch in parquet.iter_batches(_BATCH):
            ids = pa.array(range(first, first + batch.num_rows), pa.int64())
            first += batch.num_rows
            columns = map(restored, batch.columns, schema.types[1:])
            yield pa.RecordBatch.from_arrays([ids, *columns], schema=schema)


def leaving(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of an engine with the column names and types they have outside it."""
    for batch in batches:
        columns = list(map(restored, batch.columns, schema.types))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def restored(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast a column to another type that holds the same values; struct fields match by position."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type == kind:
        return column
    if pa.types.is_struct(kind):
        fields = [restored(column.field(place), field.type) for place, field in enumerate(kind)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind) and pa.types.is_list(column.type):
        column = pa.concat_arrays([column])  # one that is a slice has offsets of the whole
        values = restored(column.values, kind.value_type)
        return pa.ListArray.from_arrays(column.offsets, values, type=kind, mask=column.is_null())
    return pa.nulls(len(column)) if pa.types.is_null(kind) else column.cast(kind)
