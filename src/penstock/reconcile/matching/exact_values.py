"""Arrow values as Python values that JSON has, none of them changed.

Numbers, booleans and texts are themselves; what Python or JSON cannot hold exactly is text:

- decimals are their digits without an exponent;
- floats that are no numbers are `nan`, `inf`, `-inf`;
- bytes are hexadecimals;
- dates and moments outside the years 1 to 9999 have a sign before the year, as in keys; moments
  with a zone are in UTC (`Z`) there and before 1972, when offsets had seconds;
- moments and times to the nanosecond have nine decimals;
- durations are seconds, with the decimals of their unit; intervals are `P1M2DT3.000000004S`;
- maps, and structs with two fields of one name, are lists of pairs.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engines.dates import FIRST_DAY, LAST_DAY, clock_text, date_text, stamp_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DECIMALS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DAY = 86_400
_FIRST, _LAST = FIRST_DAY * _DAY, (LAST_DAY + 1) * _DAY - 1
_FIRST_ZONED = int(datetime(1972, 2, 1, tzinfo=UTC).timestamp())
_LAST_ZONED = _LAST - 2 * _DAY
"""The seconds since 1970 between which a moment is shown by its zone's clock: before, some offsets
had seconds; after, the clock may show a year that Python does not have."""


def rows(table: pa.Table | pa.RecordBatch) -> Iterator[dict[str, object]]:
    names = table.schema.names
    columns = [values(column) for column in table.columns]
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def values(column: pa.Array | pa.ChunkedArray) -> list[object]:
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in values(chunk)]
    if isinstance(column, pa.ExtensionArray):
        if isinstance(column.type, pa.UuidType):
            return [None if value is None else str(value) for value in column.to_pylist()]
        return values(column.storage)
    read = next((read for is_kind, read in _READERS if is_kind(column.type)), _as_they_are)
    return read(column)


def far_texts(column: pa.Array) -> list[str | None] | None:
    """Of a column of dates or moments the texts of those that Python or Arrow would not write as
    they are, and None for the others; None alone where there are no such values."""
    kind = column.type
    low, high = _limits(kind)
    if column.null_count == len(column) or _between(column, low, high):
        return None
    numbers = column.view(_counted(kind)).to_pylist()
    return [None if n is None or low <= n <= high else _far_text(kind, n) for n in numbers]


def near(column: pa.Array) -> pa.Array:
    """The column with those values replaced by null."""
    low, high = _limits(column.type)
    kind = _counted(column.type)
    numbers = column.view(kind)
    least, most = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    if low > high:
        return pa.nulls(len(column), column.type)
    above = pc.greater_equal(numbers, pa.scalar(max(low, least), kind))
    inside = pc.and_(above, pc.less_equal(numbers, pa.scalar(min(high, most), kind)))
    return pc.if_else(inside, column, pa.scalar(None, column.type))


def _limits(kind: pa.DataType) -> tuple[int, int]:
    """The range in which values of a type are formatted as usual."""
    if pa.types.is_date32(kind):
        return FIRST_DAY, LAST_DAY
    if pa.types.is_date64(kind):
        return _FIRST * 1000, (_LAST + 1) * 1000 - 1
    if kind.tz is not None and not _is_known(kind.tz):
        return 0, -1
    low, high = (_FIRST, _LAST) if kind.tz is None else (_FIRST_ZONED, _LAST_ZONED)
    per_second = 10 ** DECIMALS[kind.unit]
    return low * per_second, (high + 1) * per_second - 1


def _counted(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _far_text(kind: pa.DataType, number: int) -> str:
    if pa.types.is_date(kind):
        return date_text(number if pa.types.is_date32(kind) else number // (_DAY * 1000))
    return f"{stamp_text(number, DECIMALS[kind.unit])}{'' if kind.tz is None else 'Z'}"


def _between(column: pa.Array, low: int, high: int) -> bool:
    limits = pc.min_max(column.view(_counted(column.type))).as_py()
    return bool(low <= limits["min"] and limits["max"] <= high)


def _is_known(zone: str) -> bool:
    if zone[:1] in "+-":
        return True
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        return False
    return True


def _as_they_are(column: pa.Array) -> list[object]:
    plain: list[object] = column.to_pylist()
    return plain


def _mapped(column: pa.Array, text: Callable[[int], str]) -> list[object]:
    numbers = column.view(_counted(column.type)).to_pylist()
    return [None if number is None else text(number) for number in numbers]


def _floats(column: pa.Array) -> list[object]:
    plain = column.to_pylist()
    return [v if v is None or math.isfinite(v) else str(float(v)) for v in plain]


def _decimals(column: pa.Array) -> list[object]:
    return [None if value is None else f"{value:f}" for value in column.to_pylist()]


def _bytes(column: pa.Array) -> list[object]:
    return [None if value is None else value.hex() for value in column.to_pylist()]


def _moments(column: pa.Array) -> list[object]:
    """Timestamps and dates."""
    far = far_texts(column)
    plain = column if far is None else near(column)
    nanoseconds = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    usual: list[object] = [None] * len(column)
    if plain.null_count < len(plain):
        usual = _as_they_are(plain.cast(pa.string()) if nanoseconds else plain)
    if far is None:
        return usual
    return [text if text is not None else value for text, value in zip(far, usual, strict=True)]


def _times(column: pa.Array) -> list[object]:
    if column.type.unit == "ns":
        return _mapped(column, lambda ticks: clock_text(*divmod(ticks, 10**9), 9))
    return _as_they_are(column)


def _durations(column: pa.Array) -> list[object]:
    decimals = DECIMALS[column.type.unit]
    return _mapped(column, lambda ticks: seconds_text(ticks, decimals))


def seconds_text(ticks: int, decimals: int) -> str:
    """Ticks as seconds; a tick is the last of `decimals` decimals."""
    sign, digits = "-" if ticks < 0 else "", f"{abs(ticks):0{decimals + 1}d}"
    whole, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
    return f"{sign}{whole}.{fraction}" if decimals else f"{sign}{whole}"


def _intervals(column: pa.Array) -> list[object]:
    texts: list[object] = []
    for interval in column.to_pylist():
        if interval is None:
            texts.append(None)
            continue
        months, days, nanoseconds = interval
        texts.append(f"P{months}M{days}DT{seconds_text(nanoseconds, 9)}S")
    return texts


def _lists(column: pa.Array) -> list[object]:
    return [values(scalar.values) if scalar.is_valid else None for scalar in column]


def _maps(column: pa.Array) -> list[object]:
    return [_entries(scalar.values) if scalar.is_valid else None for scalar in column]


def _entries(entries: pa.StructArray) -> list[list[object]]:
    keys, items = map(values, entries.flatten())
    return [[key, item] for key, item in zip(keys, items, strict=True)]


def _structs(column: pa.Array) -> list[object]:
    names = [field.name for field in column.type]
    fields = [values(field) for field in column.flatten()]
    unique = len(set(names)) == len(names)
    structs: list[object] = []
    for number, is_there in enumerate(column.is_valid().to_pylist()):
        pairs = [[name, field[number]] for name, field in zip(names, fields, strict=True)]
        whole = {str(name): value for name, value in pairs} if unique else pairs
        structs.append(whole if is_there else None)
    return structs


def _decoded(column: pa.Array) -> list[object]:
    return values(column.dictionary_decode())


_READERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[object]]]] = (
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_timestamp, _moments),
    (pa.types.is_date, _moments),
    (pa.types.is_time, _times),
    (pa.types.is_duration, _durations),
    (pa.types.is_interval, _intervals),
    (pa.types.is_binary, _bytes),
    (pa.types.is_large_binary, _bytes),
    (pa.types.is_binary_view, _bytes),
    (pa.types.is_fixed_size_binary, _bytes),
    (pa.types.is_dictionary, _decoded),
    (pa.types.is_map, _maps),
    (pa.types.is_struct, _structs),
    (pa.types.is_nested, _lists),
)
