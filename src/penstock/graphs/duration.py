"""ISO 8601 durations: `PT30M`, `P1DT12H`, `P2W`, `PT1.5S`. A year is 365 days, a month 30."""

from __future__ import annotations

import re
from datetime import timedelta

from penstock.kit.errors import InvalidInput

LONGEST = timedelta(days=3653)
_SHOWN = 40
_MAX_TEXT = 100
_NUMBER = r"\d{1,12}(?:[.,]\d{1,9})?"
_DURATION = re.compile(
    rf"P(?!$)(?:(?P<years>{_NUMBER})Y)?(?:(?P<months>{_NUMBER})M)?(?:(?P<weeks>{_NUMBER})W)?(?:(?P<days>{_NUMBER})D)?"
    rf"(?:T(?!$)(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?(?:(?P<seconds>{_NUMBER})S)?)?",
    re.ASCII,
)
_SECONDS = {
    "years": 365 * 86_400,
    "months": 30 * 86_400,
    "weeks": 7 * 86_400,
    "days": 86_400,
    "hours": 3600,
    "minutes": 60,
    "seconds": 1,
}


def parse(written: str, *, field: str = "duration", longest: timedelta | None = None) -> timedelta:
    """Parse a duration; raises InvalidInput unless it is positive and at most `longest`."""
    match = _DURATION.fullmatch(written) if len(written) <= _MAX_TEXT else None
    if match is None:
        raise _refused(field, f"{written[:_SHOWN]!r} is not an ISO 8601 duration")
    parts = {name: value for name, value in match.groupdict().items() if value is not None}
    if any(not value.isdigit() for value in list(parts.values())[:-1]):
        raise _refused(field, f"in {written[:_SHOWN]!r} only the last number may have a fraction")
    span = _sum(parts)
    most = min(longest or LONGEST, LONGEST)
    if span > most:
        raise _refused(
            field, f"{written[:_SHOWN]!r} is longer than {text(most)}", maximum=text(most)
        )
    if not span:
        raise _refused(field, f"{written[:_SHOWN]!r} is zero")
    return span


def text(span: timedelta) -> str:
    """Format a duration in days, hours, minutes and seconds, normalized."""
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{span.microseconds:06}".rstrip("0") if span.microseconds else ""
    days = f"{span.days}D" if span.days else ""
    clock = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    if seconds or fraction:
        clock += f"{seconds}{fraction}S"
    return f"P{days}{'T' if clock or not days else ''}{clock or ('' if days else '0S')}"


def _sum(parts: dict[str, str]) -> timedelta:
    """Values beyond the range of timedelta become LONGEST plus one day."""
    seconds = sum(float(value.replace(",", ".")) * _SECONDS[name] for name, value in parts.items())
    return (
        LONGEST + timedelta(days=1)
        if seconds > 2 * LONGEST.total_seconds()
        else timedelta(seconds=seconds)
    )


def _refused(field: str, problem: str, **details: str) -> InvalidInput:
    return InvalidInput(
        f"{field}: {problem}.", hint="Write it like PT30M, P7D or P1DT12H.", field=field, **details
    )
