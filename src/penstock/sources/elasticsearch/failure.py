"""Translate Elasticsearch's errors: its type and reason, without credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sources.errors import SnapshotLost, SourceError, SourceQueryError, SourceRefused
from penstock.sources.rest import vendor_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.kit.errors import PenstockError
    from penstock.sources.elasticsearch.config import Config
    from penstock.sources.rest import Answer, Document

_LOST = "search_context_missing_exception"


def failure(answer: Answer, config: Config) -> PenstockError:
    """The error for a response that is not 200."""
    error = vendor_error(answer.body, text="reason")
    causes = list(_causes(error))
    name = str(causes[-1].get("type", f"HTTP {answer.status}"))
    reason = config.scrub(str(causes[-1].get("reason") or "no reason given"))[:500]
    if any(cause.get("type") == _LOST for cause in causes):
        return SnapshotLost(
            "The point in time is gone: it expired, or was closed.", error_name=_LOST
        )
    return _kind(answer.status)(f"{name}: {reason}", error_name=name, status=answer.status)


def partial(shards: Document, config: Config) -> PenstockError:
    """The error for a search with failed shards, whose hits are incomplete."""
    failures = shards.get("failures") or [{}]
    reason = failures[0].get("reason") or {}
    if reason.get("type") == _LOST:
        return SnapshotLost(
            "The point in time is gone: it expired, or was closed.", error_name=_LOST
        )
    message = config.scrub(str(reason.get("reason", "no reason given")))[:500]
    return SourceError(f"{shards.get('failed')} of {shards.get('total')} shards failed: {message}")


def _kind(status: int) -> type[PenstockError]:
    match status:
        case 401 | 403:
            return SourceRefused
        case 400 | 404:
            return SourceQueryError
        case _:
            return SourceError


def _causes(error: Document) -> Iterator[Document]:
    """The error, then its causes; the last one is the most specific."""
    yield error
    yield from (
        shard["reason"]
        for shard in error.get("failed_shards", ())
        if isinstance(shard.get("reason"), dict)
    )
    yield from error.get("root_cause", ())
