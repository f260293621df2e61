"""A file of an export (`Part`), and the naming scheme of an attempt's objects.

Object names include the attempt (`part-00000-<attempt>.parquet`, or anything in
`attempt-<attempt>/` where an engine chooses the file names), so a slow old attempt cannot
overwrite a newer one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.kit.errors import InvalidInput

_ATTEMPT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PART = re.compile(r"(?:.*/)?part-\d{5,}-(?P<attempt>[A-Za-z0-9_-]{1,64})\.parquet(?:\.claim)?")
_FOLDER = re.compile(r"(?:.*/)?attempt-(?P<attempt>[A-Za-z0-9_-]{1,64})/.+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`path` is the object's key; `sha256` is None for files that an engine wrote."""

    path: str
    size: int
    rows: int
    etag: str | None = None
    sha256: str | None = None


def check_attempt(attempt: str) -> str:
    if not _ATTEMPT.fullmatch(attempt):
        raise InvalidInput(f"The attempt {attempt[:80]!r} cannot be used in a file name.")
    return attempt


def name(number: int, attempt: str) -> str:
    return f"part-{number:05d}-{check_attempt(attempt)}.parquet"


def attempt_of(key: str) -> str | None:
    """The attempt that wrote an object; None if no attempt did."""
    match = _PART.fullmatch(key) or _FOLDER.fullmatch(key)
    return match["attempt"] if match else None
