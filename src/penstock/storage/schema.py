"""The declared schema: checked against every batch and stored exactly in the manifest."""

from __future__ import annotations

import base64
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.storage.errors import SchemaMismatch
from penstock.storage.manifest import Column


def describe(schema: pa.Schema) -> tuple[Column, ...]:
    return tuple(Column(name=f.name, type=str(f.type), nullable=f.nullable) for f in schema)


def pack(schema: pa.Schema) -> str:
    """The exact Arrow schema as text; Parquet alone loses types it lacks, such as seconds."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def unpack(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def check_storable(schema: pa.Schema) -> None:
    """Require unique column names and types that Parquet can store."""
    if not len(schema):
        raise SchemaMismatch("A table without columns cannot be stored.")
    for column, times in Counter(schema.names).items():
        if times > 1:
            raise SchemaMismatch(
                f"{times} columns are named {column!r}.", hint="Give each an alias.", column=column
            )
    for field in schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            raise SchemaMismatch(
                f"Column {field.name!r} is {field.type}, which Parquet cannot store.",
                hint="Cast it in the query.",
                column=field.name,
            ) from None


def conform(batch: pa.RecordBatch, declared: pa.Schema) -> pa.RecordBatch:
    """The batch with the declared schema; names, order and types must match, metadata need not."""
    if not batch.schema.equals(declared):
        _check_columns(batch.schema, declared)
        batch = pa.RecordBatch.from_arrays(batch.columns, schema=declared)
    for field, values in zip(declared, batch.columns, strict=True):
        if not field.nullable and values.null_count:
            raise SchemaMismatch(
                f"Column {field.name!r} is declared not null, but has nulls.", column=field.name
            )
    return batch


def _check_columns(actual: pa.Schema, declared: pa.Schema) -> None:
    for position, (have, want) in enumerate(zip(actual, declared, strict=False), start=1):
        if have.name != want.name:
            raise SchemaMismatch(
                f"Column {position} is {have.name!r}, not {want.name!r}.", column=want.name
            )
        if have.type != want.type:
            raise SchemaMismatch(
                f"Column {want.name!r} is {have.type}, not {want.type}.", column=want.name
            )
    if len(actual) < len(declared):
        missing = declared.names[len(actual)]
        raise SchemaMismatch(f"Column {missing!r} is missing.", column=missing)
    if len(actual) > len(declared):
        extra = actual.names[len(declared)]
        raise SchemaMismatch(f"Column {extra!r} was not declared.", column=extra)
