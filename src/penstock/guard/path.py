"""Builds object keys from ids and validated names, never from raw user input.

A segment is a name that every store, file system and URL interprets alike: ASCII letters, digits
and a few signs. It cannot be `.` or `..`, cannot contain a separator or a drive, and cannot end in
a dot, which some file systems drop.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.guard.errors import NameRefused

if TYPE_CHECKING:
    from uuid import UUID

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@=+-]{0,127}")
_DEVICES = frozenset(
    {"aux", "con", "nul", "prn"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
)


def safe_segment(name: str) -> str:
    """The unchanged name; raises `NameRefused` if it is not allowed as one part of a key."""
    reserved = name.split(".", 1)[0].lower() in _DEVICES
    if not _SEGMENT.fullmatch(name) or ".." in name or name.endswith(".") or reserved:
        raise NameRefused(
            f"{name[:80]!r} cannot be part of a path.",
            hint="Use 1-128 letters, digits and _ . @ = + -, beginning with a letter, digit or _.",
        )
    return name


def object_key(*segments: str | int | UUID) -> str:
    """`a/b/c` of at least one segment."""
    if not segments:
        raise NameRefused("A key needs at least one segment.")
    return "/".join(safe_segment(str(segment)) for segment in segments)


def prefix(*segments: str | int | UUID) -> str:
    """The key as a folder: it ends with `/`, so that `a/1/` never matches `a/10/`."""
    return f"{object_key(*segments)}/"
