"""A table with a column of every type that a file may bring."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa

_MOMENT = datetime(2024, 1, 31, 23, 30, 0, 123_000, tzinfo=UTC)
_COLUMNS = {
    "bool": pa.array([True, None]),
    "int8": pa.array([-128, None], pa.int8()),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "float": pa.array([-0.0, None], pa.float32()),
    "double": pa.array([float("inf"), None]),
    "decimal of 38": pa.array([Decimal("9" * 38), None], pa.decimal128(38, 0)),
    "decimal below one": pa.array([Decimal("0." + "9" * 38), None], pa.decimal128(38, 38)),
    "decimal of 40": pa.array([Decimal("9" * 38 + ".99"), None], pa.decimal256(40, 2)),
    "text": pa.array(["x\n\"é'", None]),
    "binary": pa.array([b"\x00\xff", None]),
    "fixed": pa.array([b"0123456789abcdef", None], pa.binary(16)),
    "date": pa.array([date(1, 1, 1), None]),
    "time": pa.array([time(23, 59, 59, 999_999), None], pa.time64("us")),
    "duration": pa.array([timedelta(-1, microseconds=1), None], pa.duration("us")),
    "list": pa.array([[1, None], None], pa.list_(pa.int64())),
    "struct": pa.array(
        [{"a": "x", "A": 1}, None], pa.struct([("a", pa.string()), ("A", pa.int32())])
    ),
    "null": pa.nulls(2),
    **{
        f"moment {unit} {zone}": pa.array(
            [_MOMENT if zone else _MOMENT.replace(tzinfo=None), None], pa.timestamp(unit, zone)
        )
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Vienna", "+05:30")
    },
}
EVERY_TYPE = pa.table(_COLUMNS)
