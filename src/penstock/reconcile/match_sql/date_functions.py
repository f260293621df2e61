"""The functions of match_sql over dates, and EXTRACT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.reconcile.match_sql import casts
from penstock.reconcile.match_sql.dates import day as day_of
from penstock.reconcile.match_sql.parse import refused
from penstock.reconcile.match_sql.types import DATE, Sort, whole
from penstock.reconcile.match_sql.values import DAY_SECONDS, PER_SECOND, Value

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.reconcile.match_sql.call import Call
    from penstock.reconcile.match_sql.values import Maker

_PARTS = {"year": 5, "quarter": 1, "month": 2, "day": 2, "isodow": 1, "doy": 3, "week": 2}
_CLOCK = {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}


def date_part(maker: Maker, node: exp.Expr, unit: str, value: Value) -> Value:
    """EXTRACT(unit FROM value)."""
    if unit in _PARTS:
        day = (
            casts.as_date(maker, node, value, safe=False)
            if value.type.sort is not Sort.DATE
            else value
        )
        if value.type.sort not in (Sort.DATE, Sort.TIMESTAMP):
            raise refused(node, f"{value} is no date.", "Cast it: CAST(x AS DATE).")
        sql = f"CAST(EXTRACT({unit} FROM {day.sql}) AS BIGINT)"
        return Value(sql=sql, type=whole(_PARTS[unit]), node=node)
    if unit not in _CLOCK:
        names = ", ".join([*_PARTS, *_CLOCK])
        raise refused(node, f"There is no part {unit[:40]} of a date.", f"There are: {names}.")
    if value.type.sort is not Sort.TIMESTAMP or value.type.zoned:
        raise refused(
            node,
            f"{value} is no timestamp without a zone.",
            "Take the parts of the clock in the source's query.",
        )
    unit_seconds, count = _CLOCK[unit]
    seconds = maker.dialect.floor_div(value.sql, PER_SECOND[value.type.unit])
    days = maker.dialect.floor_div(seconds, DAY_SECONDS)
    sql = f"(({seconds} - {DAY_SECONDS} * {days}) % {unit_seconds * count})"
    sql = maker.dialect.floor_div(sql, unit_seconds)
    return Value(sql=f"CAST({sql} AS BIGINT)", type=whole(2), node=node)


def part(c: Call) -> Value:
    return date_part(c.maker, c.node, c.name, c.arguments[0])


def date_diff(c: Call) -> Value:
    unit = c.constant_text(0, "The unit").lower()
    days = [day_of(c.maker, c.node, value) for value in c.arguments[1:] if _is_dated(c, value)]
    if unit == "day":
        return c.result(f"CAST({days[1]} - {days[0]} AS BIGINT)", whole(8))
    if unit not in ("month", "year"):
        raise refused(c.node, f"date_diff has no unit {unit[:40]}.", "Write day, month or year.")
    months = [_months(c, value, unit) for value in c.arguments[1:]]
    return c.result(f"({months[1]} - {months[0]})", whole(6))


def _is_dated(c: Call, value: Value) -> bool:
    if value.type.sort not in (Sort.DATE, Sort.TIMESTAMP):
        raise refused(c.node, f"{value} is no date.", "Cast it: CAST(x AS DATE).")
    return True


def _months(c: Call, value: Value, unit: str) -> str:
    year = date_part(c.maker, c.node, "year", value).sql
    month = date_part(c.maker, c.node, "month", value).sql
    return year if unit == "year" else f"({year} * 12 + {month})"


def date_trunc(c: Call) -> Value:
    unit, value = c.constant_text(0, "The unit").lower(), c.arguments[1]
    if value.type.sort is not Sort.DATE:
        raise refused(c.node, f"date_trunc takes a date, and {value} is none.", "CAST(x AS DATE).")
    day, dialect = c.dialect.day(value.sql), c.dialect
    names = ("day", "doy", "isodow")
    part = {name: f"CAST(EXTRACT({name} FROM {value.sql}) AS INTEGER)" for name in names}
    match unit:
        case "month":
            first = f"{day} - {part['day']} + 1"
        case "week":
            first = f"{day} - {part['isodow']} + 1"
        case "year":
            first = f"{day} - {part['doy']} + 1"
        case "day":
            first = day
        case _:
            raise refused(
                c.node,
                f"date_trunc has no unit {unit[:40]}.",
                "Write day, week, month or year.",
            )
    return c.result(dialect.date(f"({first})"), DATE)
