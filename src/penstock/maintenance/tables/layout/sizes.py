"""How large files should be, and how many make a rewrite worth its cost; numbers of properties."""

from __future__ import annotations

from penstock.maintenance.actions.model import MB

TARGET = 512 * MB
SMALL, LARGE = 0.75, 1.8
"""A file between these shares of the target size is not rewritten."""
MIN_INPUT_FILES = 5
GROUP_BYTES = 2048 * MB
HOT_SECONDS = 300
LEAST_FILES, LEAST_BYTES = 2, 32 * MB
"""Smaller tables are not compacted unless the request forces it."""
DELETE_FILES, DELETED_SHARE = 2, 0.1
_MOST_DIGITS = 100
"""Python refuses to read numbers of more than 4,300 digits."""


def whole_number(text: str) -> int | None:
    """Parse a table property as a non-negative integer; None if it is not one."""
    stripped = text.strip()
    if not stripped.isdecimal() or len(stripped) > _MOST_DIGITS:
        return None
    return int(stripped)
