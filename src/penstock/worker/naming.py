"""Errors that name the entity they befell, and say whether another attempt may help.

Which may: a source or storage that is away or busy, and of Trino's own errors those that are not the query's fault. A
timeout is not among them: the driver has tried that again already.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.kit.errors import PenstockError
from penstock.sources.errors import SourceError, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.graphs.order import Entity

_NOT_THE_QUERYS_FAULT = frozenset({"EXTERNAL", "INSUFFICIENT_RESOURCES", "INTERNAL_ERROR"})


@contextmanager
def naming(entity: Entity) -> Iterator[None]:
    try:
        yield
    except PenstockError as e:
        raise named(e, entity) from e


def named(error: PenstockError, entity: Entity) -> PenstockError:
    kind = SourceUnavailable if transient(error) and not error.retryable else type(error)
    details = error.details | {"entity": str(entity)}
    return kind(f"{entity}: {error.message}", hint=error.hint, **details)


def transient(error: PenstockError) -> bool:
    """Whether another attempt may succeed."""
    if error.retryable:
        return True
    fault = error.details.get("error_type") if isinstance(error, SourceError) else None
    return fault in _NOT_THE_QUERYS_FAULT and not _says_timeout(error)


def _says_timeout(error: PenstockError) -> bool:
    told = f"{error.details.get('error_name')} {error.message}".lower()
    return any(word in told for word in ("timeout", "timed out", "time_limit"))
