"""Reference semantics of values in rules, in plain Python, written from docs/guides/reconcile.md.

Rows are dictionaries of Python values by the exact names of their columns; a `Side` knows the Arrow
type of each.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]
EPOCH = date(1970, 1, 1)
FREE_SCALE = 6
AMOUNT_DIGITS = 28
COMPARED_DIGITS = 38
_NUMBER = re.compile(r"-?[0-9]{1,22}([.][0-9]{1,6})?")
_MOMENT = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"([Tt ](?P<time>[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)"
    r"(?P<offset>[Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


class Refused(Exception):
    """The guide says that a run with this value stops: the column and the side."""

    def __init__(self, side: str, column: str) -> None:
        super().__init__(f"{side} {column}")
        self.side = side
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a book: its rows in file order, and the types of their columns. `uid` is a
    column that numbers the records."""

    name: str
    schema: pa.Schema
    rows: Sequence[Row]
    key: Sequence[str]
    uid: str

    def type(self, column: str) -> pa.DataType:
        return self.schema.field(column).type

    def kind(self, column: str) -> str:
        return kind(self.type(column))

    def scale(self, column: str) -> int:
        """Decimals that are kept of a column's values."""
        of = self.type(column)
        if pa.types.is_decimal(of):
            return int(of.scale)
        return 0 if pa.types.is_integer(of) else FREE_SCALE


def kind(of: pa.DataType) -> str:
    if pa.types.is_integer(of) or pa.types.is_decimal(of) or pa.types.is_floating(of):
        return "number"
    if pa.types.is_string(of):
        return "text"
    if pa.types.is_date(of):
        return "date"
    return "moment" if pa.types.is_timestamp(of) else "other"


def number(side: Side, column: str, row: Row, scale: int, digits: int) -> Decimal | None:
    """A value as a number of so many digits, `scale` of them after the point; it must fit, and
    nothing is rounded but floats, of which six decimals of their shortest text are kept."""
    value = row[column]
    if isinstance(value, str):
        value = value.strip(" \t")
        if value == "":
            return None
        if not _NUMBER.fullmatch(value):
            raise Refused(side.name, column)
    if value is None:
        return None
    exact = rounded(value) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or abs(exact) >= Decimal(10) ** (digits - scale):
        raise Refused(side.name, column)
    return exact


def rounded(value: float) -> Decimal:
    exact = Decimal(repr(value))
    if not exact.is_finite():
        return exact
    with localcontext(prec=400):
        return exact.quantize(Decimal("0.000001"), ROUND_HALF_UP)


def day(side: Side, column: str, row: Row, zone: str) -> int | None:
    """The number of the day since 1970 that clocks in the zone showed."""
    value = row[column]
    match value:
        case None:
            return None
        case datetime():
            return _shown(value, zone)
        case date():
            return (value - EPOCH).days
        case str() if value.strip(" \t") == "":
            return None
        case str():
            return _day_of_text(side, column, value.strip(" \t"), zone)
    raise TypeError(f"{value!r} is no day")


def _day_of_text(side: Side, column: str, text: str, zone: str) -> int:
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        raise Refused(side.name, column)
    try:
        at = date.fromisoformat(parts["date"])
        clock = time(*(int(part[:2]) for part in (parts["time"] or "00").split(":")))
        if parts["offset"] is None:
            return (at - EPOCH).days
        return _shown(datetime.combine(at, clock, _offset(parts["offset"])), zone)
    except ValueError:
        raise Refused(side.name, column) from None


def _offset(text: str) -> timezone:
    if text in "Zz":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(ahead if text[0] == "+" else -ahead)


def _shown(moment: datetime, zone: str) -> int:
    local = moment if moment.tzinfo is None else moment.astimezone(ZoneInfo(zone))
    return (local.date() - EPOCH).days


def instant(value: datetime | None, zone: str, *, local: bool) -> Decimal | None:
    """A moment to compare: seconds in UTC, or what clocks in the zone showed, where the other
    side has no zone."""
    if value is None:
        return None
    if value.tzinfo is not None:
        value = value.astimezone(ZoneInfo(zone)).replace(tzinfo=UTC) if local else value
    else:
        value = value.replace(tzinfo=UTC)
    apart = value - datetime(1970, 1, 1, tzinfo=UTC)
    return Decimal(apart.days * 86_400 + apart.seconds) + Decimal(apart.microseconds) / 10**6


def text(value: Any) -> str | None:
    """A value that is compared as text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return f"{Decimal(repr(value or 0.0)):f}"
    if isinstance(value, time):
        return value.isoformat().rstrip("0") if value.microsecond else f"{value:%H:%M:%S}"
    if isinstance(value, datetime):
        shown = value if value.tzinfo is None else value.astimezone(UTC)
        return f"{shown:%Y-%m-%dT%H:%M:%S.%f}{'' if value.tzinfo is None else 'Z'}"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def lower(value: str) -> str:
    """Character by character: a final sigma is a sigma, a dotted capital I an i."""
    return "".join({"\u0130": "i", "\u03c2": "\u03c3"}.get(sign, sign.lower()) for sign in value)


def step(name: str | dict[str, str], value: str) -> str:
    match name:
        case "trim":
            return value.strip(" \t\r\n")
        case "case":
            return lower(value)
        case "punctuation":
            kinds = [(sign, unicodedata.category(sign)[0]) for sign in value]
            return "".join(sign for sign, kind_of in kinds if sign == " " or kind_of in "LN")
        case "spaces":
            return re.sub(r"[ \t\r\n]", "", value)
        case "digits":
            return re.sub(r"[^0-9]", "", value)
        case {"regex": pattern, "replace": to}:
            return re.sub(pattern, to, value, flags=re.ASCII)
    raise ValueError(name)


def similarity(a: str, b: str, method: str) -> int:
    """In ten-thousandths, rounded down."""
    a, b = lower(a), lower(b)
    if method == "token":
        x, y = ({word for word in value.split(" ") if word} for value in (a, b))
        return 10_000 if not x and not y else 20_000 * len(x & y) // (len(x) + len(y))
    longer = max(len(a), len(b))
    return 10_000 if not longer else 10_000 * (longer - edits(a, b)) // longer


def edits(a: str, b: str) -> int:
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            changed = table[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, changed)
    return table[len(a), len(b)]


def within(bounds: dict[str, Any], left: Decimal, right: Decimal) -> bool:
    """Bounds are inclusive; Python would round sums of more than 28 digits."""
    with localcontext(prec=200):
        away = right - left
        if "minus" in bounds or "plus" in bounds:
            low, high = (Decimal(str(bounds.get(name, 0))) for name in ("minus", "plus"))
            return -low <= away <= high
        near = "absolute" in bounds and abs(away) <= Decimal(str(bounds["absolute"]))
        percent = Decimal(str(bounds.get("percent", -1)))
        return near or (percent >= 0 and abs(away) * 100 <= percent * abs(left))


def decimals(value: Any) -> int:
    return max(0, -int(Decimal(str(value)).as_tuple().exponent))
