"""The columns of a side and the kinds of values that rules distinguish: numbers, text, days,
timestamps, and others that can only be compared for equality.

Read from an Arrow schema, without any data; recipes, staging and matching all use them.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engines.column_names import inner_name, inner_type
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.engines.contract import Unit

FREE_SCALE = 6
"""The decimals of a float or a text; a text with more is refused, never rounded."""


class Kind(enum.StrEnum):
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    MOMENT = "moment"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`digits` before and `scale` after the point of a number; `held` is the number of digits that
    its values really have before it, if known. `place` is its position in the files."""

    name: str
    kind: Kind
    type: pa.DataType
    place: int = 0
    digits: int = 0
    scale: int = 0
    held: int | None = None

    @property
    def sql(self) -> str:
        """Its name inside an engine."""
        return inner_name(self.place)

    @property
    def is_text(self) -> bool:
        """Whether it is text inside an engine; numbers of more than 38 digits are."""
        return self.kind is Kind.TEXT or pa.types.is_string(inner_type(self.type))

    @property
    def is_float(self) -> bool:
        return bool(pa.types.is_floating(self.type))

    @property
    def is_time(self) -> bool:
        """Whether it has times of day."""
        return bool(pa.types.is_time(self.type))

    @property
    def is_binary(self) -> bool:
        return bool(pa.types.is_binary(self.type) or pa.types.is_fixed_size_binary(self.type))

    @property
    def has_text(self) -> bool:
        """Whether every engine formats its values the same way; not so for lists, maps, structs and
        durations."""
        simple = pa.types.is_boolean(self.type) or pa.types.is_null(self.type)
        return self.kind is not Kind.OTHER or simple or self.is_time or self.is_binary

    @property
    def described(self) -> str:
        """Its type, for the message about a wrong column."""
        if pa.types.is_null(self.type):
            return "a column without a type, for it has no values"
        return f"a {self.type if self.kind is Kind.OTHER else self.kind}"

    @property
    def zoned(self) -> bool:
        """Whether its timestamps are instants and not local times."""
        return self.kind is Kind.MOMENT and self.type.tz is not None

    @property
    def unit(self) -> Unit:
        of_time = self.kind is Kind.MOMENT or self.is_time
        return "ns" if of_time and self.type.unit == "ns" else "us"


def columns(schema: pa.Schema) -> Mapping[str, Column]:
    """The columns by name; names must be unique, but may differ in case only."""
    if twice := [name for name, times in Counter(schema.names).items() if times > 1]:
        raise InvalidInput(
            f"There is more than one column named {twice[0][:80]!r}.",
            hint="Give each column a name of its own in the source's query.",
        )
    read = [column(field.name, field.type) for field in schema]
    return {one.name: replace(one, place=place) for place, one in enumerate(read)}


def case_twins(names: Sequence[str]) -> tuple[str, str] | None:
    """Two names that differ only in case; None where there are none."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            return other, name
    return None


def column(name: str, kind: pa.DataType) -> Column:
    match kind:
        case _ if pa.types.is_integer(kind):
            digits = 20 if kind.bit_width == 64 else 10
            return Column(name=name, type=kind, kind=Kind.NUMBER, digits=digits)
        case _ if pa.types.is_decimal(kind):
            digits, scale = kind.precision - kind.scale, max(0, kind.scale)
            return Column(name=name, type=kind, kind=Kind.NUMBER, digits=digits, scale=scale)
        case _ if pa.types.is_floating(kind):
            return Column(name=name, type=kind, kind=Kind.NUMBER, digits=20, scale=FREE_SCALE)
        case _ if (
            pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
            or pa.types.is_string_view(kind)
        ):
            return Column(name=name, type=kind, kind=Kind.TEXT, digits=20, scale=FREE_SCALE)
        case _ if pa.types.is_dictionary(kind):
            return column(name, kind.value_type)
        case _ if pa.types.is_date(kind):
            return Column(name=name, type=kind, kind=Kind.DATE)
        case _ if pa.types.is_timestamp(kind):
            return Column(name=name, type=kind, kind=Kind.MOMENT)
    return Column(name=name, type=kind, kind=Kind.OTHER)
