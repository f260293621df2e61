"""Trino's errors in our words: its own name and message, and never a credential."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.sources.errors import SourceError, SourceQueryError, SourceRefused, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.errors import PenstockError

_REFUSALS = frozenset({"PERMISSION_DENIED", "INVALID_ROLE", "ROLE_NOT_FOUND"})
_LOST = frozenset({"ABANDONED_QUERY"})


class QueryLost(SourceUnavailable):
    """Trino no longer knows the query or gave its pages to another reader; only a new attempt
    helps."""

    code = "SOURCE_QUERY_LOST"


def query_error(error: Mapping[str, Any], query_id: str) -> PenstockError:
    """What a failed query's `error` means to the caller."""
    name, kind = str(error.get("errorName", "UNKNOWN")), str(error.get("errorType", ""))
    return _class(name, kind)(
        f"{name}: {error.get('message') or 'no message'}",
        error_name=name,
        error_type=kind,
        error_code=error.get("errorCode"),
        query_id=query_id,
    )


def _class(name: str, kind: str) -> type[PenstockError]:
    if name in _LOST:
        return QueryLost
    if name in _REFUSALS:
        return SourceRefused
    if kind == "USER_ERROR" and name != "USER_CANCELED":
        return SourceQueryError
    return SourceError


def http_error(status: int, text: str) -> PenstockError:
    """What an answer that is not 200 means; of its text only the first line, for the rest is a
    stack trace."""
    line = text.strip().partition("\n")[0][:300]
    match status:
        case 401 | 403:
            return SourceRefused(
                f"Trino refused us (HTTP {status}): {line}", error_name=f"HTTP_{status}"
            )
        case 500 if "AccessDeniedException" in line:
            return SourceRefused(
                line.partition("AccessDeniedException:")[2].strip(), error_name="ACCESS_DENIED"
            )
        case 404 | 410:
            return QueryLost(
                f"Trino no longer knows this page of the query (HTTP {status}).",
                hint="It was abandoned, or another reader went on with it.",
                error_name=f"HTTP_{status}",
            )
        case _:
            return SourceError(f"Trino answered HTTP {status}: {line}", error_name=f"HTTP_{status}")


def error_type(error: PenstockError) -> str:
    """What Trino calls it, or what we do."""
    return str(error.details.get("error_name") or type(error).__name__)
