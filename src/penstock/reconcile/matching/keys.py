"""Primary keys as text: one format for evidence, open items and decisions, the same on every
engine.

A part of a key is formatted by its type (guide, "What values mean"). In the key of an open item
three characters of a part are escaped: U+001F, which separates the parts, U+2400, which stands for
a missing part, and U+241B, the escape itself. Two different keys never have the same text, and each
part can be parsed back to its value.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engines.dates import day_of
from penstock.engines.floats import shortest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SEPARATOR, NULL = "\x1f", "\N{SYMBOL FOR NULL}"
_ESCAPE = "\N{SYMBOL FOR ESCAPE}"
_ESCAPED = {_ESCAPE: _ESCAPE, SEPARATOR: "\N{SYMBOL FOR UNIT SEPARATOR}", NULL: NULL}
"""What stands behind an escape for each character; the escape itself is first, for it must be
replaced before the others bring more of it."""
_UNESCAPED = {stand_in: sign for sign, stand_in in _ESCAPED.items()}
_CLOCK = r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]{1,9}))?)?"
_TIME = re.compile(_CLOCK)
_DATE = re.compile(r"([+-]?[0-9]{4,7})-([0-9]{2})-([0-9]{2})")
_MOMENT = re.compile(rf"{_DATE.pattern}(?:[T ]{_CLOCK})?(Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)?")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SHOWN = 60
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")


class UnreadableKey(ValueError):
    """The text is no key of the type."""


def key_sql(texts: Iterable[str]) -> str:
    """The texts of a key's parts joined to one."""
    return f" || '{SEPARATOR}' || ".join(f"COALESCE({_escaped(text)}, '{NULL}')" for text in texts)


def _escaped(text: str) -> str:
    for sign, stand_in in _ESCAPED.items():
        text = f"REPLACE({text}, '{sign}', '{_ESCAPE}{stand_in}')"
    return text


def column(parts: Sequence[str], kind: pa.DataType) -> pa.Array:
    """Parts of keys as values of their column's type, floats as their shortest text: engines differ
    in whether zeros of both signs, and NaN values, are equal."""
    values = [_value(_unescaped(part), kind) for part in parts]
    if pa.types.is_floating(kind):
        return shortest(pa.array(values, pa.float64()).cast(kind).cast(pa.float64()))
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, ValueError):
        raise _unreadable(", ".join(parts), kind) from None


def check(part: str, kind: pa.DataType) -> None:
    """Raise UnreadableKey if a part is no value of its type."""
    column([part], kind)


def _unescaped(part: str) -> str:
    if part == NULL:
        raise UnreadableKey(f"{NULL!r} stands for a missing value, which names no record")
    pieces, at = [], 0
    while (escape := part.find(_ESCAPE, at)) >= 0:
        sign = _UNESCAPED.get(part[escape + 1 : escape + 2])
        if sign is None:
            raise UnreadableKey(
                f"{part[:_SHOWN]!r} has an escape ({_ESCAPE}) that stands for nothing;"
                f" {_ESCAPE} itself is written {_ESCAPE}{_ESCAPE}"
            )
        pieces += [part[at:escape], sign]
        at = escape + 2
    return "".join([*pieces, part[at:]])


def _value(text: str, kind: pa.DataType) -> object:
    reader = next((read for is_kind, read in _READERS if is_kind(kind)), _no_value)
    try:
        return reader(text, kind)
    except (ValueError, InvalidOperation):
        raise _unreadable(text, kind) from None


def _unreadable(text: str, kind: pa.DataType) -> UnreadableKey:
    return UnreadableKey(f"{text[:_SHOWN]!r} is no {kind}")


def _no_value(text: str, _kind: pa.DataType) -> object:
    raise ValueError(text)


def _text(text: str, _kind: pa.DataType) -> str:
    return text


def _integer(text: str, _kind: pa.DataType) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


def _boolean(text: str, _kind: pa.DataType) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _bytes(text: str, _kind: pa.DataType) -> bytes:
    """From hexadecimal, with or without the hyphens of a UUID."""
    return bytes.fromhex(text.replace("-", ""))


def _float(text: str, _kind: pa.DataType) -> float:
    return float(text)


def _decimal(text: str, _kind: pa.DataType) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(text)
    return value


def _date(text: str, _kind: pa.DataType) -> int:
    parts = _DATE.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    return day_of(*(int(part) for part in parts.groups()))


def _time(text: str, kind: pa.DataType) -> int:
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    return _ticks(0, parts.groups(), kind.unit)


def _moment(text: str, kind: pa.DataType) -> int:
    """A timestamp in ticks of its type. A type with a zone requires an offset; any other forbids
    it."""
    parts = _MOMENT.fullmatch(text)
    if parts is None or (parts[8] is None) != (kind.tz is None):
        raise ValueError(text)
    seconds = day_of(int(parts[1]), int(parts[2]), int(parts[3])) * 86_400 - _ahead(parts[8])
    ticks = _ticks(seconds, parts.groups()[3:7], kind.unit)
    # Engines have no moments that microseconds cannot count, whatever the unit of a file is.
    if kind.unit in ("s", "ms") and not -(2**63) <= ticks * 10**6 // _PER_SECOND[kind.unit] < 2**63:
        raise ValueError(text)
    return ticks


def _ahead(offset: str | None) -> int:
    """A UTC offset in seconds."""
    if offset is None or offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if offset[0] == "-" else seconds


def _ticks(seconds: int, clock: Sequence[str | None], unit: str) -> int:
    hours, minutes, second, fraction = clock
    seconds += int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(second or 0)
    nanoseconds = seconds * 10**9 + int((fraction or "").ljust(9, "0"))
    ticks, rest = divmod(nanoseconds, 10**9 // _PER_SECOND[unit])
    if rest:
        raise ValueError(f"more decimals than {unit} has")
    return ticks


_READERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], object]]] = (
    (pa.types.is_string, _text),
    (pa.types.is_integer, _integer),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_floating, _float),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_binary, _bytes),
    (pa.types.is_fixed_size_binary, _bytes),
    (pa.types.is_date32, _date),
    (pa.types.is_time, _time),
    (pa.types.is_timestamp, _moment),
)
