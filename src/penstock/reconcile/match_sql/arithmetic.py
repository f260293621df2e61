"""Arithmetic of typed SQL: every result has a type that holds it, on every engine.

Called for operators by `expressions` and for functions by `functions`."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.match_sql.parse import refused, shown
from penstock.reconcile.match_sql.types import (
    DOUBLE,
    WHOLE_DIGITS,
    Sort,
    SqlType,
    decimal,
    one_zero,
    whole,
)
from penstock.reconcile.match_sql.values import Value, size_of
from penstock.reconcile.matching.amounts import FULL

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.reconcile.match_sql.values import Maker


DIVISION_SCALE = 6
_QUOTIENT_DIGITS = 33
"""What DataFusion divides with four more digits in the 38 that it has."""
_BY_ZERO = "is zero, and cannot divide; write nullif(x, 0)"


def added(maker: Maker, node: exp.Expr, operator: str, a: Value, b: Value) -> Value:
    """Addition and subtraction."""
    kind, (a, b) = maker.alike(node, [a, b])
    if kind.sort is Sort.DOUBLE:
        return Value(sql=one_zero(f"({a.sql} {operator} {b.sql})"), type=DOUBLE, node=node)
    check_number(node, kind, a)
    result = _sized(node, kind.digits + 1, kind.scale, whole_numbers=kind.whole)
    if not result.whole:
        a, b = maker.fits(a, result), maker.fits(b, result)
    sql = f"({a.sql} {operator} {b.sql})"
    return Value(
        sql=sql if result.whole else f"CAST({sql} AS {result.sql})",
        type=result,
        node=node,
    )


def multiplied(maker: Maker, node: exp.Expr, a: Value, b: Value) -> Value:
    if Sort.DOUBLE in (a.type.sort, b.type.sort):
        _, (a, b) = maker.alike(node, [a, b])
        return Value(sql=one_zero(f"({a.sql} * {b.sql})"), type=DOUBLE, node=node)
    for value in (a, b):
        check_number(node, value.type, value)
    digits, scale = a.type.digits + b.type.digits, a.type.scale + b.type.scale
    result = _sized(node, digits, scale, whole_numbers=a.type.whole and b.type.whole)
    if result.whole:
        return Value(sql=f"({a.sql} * {b.sql})", type=result, node=node)
    # Of two narrow decimals DuckDB makes a narrow product, and fails if it does not fit.
    x, y = (maker.fits(value, _wide(value.type)) for value in (a, b))
    return Value(sql=f"CAST({x.sql} * {y.sql} AS {result.sql})", type=result, node=node)


def divided(maker: Maker, node: exp.Expr, a: Value, b: Value) -> Value:
    """Division, rounded half away from zero to six decimals or the scale of its operands."""
    if Sort.DOUBLE in (a.type.sort, b.type.sort):
        _, (a, b) = maker.alike(node, [a, b])
        sql = one_zero(f"({a.sql} / {b.sql})")
        return maker.guarded(node, sql, DOUBLE, b, _divides_by_zero(a, b), _BY_ZERO)
    for value in (a, b):
        check_number(node, value.type, value)
    scale = max(DIVISION_SCALE, a.type.scale, b.type.scale)
    digits = a.type.digits + b.type.scale
    wide = 1 + max(digits + scale, b.type.digits + b.type.scale)
    if wide > _QUOTIENT_DIGITS:
        raise refused(
            node,
            f"{shown(node)} needs {wide} digits; {_QUOTIENT_DIGITS} are the most.",
            "Cast its numbers to shorter decimals: CAST(x AS DECIMAL(18, 2)).",
        )
    upper = _places(a, scale + b.type.scale - a.type.scale)
    lower = _places(b, 0)
    number = f"DECIMAL({_QUOTIENT_DIGITS}, 0)"
    doubled = f"CAST({upper} * 2 + {lower} AS {number})"
    parts = maker.dialect.whole_quotient(doubled, f"CAST({lower} * 2 AS {number})")
    smallest = f"CAST('{Decimal(1).scaleb(-scale):f}' AS DECIMAL({scale + 1}, {scale}))"
    kind = decimal(digits, scale)
    away = f"CAST(CAST({parts} AS DECIMAL({digits + scale}, 0)) * {smallest} AS {kind.sql})"
    sql = f"CASE WHEN {_below_zero(a)} <> {_below_zero(b)} THEN -{away} ELSE {away} END"
    return maker.guarded(node, sql, kind, b, _divides_by_zero(a, b), _BY_ZERO)


def _places(value: Value, more: int) -> str:
    """A number without its sign, as a whole number of its last places times a power of ten."""
    scale = value.type.scale
    wide = decimal(_QUOTIENT_DIGITS - scale, scale)
    power = f"CAST('{10 ** (more + scale)}' AS DECIMAL({more + scale + 1}, 0))"
    product = f"abs(CAST({value.sql} AS {wide.sql})) * {power}"
    return f"CAST({product} AS DECIMAL({_QUOTIENT_DIGITS}, 0))"


def whole_divided(maker: Maker, node: exp.Expr, operator: str, a: Value, b: Value) -> Value:
    """`//` truncated, and `%`, its remainder; both towards zero."""
    for value in (a, b):
        check_number(node, value.type, value)
    kind = maker.common_number(node, [a.type, b.type])
    if operator == "%":
        result = kind if kind.whole else decimal(kind.digits, kind.scale)
        x, y = maker.fits(a, result), maker.fits(b, result)
        if kind.whole and kind.digits > WHOLE_DIGITS:
            # The smallest BIGINT has no remainder by -1 that DataFusion can compute.
            wide = decimal(kind.digits, 0)
            sql = f"CAST({maker.fits(a, wide).sql} % {maker.fits(b, wide).sql} AS BIGINT)"
        else:
            sql = f"({x.sql} % {y.sql})"
        return maker.guarded(node, sql, result, b, _divides_by_zero(a, b), _BY_ZERO)
    if kind.scale:
        raise refused(node, f"{shown(node)} divides no whole numbers.", "Write trunc(a / b).")
    wide = decimal(_QUOTIENT_DIGITS, 0)
    if kind.digits > _QUOTIENT_DIGITS:
        raise refused(node, f"{shown(node)} is too long.", "Cast: CAST(x AS DECIMAL(18, 0)).")
    parts = maker.dialect.whole_quotient(
        f"abs({maker.fits(a, wide).sql})",
        f"abs({maker.fits(b, wide).sql})",
    )
    result = decimal(max(1, a.type.digits), 0)
    away = f"CAST({parts} AS {result.sql})"
    sql = f"CASE WHEN {_below_zero(a)} <> {_below_zero(b)} THEN -{away} ELSE {away} END"
    return maker.guarded(node, sql, result, b, _divides_by_zero(a, b), _BY_ZERO)


def negated(maker: Maker, node: exp.Expr, value: Value, function: str = "-") -> Value:
    """`-x`, or `abs(x)`."""
    if value.type.sort is Sort.DOUBLE:
        return Value(sql=one_zero(f"{function}({value.sql})"), type=DOUBLE, node=node)
    check_number(node, value.type, value)
    if value.type.whole and value.type.digits > WHOLE_DIGITS:
        value = maker.fits(value, decimal(value.type.digits, 0))
    constant = value.constant if isinstance(value.constant, Decimal) else None
    if constant is not None and function == "-":
        return maker.number(node, -constant)
    return Value(sql=f"{function}({value.sql})", type=value.type, node=node)


def rounded(maker: Maker, node: exp.Expr, value: Value, scale: int) -> Value:
    """Rounded half away from zero."""
    check_number(node, value.type, value)
    if value.type.scale <= scale:
        return replace(value, node=node, constant=None)
    kind = _sized(node, value.type.digits + 1, scale, whole_numbers=False)
    return replace(maker.fits(value, kind), node=node, constant=None)


def truncated(maker: Maker, node: exp.Expr, value: Value, function: str) -> Value:
    """floor, ceil or trunc to an integer."""
    check_number(node, value.type, value)
    if value.type.scale == 0:
        return replace(value, node=node, constant=None)
    # DataFusion mistakes the type of a remainder whose numbers have different types.
    value = maker.fits(value, decimal(max(1, value.type.digits), value.type.scale))
    rest = f"({value.sql} % CAST('1' AS {value.type.sql}))"
    zero, kind = _zero(value.type), decimal(value.type.digits + 1, 0)
    towards_zero = f"CAST({value.sql} - {rest} AS {kind.sql})"
    away = {
        "floor": f"WHEN {rest} < {zero} THEN -1",
        "ceil": f"WHEN {rest} > {zero} THEN 1",
    }
    step = f"CASE {away[function]} ELSE 0 END" if function in away else "0"
    sql = f"CAST({towards_zero} + CAST({step} AS DECIMAL(1, 0)) AS {kind.sql})"
    return Value(sql=sql, type=kind, node=node)


def _sized(node: exp.Expr, digits: int, scale: int, *, whole_numbers: bool) -> SqlType:
    if whole_numbers and digits <= WHOLE_DIGITS:
        return whole(digits)
    if digits + scale > FULL:
        raise refused(
            node,
            f"{shown(node)} may have {size_of(digits, scale)}.",
            "Cast its numbers to shorter decimals: CAST(x AS DECIMAL(18, 2)).",
        )
    return decimal(digits, scale)


def check_number(node: exp.Expr, kind: SqlType, value: Value) -> None:
    if kind.sort is not Sort.NUMBER:
        raise refused(
            node,
            f"{value} is no number in {shown(node)}.",
            "Cast it: CAST(x AS DECIMAL(20, 2)).",
        )


def _wide(kind: SqlType) -> SqlType:
    """A type with the same decimals that DuckDB stores as a 128-bit decimal."""
    return decimal(max(kind.digits, WHOLE_DIGITS + 1 - kind.scale), kind.scale)


def _zero(kind: SqlType) -> str:
    return f"CAST('0' AS {kind.sql})"


def _below_zero(value: Value) -> str:
    return f"({value.sql} < {_zero(value.type)})"


def _divides_by_zero(a: Value, b: Value) -> str:
    return f"{b.sql} = {_zero(b.type)} AND {a.sql} IS NOT NULL"
