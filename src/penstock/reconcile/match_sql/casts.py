"""Casts of typed SQL, exact or refused: a value that does not fit fails the query, or is null.

Called for CAST by `cast_syntax`, and by functions that take dates or amounts.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.match_sql import dates
from penstock.reconcile.match_sql.parse import refused, shown
from penstock.reconcile.match_sql.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    Sort,
    SqlType,
    decimal,
    one_zero,
    timestamp,
)
from penstock.reconcile.match_sql.values import DAY_SECONDS, PER_SECOND, Value, narrowed
from penstock.reconcile.matching.amounts import FULL, WIDE, filled, of_float
from penstock.reconcile.matching.column import FREE_SCALE

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.reconcile.match_sql.values import Maker


_EXACT_DOUBLE = 15
_BIGINT_DIGITS = 19
_WHOLE_BOUNDS = {3: 2**7 - 1, 5: 2**15 - 1, 10: 2**31 - 1}
AMOUNT = (WIDE - FREE_SCALE, FREE_SCALE)
PERCENT = (3, 4)


def as_number(maker: Maker, node: exp.Expr, value: Value, kind: SqlType, *, safe: bool) -> Value:
    """Rounded half away from zero. A text must not have more decimals than the type; a value
    that does not fit fails the query, or is null if `safe`."""
    sort, digits = value.type.sort, value.type.digits + (value.type.scale > kind.scale)
    if sort is Sort.NUMBER and digits <= kind.digits:
        return replace(_exact_cast(maker, value, kind), node=node, constant=None)
    if sort is Sort.BOOLEAN:
        ones = f"CASE WHEN {value.sql} THEN 1 WHEN NOT {value.sql} THEN 0 END"
        return Value(sql=f"CAST({ones} AS {kind.sql})", type=kind, node=node)
    if sort is Sort.NULL:
        return replace(maker.fits(value, kind), node=node)
    if sort not in (Sort.NUMBER, Sort.TEXT, Sort.DOUBLE):
        raise _uncastable(node, value, _named(kind))
    number = _tried(maker, value, kind)
    if safe:
        return Value(sql=number, type=kind, node=node)
    wrong = f"{value.sql} IS NOT NULL AND {number} IS NULL"
    return maker.guarded(node, number, kind, value, wrong, f"does not fit {_named(kind)}")


def _tried(maker: Maker, value: Value, kind: SqlType) -> str:
    """A number, text or double as a number; null where it does not fit."""
    source = value.sql
    if value.type.sort is Sort.DOUBLE:
        source = maker.dialect.rounded(value.sql, kind.scale)
    number = narrowed("TRY_CAST", source, decimal(kind.digits, kind.scale))
    if value.type.sort is Sort.TEXT:
        decimals = rf"([.][0-9]{{1,{kind.scale}}})?" if kind.scale else ""
        pattern = rf"^[+-]?[0-9]{{1,{FULL}}}{decimals}$"
        number = f"CASE WHEN {maker.dialect.matches(value.sql, pattern)} THEN {number} END"
    if kind.whole:
        number = narrowed("TRY_CAST", number, kind)
    if kind.whole and kind.digits < _BIGINT_DIGITS:
        most = _WHOLE_BOUNDS[kind.digits]
        number = f"CASE WHEN {number} BETWEEN -{most} - 1 AND {most} THEN {number} END"
    return number


def _exact_cast(maker: Maker, value: Value, kind: SqlType) -> Value:
    if kind.whole and value.type.scale:
        value = maker.fits(value, decimal(value.type.digits + 1, 0))
    return maker.fits(value, kind)


def as_double(maker: Maker, node: exp.Expr, value: Value, *, safe: bool) -> Value:
    """The nearest double, from the decimal digits."""
    match value.type.sort:
        case Sort.DOUBLE | Sort.NULL:
            return replace(maker.fits(value, DOUBLE), node=node)
        case Sort.NUMBER if value.type.whole and value.type.digits <= _EXACT_DOUBLE:
            return Value(sql=f"CAST({value.sql} AS DOUBLE)", type=DOUBLE, node=node)
        case Sort.NUMBER:
            sql = one_zero(f"CAST({maker.as_text(value).sql} AS DOUBLE)")
            return Value(sql=sql, type=DOUBLE, node=node)
        case Sort.TEXT:
            written = r"^[+-]?([0-9]{1,300}([.][0-9]{1,300})?([eE][+-]?[0-9]{1,3})?|NaN)$"
            number = f"TRY_CAST({value.sql} AS DOUBLE)"
            finite = f"abs({number}) < CAST('Infinity' AS DOUBLE)"
            is_number = f"{maker.dialect.matches(value.sql, written)}"
            is_double = f"{is_number} AND ({value.sql} = 'NaN' OR {finite})"
            sql = f"CASE WHEN {is_double} THEN {one_zero(number)} END"
            if safe:
                return Value(sql=sql, type=DOUBLE, node=node)
            wrong = f"{value.sql} IS NOT NULL AND NOT ({is_double})"
            return maker.guarded(node, sql, DOUBLE, value, wrong, "is no DOUBLE")
    raise _uncastable(node, value, "DOUBLE")


def as_date(maker: Maker, node: exp.Expr, value: Value, *, safe: bool) -> Value:
    """The day of a timestamp in the recipe's time zone."""
    match value.type.sort:
        case Sort.DATE | Sort.NULL:
            return replace(maker.fits(value, DATE), node=node)
        case Sort.TIMESTAMP:
            return Value(
                sql=maker.dialect.date(dates.day(maker, node, value)), type=DATE, node=node
            )
        case Sort.TEXT:
            text = value.sql
            pattern = maker.dialect.matches(text, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
            real = f"TRY_CAST({text} AS DATE)"
            sql = f"CASE WHEN {pattern} AND substr({text}, 1, 4) <> '0000' THEN {real} END"
            if safe:
                return Value(sql=sql, type=DATE, node=node)
            wrong = f"{text} IS NOT NULL AND {sql} IS NULL"
            return maker.guarded(node, sql, DATE, value, wrong, "is no DATE such as 2024-01-31")
    raise _uncastable(node, value, "DATE")


def as_timestamp(maker: Maker, node: exp.Expr, value: Value) -> Value:
    """Midnight of a date."""
    kind = timestamp("us", zoned=False)
    if value.type.sort is Sort.TIMESTAMP and not value.type.zoned:
        return replace(value, node=node)
    if value.type.sort is not Sort.DATE:
        raise _uncastable(node, value, "TIMESTAMP")
    ticks = DAY_SECONDS * PER_SECOND["us"]
    sql = f"(CAST({maker.dialect.day(value.sql)} AS BIGINT) * {ticks})"
    return Value(sql=sql, type=kind, node=node)


def as_boolean(maker: Maker, node: exp.Expr, value: Value) -> Value:
    if value.type.sort in (Sort.BOOLEAN, Sort.NULL):
        return replace(maker.fits(value, BOOLEAN), node=node)
    raise _uncastable(node, value, "BOOLEAN")


def _uncastable(node: exp.Expr, value: Value, to: str) -> Exception:
    instead = "Write the comparison that is meant, or cast it in the source's query."
    return refused(node, f"{value} cannot be cast to {to}.", instead)


def amount(maker: Maker, node: exp.Expr, value: Value, digits: int, scale: int) -> str:
    """A value of any type as a decimal; only doubles are rounded."""
    kind, more = decimal(digits, scale), f"has more than {scale} decimals"
    match value.type.sort:
        case Sort.NUMBER if value.type.scale <= scale and value.type.digits <= digits:
            return maker.fits(value, kind).sql
        case Sort.NUMBER if isinstance(value.constant, Decimal):
            raise refused(node, f"{shown(value.node)} {more}.", "Write it with fewer.")
        case Sort.NUMBER:
            number = narrowed("TRY_CAST", value.sql, kind)
            checks = [
                (f"{value.sql} IS NOT NULL AND {number} IS NULL", f"is too large for {kind}"),
                (f"CAST({number} AS {_wider(value.type, kind).sql}) <> {value.sql}", more),
            ]
        case Sort.DOUBLE:
            number = f"TRY_CAST({of_float(value.sql, maker.dialect)} AS {kind.sql})"
            checks = [(f"{value.sql} IS NOT NULL AND {number} IS NULL", "is no such number")]
        case Sort.TEXT:
            text = filled(value.sql)
            number = f"TRY_CAST({text} AS {kind.sql})"
            real = maker.dialect.matches(text, rf"^-?[0-9]{{1,{digits}}}([.][0-9]{{1,{FULL}}})?$")
            longer = maker.dialect.matches(text, rf"[.][0-9]{{{scale}}}0*[1-9]")
            checks = [
                (
                    f"{text} IS NOT NULL AND NOT ({real} AND {number} IS NOT NULL)",
                    "is no number",
                ),
                (longer, more),
            ]
        case _:
            raise refused(node, f"{value} is no number.", "Cast it: CAST(x AS DECIMAL(20, 2)).")
    sql = number
    for wrong, why in reversed(checks):
        sql = maker.guarded(node, sql, kind, value, wrong, why).sql
    return sql


def _wider(a: SqlType, b: SqlType) -> SqlType:
    digits, scale = max(a.digits, b.digits), max(a.scale, b.scale)
    return decimal(min(digits, FULL - scale), scale)


def _named(kind: SqlType) -> str:
    if not kind.whole:
        return kind.sql
    return {3: "TINYINT", 5: "SMALLINT", 10: "INTEGER"}.get(kind.digits, "BIGINT")
