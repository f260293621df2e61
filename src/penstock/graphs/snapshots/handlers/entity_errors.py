"""Errors of an export that name the entity they concern."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.kit.errors import PenstockError
from penstock.sources.errors import SourceUnavailable, transient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.graphs.snapshots.payloads import Entity


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
