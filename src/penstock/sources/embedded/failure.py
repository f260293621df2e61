"""Translate DuckDB's errors. Their text begins with their kind, even if Arrow's reader turned them
into an OSError."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from penstock.sources.errors import SourceError, SourceQueryError, SourceRefused, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.kit.errors import PenstockError

_KIND = re.compile(r"(?P<kind>[A-Za-z ]+) Error: ")
_KINDS: dict[str, type[PenstockError]] = {
    "Binder": SourceQueryError,
    "Catalog": SourceQueryError,
    "Constraint": SourceQueryError,
    "Conversion": SourceQueryError,
    "Invalid Input": SourceQueryError,
    "Invalid Type": SourceQueryError,
    "Mismatch Type": SourceQueryError,
    "Not implemented": SourceQueryError,
    "Out of Range": SourceQueryError,
    "Parser": SourceQueryError,
    "Permission": SourceRefused,
    "Resource In Use": SourceUnavailable,
    "Syntax": SourceQueryError,
}
_MEMORY = ("memory limit", "memory_limit", "source_memory_mb")
_DISK = ("limit for temporary disk space", "spill_limit", "source_spill_mb")


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, OSError) as e:
        raise explain(str(e)) from None


def explain(text: str) -> PenstockError:
    match = _KIND.match(text)
    kind = match["kind"] if match else ""
    if kind == "IO" and "Could not set lock" in text:
        return SourceUnavailable(
            "The DuckDB file is open for writing in another process.",
            hint="Close it there, or wait.",
        )
    if kind == "Out of Memory":
        what, setting, bound = _DISK if "max_temp_directory_size" in text else _MEMORY
        return SourceError(
            f"The query exceeds DuckDB's {what}.",
            hint=f"Raise {setting}; the operator's setting {bound} bounds it.",
            kind=kind,
        )
    return _KINDS.get(kind, SourceError)(
        text.partition(" Detail: Python exception")[0].strip(), kind=kind
    )
