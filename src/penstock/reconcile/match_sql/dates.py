"""Days in typed SQL: the day of a value, and a date moved by days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.reconcile.match_sql.arithmetic import check_number
from penstock.reconcile.match_sql.parse import refused, shown
from penstock.reconcile.match_sql.types import DATE, Sort
from penstock.reconcile.match_sql.values import PER_SECOND
from penstock.reconcile.matching.amounts import filled
from penstock.reconcile.matching.days import day_of_instant, day_of_text, is_text_date

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.reconcile.match_sql.values import Maker, Value


_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31."""
_FAR = 4_000_000


def day(maker: Maker, node: exp.Expr, value: Value) -> str:
    """The number of a value's day since 1970."""
    kind, dialect = value.type, maker.dialect
    match kind.sort:
        case Sort.DATE:
            return dialect.day(value.sql)
        case Sort.TIMESTAMP:
            seconds = dialect.floor_div(value.sql, PER_SECOND[kind.unit])
            return day_of_instant(dialect, seconds, maker.zone if kind.zoned else "UTC")
        case Sort.TEXT:
            text = filled(value.sql)
            real = is_text_date(text, dialect)
            failed = f"CAST({maker.failure(value, 'is no date')} AS INTEGER)"
            wrong = f"{text} IS NOT NULL AND NOT ({real})"
            of_text = day_of_text(dialect, text, maker.zone)
            return f"CASE WHEN {wrong} THEN {failed} ELSE {of_text} END"
    raise refused(node, f"{value} is no date in {shown(node)}.", "Cast it: CAST(x AS DATE).")


def moved(maker: Maker, node: exp.Expr, operator: str, date: Value, days: Value) -> Value:
    """A date plus or minus days; from year 1 to 9999."""
    check_number(node, days.type, days)
    if days.type.scale:
        raise refused(node, f"{days} is no whole number of days.", "Write round(x).")
    near = f"({days.sql} BETWEEN -{_FAR} AND {_FAR})"
    day = f"CAST({maker.dialect.day(date.sql)} AS BIGINT) {operator} CAST({days.sql} AS BIGINT)"
    outside = f"NOT ({day} BETWEEN {_FIRST_DAY} AND {_LAST_DAY})"
    never = f"WHEN {date.sql} IS NULL THEN FALSE"
    wrong = f"CASE WHEN NOT {near} THEN TRUE {never} ELSE {outside} END"
    sql = maker.dialect.date(f"({day})")
    why = "days from a date is not between the years 1 and 9999"
    return maker.guarded(node, sql, DATE, days, wrong, why)
