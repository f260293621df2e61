"""Which transforms a partition field may apply to which type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import FixedType, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.schema import Schema
    from pyiceberg.transforms import Transform
    from pyiceberg.types import IcebergType, NestedField

TRANSFORMS: tuple[Transform, ...] = (
    IdentityTransform(),
    BucketTransform(3),
    TruncateTransform(4),
    TruncateTransform(1),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
)


MOSTLY = 6


def transforms_for(of: IcebergType) -> list[Transform]:
    """Of a fixed value mostly the bucket: a table with any other partition of one is refused, and
    a case that ends there shows nothing."""
    if isinstance(of, FixedType):
        return [*[BucketTransform(3)] * MOSTLY, IdentityTransform(), VoidTransform()]
    return [transform for transform in TRANSFORMS if transform.can_transform(of)]


def sources(schema: Schema) -> list[tuple[str, NestedField]]:
    """The fields that a table can be partitioned by, with their full names: in structs too."""
    return list(_sources("", schema.as_struct()))


def _sources(prefix: str, struct: StructType) -> Iterator[tuple[str, NestedField]]:
    for field in struct.fields:
        name = f"{prefix}{field.name}"
        if isinstance(field.field_type, PrimitiveType):
            yield name, field
        elif isinstance(field.field_type, StructType):
            yield from _sources(f"{name}.", field.field_type)
