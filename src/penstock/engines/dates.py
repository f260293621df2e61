"""Dates and timestamps of any year as text. Every engine uses these, because each writes years
outside 1 to 9999 differently or fails.

A year has four digits; before 0 it has a minus sign, after 9999 a plus sign (ISO 8601). The year
before 1 is 0.
"""

from __future__ import annotations

from datetime import date

import pyarrow as pa

_EPOCH = date(1970, 1, 1).toordinal()
_YEARS, _CYCLE = 400, 146_097
"""The calendar repeats after 400 years, which have this many days."""
_LAST_YEAR = 9999
_MICROS = 86_400 * 10**6
FIRST_DAY, LAST_DAY = (date(year, 1, 1).toordinal() - _EPOCH for year in (1, _LAST_YEAR))
LAST_DAY += 364
"""The first and last day that all engines format the same way, counted from 1970."""
FIRST_MICRO, LAST_MICRO = FIRST_DAY * _MICROS, (LAST_DAY + 1) * _MICROS - 1


def far_date_or(day: str, near: str) -> str:
    """SQL for the text of a day; `near` is used for years that the engine writes correctly."""
    is_near = f"{day} BETWEEN {FIRST_DAY} AND {LAST_DAY}"
    return f"CASE WHEN {is_near} THEN {near} ELSE _date_text({day}) END"


def far_stamp_or(micros: str, near: str) -> str:
    """The same for microseconds since 1970."""
    is_near = f"{micros} BETWEEN {FIRST_MICRO} AND {LAST_MICRO}"
    return f"CASE WHEN {is_near} THEN {near} ELSE _stamp_text({micros}) END"


def date_texts(days: pa.Array) -> pa.Array:
    """Days since 1970 as `2024-01-31`."""
    numbers = days.to_pylist()
    return pa.array([None if day is None else date_text(day) for day in numbers], pa.string())


def stamp_texts(micros: pa.Array) -> pa.Array:
    """Microseconds since 1970 as `2024-01-31T12:00:00.000000`."""
    numbers = micros.to_pylist()
    return pa.array([None if at is None else stamp_text(at, 6) for at in numbers], pa.string())


def date_text(day: int) -> str:
    cycle, rest = divmod(day + _EPOCH - 1, _CYCLE)
    shown = date.fromordinal(rest + 1)
    year = shown.year + cycle * _YEARS
    sign = "-" if year < 0 else "+" if year > _LAST_YEAR else ""
    return f"{sign}{abs(year):04d}-{shown.month:02d}-{shown.day:02d}"


def stamp_text(ticks: int, decimals: int) -> str:
    """Ticks since 1970 as text; a tick is the last of `decimals` decimals of a second."""
    seconds, fraction = divmod(ticks, 10**decimals)
    day, second = divmod(seconds, 86_400)
    return f"{date_text(day)}T{clock_text(second, fraction, decimals)}"


def clock_text(second: int, fraction: int, decimals: int) -> str:
    minutes, rest = divmod(second, 60)
    clock = f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"
    return f"{clock}.{fraction:0{decimals}d}" if decimals else clock


def day_of(year: int, month: int, day: int) -> int:
    """The number of days from 1970 to a date; ValueError if the calendar has no such date."""
    cycle, within = divmod(year - 1, _YEARS)
    return date(within + 1, month, day).toordinal() + cycle * _CYCLE - _EPOCH
