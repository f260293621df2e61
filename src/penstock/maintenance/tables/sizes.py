"""What is small, large and worth the trouble."""

from __future__ import annotations

from penstock.maintenance.actions.model import MB

TARGET = 512 * MB
SMALL, LARGE = 0.75, 1.8
"""Shares of the target between which a file is left alone."""
MIN_INPUT_FILES = 5
GROUP_BYTES = 2048 * MB
HOT_SECONDS = 300
LEAST_FILES, LEAST_BYTES = 2, 32 * MB
"""A table with less than this is skipped unless that is asked for."""
DELETE_FILES, DELETED_SHARE = 2, 0.1
_MOST_DIGITS = 100
"""Python refuses to read numbers of more than 4,300 digits."""


def whole_number(text: str) -> int | None:
    """What a table's property says, if it is a number that is not negative."""
    stripped = text.strip()
    if not stripped.isdecimal() or len(stripped) > _MOST_DIGITS:
        return None
    return int(stripped)
