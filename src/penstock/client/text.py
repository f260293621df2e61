"""Escapes control characters in untrusted text before it is shown."""

from __future__ import annotations

import re

_ORDERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Control characters, and those that turn the direction of writing, as their escapes."""
    return _ORDERS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
