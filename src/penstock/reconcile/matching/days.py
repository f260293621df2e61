"""The day of a value, as its number since 1970, in SQL that all engines evaluate the same way.

Days are counted in the recipe's time zone. A date is that day. A timestamp with a zone is an
instant, and so is a text with an offset (`2024-01-31T23:30:00-05:00`, `…Z`): its day is the local
day in the recipe's zone. A timestamp or a text without a zone is a local time, and its day is the
one written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engines.zones import UTC
from penstock.reconcile.matching.amounts import filled
from penstock.reconcile.matching.column import Kind

if TYPE_CHECKING:
    from penstock.engines.contract import Dialect
    from penstock.reconcile.matching.column import Column

_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
_OFFSET = r"([Zz]|[+-][01][0-9](:?[0-5][0-9])?)"
TEXT_DATE = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([Tt ]{_TIME}{_OFFSET}?)?$"
_INSTANT = rf"^.{{10}}[Tt ]{_TIME}{_OFFSET}$"
_SECONDS = 86_400
_PER_SECOND = {"us": 10**6, "ns": 10**9}


def day(column: Column, dialect: Dialect, zone: str) -> str:
    """The day of a column that is a date, a timestamp, or text that has been checked."""
    match column.kind:
        case Kind.MOMENT:
            ticks, per_second = dialect.ticks(column.sql, column.unit), _PER_SECOND[column.unit]
            if column.zoned and zone != UTC:
                return day_of_instant(dialect, dialect.floor_div(ticks, per_second), zone)
            return _whole(dialect.floor_div(ticks, per_second * _SECONDS))
        case Kind.TEXT:
            return day_of_text(dialect, filled(column.sql), zone)
    return dialect.day(column.sql)


def wrong_text(column: Column, dialect: Dialect) -> str:
    """Whether a text is not null and not a day."""
    text = filled(column.sql)
    return f"{text} IS NOT NULL AND NOT ({is_text_date(text, dialect)})"


def is_text_date(text: str, dialect: Dialect) -> str:
    """Whether a text is a day or a timestamp."""
    real = f"TRY_CAST(SUBSTR({text}, 1, 10) AS DATE) IS NOT NULL"
    return f"{dialect.matches(text, TEXT_DATE)} AND {real}"


def day_of_text(dialect: Dialect, text: str, zone: str) -> str:
    """The day of a text that `is_text_date` accepts."""
    date = dialect.day(f"TRY_CAST(SUBSTR({text}, 1, 10) AS DATE)")
    second = f"CASE WHEN SUBSTR({text}, 17, 1) = ':' THEN {_digits(text, 18)} ELSE 0 END"
    clock = f"{_digits(text, 12)} * 3600 + {_digits(text, 15)} * 60 + {second}"
    offset = dialect.replace(text, r"^.*([+-][0-9]{2}):?([0-9]{2})?$", r"\1\2")
    minutes = f"{_digits(offset, 2)} * 60 + COALESCE({_digits(offset, 4)}, 0)"
    sign = f"CASE SUBSTR({offset}, 1, 1) WHEN '+' THEN 1 WHEN '-' THEN -1 END"
    ahead = f"COALESCE({sign} * ({minutes}), 0)"
    seconds = f"(CAST({date} AS BIGINT) * {_SECONDS} + {clock} - ({ahead}) * 60)"
    instant = dialect.matches(text, _INSTANT)
    return f"CASE WHEN {instant} THEN {day_of_instant(dialect, seconds, zone)} ELSE {date} END"


def day_of_instant(dialect: Dialect, seconds: str, zone: str) -> str:
    """The local day in a zone of an instant in seconds since 1970 in UTC."""
    local = seconds if zone == UTC else f"({seconds} + {dialect.zone_offset(zone, seconds)})"
    return _whole(dialect.floor_div(local, _SECONDS))


def _whole(sql: str) -> str:
    return f"CAST({sql} AS INTEGER)"


def _digits(text: str, place: int) -> str:
    return f"TRY_CAST(SUBSTR({text}, {place}, 2) AS BIGINT)"
