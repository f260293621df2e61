"""Parses durations: `"2h"`, `"30m"`, `"1d12h"`, a timedelta or ISO 8601, which the API takes."""

from __future__ import annotations

import re
from datetime import timedelta

_SHORT = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def iso(span: str | timedelta | None) -> str | None:
    if span is None or (isinstance(span, str) and span.startswith("P")):
        return span
    if isinstance(span, str):
        parts = _SHORT.fullmatch(span.strip().lower())
        if parts is None or not any(parts.groups()):
            raise ValueError(
                f"{span!r} is no span of time; write 30m, 2h, 1d12h or ISO 8601 such as PT30M."
            )
        days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return f"PT{int(span.total_seconds())}S"
