"""UTC offsets of time zones, computed here for every engine: each ships its own time zone database.

Arrow is fast, but knows no daylight saving time after 2037; later timestamps are left to Python.
"""

from __future__ import annotations

from datetime import UTC as UTC_ZONE
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

UTC = "UTC"
_LATE = int(datetime(2038, 1, 1, tzinfo=UTC_ZONE).timestamp())
_CALENDAR_REPEATS = 146_097 * 86_400
"""Seconds of the 400 years after which days have the same dates and weekdays."""
_LAST = int(datetime(9999, 1, 1, tzinfo=UTC_ZONE).timestamp())
"""The rules of some zones have a date for each change up to the year 2086, so a moment is only
brought into the years that Python has where it is later."""


def is_zone(name: str) -> bool:
    """Whether Arrow knows a zone of this name."""
    try:
        offsets(pa.array([name]), pa.array([0], pa.int64()))
    except (pa.ArrowInvalid, pa.ArrowKeyError, ValueError):
        return False
    return True


def offsets(zone: pa.Array, seconds: pa.Array) -> pa.Array:
    """UTC offsets in seconds at timestamps in seconds since 1970. `zone` is the same in all
    rows."""
    if not len(seconds):
        return pa.array([], pa.int64())
    moments = pc.cast(seconds, pa.timestamp("s", zone[0].as_py()))
    ahead = pc.subtract(pc.cast(pc.local_timestamp(moments), pa.int64()), seconds)
    late = pc.greater_equal(seconds, _LATE)
    return _with_late(zone[0].as_py(), seconds, ahead) if pc.any(late).as_py() else ahead


def _with_late(zone: str, seconds: pa.Array, ahead: pa.Array) -> pa.Array:
    try:
        rules = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ahead  # one such as +05:30, which has no summer time
    both = zip(seconds.to_pylist(), ahead.to_pylist(), strict=True)
    return pa.array(
        [early if at is None or at < _LATE else _ahead_of_utc(rules, at) for at, early in both],
        pa.int64(),
    )


def _ahead_of_utc(rules: ZoneInfo, seconds: int) -> int:
    """The offset at a timestamp that may be after the last one Python can represent."""
    same_date = seconds
    if seconds >= _LAST:
        same_date = _LAST - _CALENDAR_REPEATS + (seconds - _LAST) % _CALENDAR_REPEATS
    ahead = datetime.fromtimestamp(same_date, rules).utcoffset() or timedelta(0)
    return int(ahead.total_seconds())
