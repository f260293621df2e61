"""Object keys, built from validated ids: no path traversal, hidden names or ambiguity.

A prefix ends with "/": "snapshot-1/" never matches "snapshot-10/". The empty prefix is the whole
store.
"""

from __future__ import annotations

import re

from penstock.kit.errors import InvalidInput

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@=+-]{0,199}")
_MAX_KEY = 900


def join(*ids: str) -> str:
    """A key whose segments are the ids."""
    for segment in ids:
        _check_segment(segment)
    return check_key("/".join(ids))


def prefix(*ids: str) -> str:
    """A prefix whose segments are the ids; it ends with "/"."""
    return f"{join(*ids)}/" if ids else ""


def check_key(key: str) -> str:
    if len(key) > _MAX_KEY:
        raise InvalidInput(f"An object key has {len(key)} characters; the maximum is {_MAX_KEY}.")
    for segment in key.split("/"):
        _check_segment(segment)
    return key


def check_prefix(text: str) -> str:
    if text:
        if not text.endswith("/"):
            raise InvalidInput(f"The prefix {text[:80]!r} does not end with a slash.")
        check_key(text[:-1])
    return text


def ancestors(key: str) -> list[str]:
    """Every prefix of the key, the nearest first, the whole store ("") last."""
    parts = key.split("/")[:-1]
    return ["/".join(parts[:n]) + "/" for n in range(len(parts), 0, -1)] + [""]


def _check_segment(segment: str) -> None:
    if not _SEGMENT.fullmatch(segment):
        raise InvalidInput(
            f"{segment[:80]!r} is not a valid segment of an object key.",
            hint="Use 1-200 letters, digits and _ . @ = + -, starting with a letter, digit or _.",
        )
