"""Table schemas: every primitive type of format version 2, nesting, and hostile names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.types import IcebergType

DECIMALS = (
    "decimal(1,0)",
    "decimal(9,2)",
    "decimal(10,0)",
    "decimal(18,18)",
    "decimal(19,4)",
    "decimal(38,0)",
    "decimal(38,10)",
    "decimal(38,38)",
)
FIXED = ("fixed[1]", "fixed[16]", "fixed[23]")
PRIMITIVES = (
    *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz"),
    *("string", "uuid", "binary", *DECIMALS, *FIXED),
)
PLAIN_NAMES = ("a", "b", "amount", "note", "at", "Camel", "x_1")
HOSTILE_NAMES = (
    *("p.q", "with space", "a-b", "a/b", "a:b", "per%cent", "100%", "per%20cent", "x=y", "#hash"),
    *('quo"te', "back`tick", "it's", "semi;colon", "com,ma", "{brace}", "[0]", "back\\slash", "q?"),
    *("select", "order", "null", "true", "from", "where", "table", "timestamp", "list", "element"),
    *("key", "value", "key_value", "1st", "9", "-1", "_id", "a_x2Eb", "ünïcødé", "日本", "😀", "ﬁ"),
    *(" lead", "trail ", "tab\there", "file_path", "pos", "id desc"),
)


@dataclass(frozen=True, slots=True)
class ListOf:
    element: Shape
    required: bool = False


@dataclass(frozen=True, slots=True)
class MapOf:
    key: Shape
    value: Shape
    required: bool = False


@dataclass(frozen=True, slots=True)
class StructOf:
    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    shape: Shape
    required: bool = False


Shape: TypeAlias = str | ListOf | MapOf | StructOf
"""A primitive type by its name in the specification, or a nested one."""


def schema_of(columns: tuple[Column, ...]) -> Schema:
    ids = count(1)
    return Schema(*(_field(column, ids) for column in columns))


def iceberg_type(shape: Shape, ids: Iterator[int]) -> IcebergType:
    match shape:
        case ListOf(element, required):
            return ListType(next(ids), iceberg_type(element, ids), required)
        case MapOf(key, value, required):
            at = (next(ids), next(ids))
            of = (iceberg_type(key, ids), iceberg_type(value, ids))
            return MapType(at[0], of[0], at[1], of[1], required)
        case StructOf(fields):
            return StructType(*(_field(field, ids) for field in fields))
        case str():
            return _primitive(shape)


def _field(column: Column, ids: Iterator[int]) -> NestedField:
    number = next(ids)
    return NestedField(
        number, column.name, iceberg_type(column.shape, ids), required=column.required
    )


def _primitive(name: str) -> PrimitiveType:
    if name.startswith("decimal"):
        precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
        return DecimalType(int(precision), int(scale))
    if name.startswith("fixed"):
        return FixedType(int(name.removeprefix("fixed[").removesuffix("]")))
    return PrimitiveType.model_validate(name)


names = st.one_of(st.sampled_from(PLAIN_NAMES), st.sampled_from(HOSTILE_NAMES))


def primitives(*, time: bool) -> st.SearchStrategy[str]:
    """`time` is the one type that Spark does not have."""
    decimal, fixed = st.sampled_from(DECIMALS), st.sampled_from(FIXED)
    rest = [p for p in PRIMITIVES if "(" not in p and "[" not in p and (time or p != "time")]
    return st.one_of(st.sampled_from(rest), st.sampled_from(rest), decimal, fixed)


@cache
def shapes(depth: int, *, time: bool) -> st.SearchStrategy[Shape]:
    leaves = primitives(time=time)
    if depth == 0:
        return leaves
    inner = shapes(depth - 1, time=time)
    keys = st.one_of(st.sampled_from(("string", "int", "long", "date")), leaves)
    nested = st.one_of(
        st.builds(ListOf, inner, st.booleans()),
        st.builds(MapOf, keys, inner, st.booleans()),
        st.builds(StructOf, fields(inner, most=3)),
    )
    return st.one_of(leaves, leaves, nested)


def fields(inner: st.SearchStrategy[Shape], *, most: int) -> st.SearchStrategy[tuple[Column, ...]]:
    column = st.builds(Column, names, inner, st.sampled_from((False, False, False, True)))
    return st.lists(
        column, min_size=1, max_size=most, unique_by=lambda column: column.name.lower()
    ).map(tuple)
