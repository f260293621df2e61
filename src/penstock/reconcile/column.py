"""What a column's values are to a rule: numbers, text, days, moments, or something only equality is asked of."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

FREE_SCALE = 6
"""Decimals that are kept of a float or a text; a text with more is refused, never rounded."""


class Kind(enum.StrEnum):
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    MOMENT = "moment"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`digits` before and `scale` after the point, of a number; `held` are those that its values really have before it,
    where somebody looked."""

    name: str
    kind: Kind
    digits: int = 0
    scale: int = 0
    held: int | None = None


def columns(schema: pa.Schema) -> Mapping[str, Column]:
    return {field.name: column(field.name, field.type) for field in schema}


def column(name: str, kind: pa.DataType) -> Column:
    match kind:
        case _ if pa.types.is_integer(kind):
            return Column(name=name, kind=Kind.NUMBER, digits=20 if kind.bit_width == 64 else 10)
        case _ if pa.types.is_decimal(kind):
            return Column(name=name, kind=Kind.NUMBER, digits=kind.precision - kind.scale, scale=max(0, kind.scale))
        case _ if pa.types.is_floating(kind):
            return Column(name=name, kind=Kind.NUMBER, digits=20, scale=FREE_SCALE)
        case _ if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return Column(name=name, kind=Kind.TEXT, digits=20, scale=FREE_SCALE)
        case _ if pa.types.is_dictionary(kind):
            return column(name, kind.value_type)
        case _ if pa.types.is_date(kind):
            return Column(name=name, kind=Kind.DATE)
        case _ if pa.types.is_timestamp(kind):
            return Column(name=name, kind=Kind.MOMENT)
    return Column(name=name, kind=Kind.OTHER)
