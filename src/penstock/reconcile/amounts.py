"""Amounts in SQL, exact: every number becomes a decimal that holds both sides and the tolerance, before any arithmetic.

A width of 28 leaves room for a fraction of nine digits beside it, so no product passes the 38 digits of an engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.column import FREE_SCALE, Kind

if TYPE_CHECKING:
    from penstock.reconcile.column import Column
    from penstock.reconcile.recipe import Within

NARROW, WIDE = 18, 28
TEXT_NUMBER = rf"^[ \t]*-?[0-9]{{1,15}}([.][0-9]{{1,{FREE_SCALE}}})?[ \t]*$"
_MAX_SCALE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    precision: int
    scale: int

    @property
    def of_sums(self) -> Width:
        """Many amounts make more digits than one."""
        return replace(self, precision=WIDE)

    def cast(self, sql: str) -> str:
        return f"CAST({sql} AS DECIMAL({self.precision}, {self.scale}))"

    def number(self, column: Column, sql: str) -> str:
        """A column as an amount of this width."""
        if column.kind is Kind.TEXT:
            return self.cast(f"NULLIF(TRIM({sql}), '')")
        return self.cast(sql)

    def literal(self, value: Decimal) -> str:
        return self.cast(f"'{value:f}'")


def width(left: Column, right: Column, within: Within | None = None) -> Width:
    """What holds all values of both, their differences and the bounds."""
    digits = max(column.digits if column.held is None else column.held for column in (left, right))
    return _width(digits, left, right, within)


def declared_width(left: Column, right: Column) -> Width:
    """The same by the types alone, whatever the values are: for what others will read."""
    return _width(max(left.digits, right.digits), left, right, None)


def _width(digits: int, left: Column, right: Column, within: Within | None) -> Width:
    told = [] if within is None else [within.absolute, within.minus, within.plus]
    bounds = [bound for bound in told if bound is not None]
    scale = min(_MAX_SCALE, max(left.scale, right.scale, *map(scale_of, bounds)))
    digits = max([digits, *map(digits_of, bounds)])
    return Width(precision=NARROW if digits + scale < NARROW else WIDE, scale=scale)


def digits_of(value: Decimal) -> int:
    """Before the point."""
    return max(0, value.adjusted() + 1)


def scale_of(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


def within_sql(within: Within, left: str, right: str, size: Width) -> str:
    """Whether right is near enough to left; bounds are inclusive."""
    if within.minus is not None or within.plus is not None:
        minus, plus = within.minus or Decimal(0), within.plus or Decimal(0)
        return f"({right} - {left} >= {size.literal(-minus)} AND {right} - {left} <= {size.literal(plus)})"
    ways = []
    if within.absolute is not None:
        ways.append(f"ABS({right} - {left}) <= {size.literal(within.absolute)}")
    if within.percent is not None:
        share = f"CAST('{within.percent / 100:f}' AS DECIMAL(9, 6))"
        ways.append(f"ABS({right} - {left}) <= {share} * ABS({left})")
    return f"({' OR '.join(ways)})"


def is_within(within: Within, left: Decimal, right: Decimal) -> bool:
    """The same in Python."""
    away = right - left
    if within.minus is not None or within.plus is not None:
        return -(within.minus or Decimal(0)) <= away <= (within.plus or Decimal(0))
    near = within.absolute is not None and abs(away) <= within.absolute
    return near or (within.percent is not None and abs(away) * 100 <= within.percent * abs(left))
