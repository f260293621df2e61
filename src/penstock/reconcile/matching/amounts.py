"""Amounts in SQL, exact: every number becomes a decimal that holds both sides and the tolerance,
before any arithmetic.

Amounts have 28 digits at most: that leaves room for a fraction of nine digits beside them, so no
product passes the 38 digits of an engine. Numbers that are only compared, not calculated with, may
have all 38.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.matching.column import FREE_SCALE, Kind

if TYPE_CHECKING:
    from penstock.engines.contract import Words
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.recipes.model import Within

NARROW, WIDE, FULL = 18, 28, 38
_TEXT_DIGITS = WIDE - FREE_SCALE
TEXT_NUMBER = rf"^-?[0-9]{{1,{_TEXT_DIGITS}}}([.][0-9]{{1,{FREE_SCALE}}})?$"
_SMALL = 2**30
_SCALED_ERROR = "CAST('4.440892098500626e-16' AS DOUBLE)"
"""2**-51: twice what a double and its product with a million can be off, as a share of it."""
EXACT = Context(prec=120)
"""Python rounds sums of decimals to 28 digits unless it is told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    precision: int
    scale: int

    def of_sums(self, within: Within) -> Width:
        """Many amounts make more digits than one; all there are, unless a share of the sum is
        calculated."""
        return replace(self, precision=FULL if within.percent is None else WIDE)

    def cast(self, sql: str) -> str:
        return f"CAST({sql} AS {self.type})"

    @property
    def type(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"

    def number(self, column: Column, words: Words) -> str:
        """A column as an amount of this width."""
        return self.cast(readable(column, words))

    def literal(self, value: Decimal) -> str:
        return self.cast(f"'{value:f}'")


def readable(column: Column, words: Words) -> str:
    """What of a column is read as a number."""
    if column.is_float:
        return of_float(column.sql, words)
    return filled(column.sql) if column.kind is Kind.TEXT else column.sql


def of_float(number: str, words: Words) -> str:
    """The decimals of a float that are kept: its shortest text, rounded half away from zero.

    Engines multiply by a million and round the product, which is off by the errors of a double:
    the same result unless the product is about half way between two integers. Those few are
    rounded from their text, and so are large numbers."""
    number, kind = f"CAST({number} AS DOUBLE)", f"DECIMAL({WIDE}, {FREE_SCALE})"
    scaled = f"({number} * CAST({10**FREE_SCALE} AS DOUBLE))"
    from_half = f"ABS({scaled} - FLOOR({scaled}) - CAST('0.5' AS DOUBLE))"
    is_clear = f"ABS({number}) < {_SMALL} AND {from_half} > ABS({scaled}) * {_SCALED_ERROR}"
    text = f"TRY_CAST({words.rounded(number, FREE_SCALE)} AS {kind})"
    return f"CASE WHEN {is_clear} THEN TRY_CAST({number} AS {kind}) ELSE {text} END"


def filled(text: str) -> str:
    """A text without spaces and tabs around it, null where nothing is left."""
    return f"NULLIF(TRIM(BOTH ' \t' FROM {text}), '')"


def width(left: Column, right: Column, within: Within | None = None) -> Width:
    """What holds all values of both, their differences and the bounds."""
    return _width(_held(left, right), left, right, within, WIDE)


def compared_width(left: Column, right: Column) -> Width:
    """What holds all values of both, where nothing is calculated."""
    return _width(_held(left, right), left, right, None, FULL)


def declared_width(left: Column, right: Column) -> Width:
    """The same by the types alone, whatever the values are: for what others will read."""
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
    """Before the point."""
    return max(0, value.adjusted() + 1) if value else 0


def scale_of(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


def unscaled(value: Decimal, scale: int) -> int:
    """A decimal as a whole number of its last places, which Python adds without rounding."""
    return int(value.scaleb(scale, EXACT))


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
        # Of two narrow decimals DuckDB makes a narrow product, and fails if it does not fit.
        wide = replace(size, precision=WIDE).cast(f"ABS({left})")
        ways.append(f"ABS({right} - {left}) <= {share} * {wide}")
    return f"({' OR '.join(ways)})"


def is_within(within: Within, left: int, right: int, scale: int) -> bool:
    """The same in Python, of amounts as whole numbers of their last places."""
    away = right - left
    if within.minus is not None or within.plus is not None:
        return -_places(within.minus, scale) <= away <= _places(within.plus, scale)
    near = within.absolute is not None and abs(away) <= _places(within.absolute, scale)
    if near or within.percent is None:
        return near
    return abs(away) * 10**6 <= unscaled(within.percent, 4) * abs(left)


def _places(bound: Decimal | None, scale: int) -> int:
    return 0 if bound is None else unscaled(bound, scale)
