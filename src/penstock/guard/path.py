"""Object keys from ids and checked names, never from what a user typed as it came.

A segment is a name that every store, file system and URL reads alike: ASCII letters, digits and a
few signs. It cannot be `.` or `..`, cannot hide a separator or a drive, and cannot end in a dot,
which some file systems drop.
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
    """The name itself if it may be one part of a key."""
    reserved = name.split(".", 1)[0].lower() in _DEVICES
    if not _SEGMENT.fullmatch(name) or ".." in name or name.endswith(".") or reserved:
        raise NameRefused(
            f"{name[:80]!r} cannot be part of a path.",
            hint="Use 1-128 letters, digits and _ . @ = + -, beginning with a letter, digit or _.",
        )
    return name


def object_key(*segments: str | int | UUID) -> str:
    """`a/b/c` of at least one segment; a number or UUID is written as it is."""
    if not segments:
        raise NameRefused("A key needs at least one segment.")
    return "/".join(safe_segment(str(segment)) for segment in segments)


def prefix(*segments: str | int | UUID) -> str:
    """The key as a folder: it ends with `/`, so that `a/1/` never covers `a/10/`."""
    return f"{object_key(*segments)}/"
