"""The Arrow schema of written data files, and the leaf columns of such a file.

Every field has its Iceberg id, including list elements and map keys and values, because readers
resolve columns by id only. Names are encoded as Java's Iceberg does (`a b` becomes `a_x20b`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import make_compatible_name
from pyiceberg.types import (
    BinaryType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
)

from penstock.maintenance.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A primitive column; `repeated` if it is inside a list or a map."""

    field_id: int
    type: PrimitiveType
    repeated: bool
    path: tuple[int, ...]
    """The position of the column, then of each struct field below it."""


def file_schema(schema: Schema) -> pa.Schema:
    return pa.schema(_fields(schema.fields))


def leaves(schema: Schema) -> list[Leaf]:
    """In the order in which Parquet stores them."""
    fields = enumerate(schema.fields)
    return [
        leaf for at, field in fields for leaf in _leaves(field.field_id, field.field_type, (at,))
    ]


def field_id(field: pa.Field) -> int | None:
    value = (field.metadata or {}).get(FIELD_ID)
    return None if value is None else int(value)


def _leaves(
    id_: int, type_: IcebergType, path: tuple[int, ...], repeated: bool = False
) -> Iterator[Leaf]:
    match type_:
        case StructType():
            for at, field in enumerate(type_.fields):
                yield from _leaves(field.field_id, field.field_type, (*path, at), repeated)
        case ListType():
            yield from _leaves(type_.element_id, type_.element_type, path, True)
        case MapType():
            yield from _leaves(type_.key_id, type_.key_type, path, True)
            yield from _leaves(type_.value_id, type_.value_type, path, True)
        case PrimitiveType():
            yield Leaf(field_id=id_, type=type_, repeated=repeated, path=path)


def _fields(fields: Sequence[NestedField]) -> list[pa.Field]:
    names: set[str] = set()
    result = []
    for field in fields:
        name = make_compatible_name(field.name)
        while name in names:  # `a b` beside `a_x20b`: files need two names, and readers go by id
            name = f"{name}_{field.field_id}"
        names.add(name)
        result.append(_field(field, name))
    return result


def _field(field: NestedField, name: str) -> pa.Field:
    metadata = {FIELD_ID: str(field.field_id).encode()}
    return pa.field(name, _type(field.field_type), nullable=not field.required, metadata=metadata)


def _type(type_: IcebergType) -> pa.DataType:
    match type_:
        case StructType() if not type_.fields:
            raise Refused(
                "The table has a struct without fields, which Parquet cannot store.",
                hint="Drop it, or add a field to it.",
            )
        case StructType():
            return pa.struct(_fields(type_.fields))
        case ListType():
            return pa.list_(_field(type_.element_field, "element"))
        case MapType():
            return pa.map_(_field(type_.key_field, "key"), _field(type_.value_field, "value"))
        case StringType():
            return pa.string()
        case BinaryType():
            return pa.binary()
        case _:
            return schema_to_pyarrow(type_, include_field_ids=False)
