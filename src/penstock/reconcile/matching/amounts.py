"""Exact amounts in SQL: every number becomes a decimal wide enough for both sides and the tolerance
before any arithmetic.

Amounts have 28 digits at most: that leaves room for a fraction of nine digits, so no product
exceeds the 38 digits of an engine. Numbers that are only compared may have all 38.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.matching.column import FREE_SCALE, Kind

if TYPE_CHECKING:
    from penstock.engines.contract import Dialect
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.recipes.model import Within

NARROW, WIDE, FULL = 18, 28, 38
_TEXT_DIGITS = WIDE - FREE_SCALE
TEXT_NUMBER = rf"^-?[0-9]{{1,{_TEXT_DIGITS}}}([.][0-9]{{1,{FREE_SCALE}}})?$"
_SMALL = 2**30
_SCALED_ERROR = "CAST('4.440892098500626e-16' AS DOUBLE)"
"""2**-51: twice what a double and its product with a million can be off, as a share of it."""
EXACT = Context(prec=120)
"""Python rounds sums of decimals to 28 digits by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    precision: int
    scale: int

    def of_sums(self, within: Within) -> Width:
        """The decimal type for sums: as many digits as there are, unless a percentage is
        computed."""
        return replace(self, precision=FULL if within.percent is None else WIDE)

    def cast(self, sql: str) -> str:
        return f"CAST({sql} AS {self.type})"

    @property
    def type(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"

    def number(self, column: Column, dialect: Dialect) -> str:
        """A column as an amount of this width."""
        return self.cast(readable(column, dialect))

    def literal(self, value: Decimal) -> str:
        return self.cast(f"'{value:f}'")


def readable(column: Column, dialect: Dialect) -> str:
    """The part of a column that is parsed as a number."""
    if column.is_float:
        return of_float(column.sql, dialect)
    return filled(column.sql) if column.kind is Kind.TEXT else column.sql


def of_float(number: str, dialect: Dialect) -> str:
    """The decimals of a float that are kept: its shortest text, rounded half away from zero.

    Engines multiply by a million and round the product, which is off by the errors of a double:
    the same result unless the product is about half way between two integers. Those few are
    rounded from their text, and so are large numbers."""
    number, kind = f"CAST({number} AS DOUBLE)", f"DECIMAL({WIDE}, {FREE_SCALE})"
    scaled = f"({number} * CAST({10**FREE_SCALE} AS DOUBLE))"
    from_half = f"ABS({scaled} - FLOOR({scaled}) - CAST('0.5' AS DOUBLE))"
    is_clear = f"ABS({number}) < {_SMALL} AND {from_half} > ABS({scaled}) * {_SCALED_ERROR}"
    text = f"TRY_CAST({dialect.rounded(number, FREE_SCALE)} AS {kind})"
    return f"CASE WHEN {is_clear} THEN TRY_CAST({number} AS {kind}) ELSE {text} END"


def filled(text: str) -> str:
    """A text stripped of spaces and tabs, null if nothing is left."""
    return f"NULLIF(TRIM(BOTH ' \t' FROM {text}), '')"


def width(left: Column, right: Column, within: Within | None = None) -> Width:
    """The decimal type that holds the values of both columns, their differences and the bounds."""
    return _width(_held(left, right), left, right, within, WIDE)


def compared_width(left: Column, right: Column) -> Width:
    """The decimal type for values that are only compared."""
    return _width(_held(left, right), left, right, None, FULL)


def declared_width(left: Column, right: Column) -> Width:
    """The same from the declared types only, whatever the values are: for evidence columns."""
    return _width(max(left.digits, right.digits), left, right, None, FULL)


def _held(left: Column, right: Column) -> int:
    return max(column.digits if column.held is None else column.held for column in (left, right))


def _width(digits: int, left: Column, right: Column, within: Within | None, most: int) -> Width:
    bounds = [] if within is None else [within.absolute, within.minus, within.plus]
    there = [bound for bound in bounds if bound is not None]
    scale = max(left.scale, right.scale, *map(scale_of, there))
    digits = max([digits, *map(digits_of, there)])
    if digits + scale < NARROW:
        return Width(precision=NARROW, scale=scale)
    return Width(precision=WIDE if digits + scale <= WIDE else most, scale=scale)


def digits_of(value: Decimal) -> int:
    """Digits before the point."""
    return max(0, value.adjusted() + 1) if value else 0


def scale_of(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


def unscaled(value: Decimal, scale: int) -> int:
    """A decimal as an integer of its smallest unit, which Python adds without rounding."""
    return int(value.scaleb(scale, EXACT))


def within_sql(within: Within, left: str, right: str, size: Width) -> str:
    """Whether right is within the tolerance of left; bounds are inclusive."""
    if within.minus is not None or within.plus is not None:
        minus, plus = within.minus or Decimal(0), within.plus or Decimal(0)
        return (
            f"({right} - {left} >= {size.literal(-minus)} "
            f"AND {right} - {left} <= {size.literal(plus)})"
        )
    ways = []
    if within.absolute is not None:
        ways.append(f"ABS({right} - {left}) <= {size.literal(within.absolute)}")
    if within.percent is not None:
        share = f"CAST('{within.percent / 100:f}' AS DECIMAL(9, 6))"
        # Of two narrow decimals DuckDB makes a narrow product, and fails if it does not fit.
        wide = replace(size, precision=WIDE).cast(f"ABS({left})")
        ways.append(f"ABS({right} - {left}) <= {share} * {wide}")
    return f"({' OR '.join(ways)})"


def is_within(within: Within, left: int, right: int, scale: int) -> bool:
    """The same in Python, for amounts as integers of their smallest unit."""
    away = right - left
    if within.minus is not None or within.plus is not None:
        return -_places(within.minus, scale) <= away <= _places(within.plus, scale)
    near = within.absolute is not None and abs(away) <= _places(within.absolute, scale)
    if near or within.percent is None:
        return near
    return abs(away) * 10**6 <= unscaled(within.percent, 4) * abs(left)


def _places(bound: Decimal | None, scale: int) -> int:
    return 0 if bound is None else unscaled(bound, scale)
