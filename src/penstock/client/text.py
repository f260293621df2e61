"""Text that comes from data, made fit to be shown: a terminal obeys what it is sent, so nothing of
that kind is."""

from __future__ import annotations

import re

_ORDERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Control characters, and those that turn the direction of writing, as their escapes."""
    return _ORDERS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
