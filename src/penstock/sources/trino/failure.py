"""Translate Trino's errors: its error name and message, without credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sources.errors import SourceError, SourceQueryError, SourceRefused, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.errors import PenstockError
    from penstock.kit.json_value import JsonValue

_REFUSALS = frozenset({"PERMISSION_DENIED", "INVALID_ROLE", "ROLE_NOT_FOUND"})
_LOST = frozenset({"ABANDONED_QUERY"})


class QueryLost(SourceUnavailable):
    """Trino dropped the query, or another reader took its pages; only a new attempt helps."""

    code = "SOURCE_QUERY_LOST"


def query_error(error: Mapping[str, JsonValue], query_id: str) -> PenstockError:
    """The error for a failed query's `error`."""
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
    """The error for a response that is not 200, with its first line; the rest is a stack trace."""
    line = text.strip().partition("\n")[0][:300]
    match status:
        case 401 | 403:
            return SourceRefused(
                f"Trino denied access (HTTP {status}): {line}", error_name=f"HTTP_{status}"
            )
        case 500 if "AccessDeniedException" in line:
            return SourceRefused(
                line.partition("AccessDeniedException:")[2].strip(), error_name="ACCESS_DENIED"
            )
        case 404 | 410:
            return QueryLost(
                f"Trino no longer has this page of the query (HTTP {status}).",
                hint="The query was abandoned, or another reader continued it.",
                error_name=f"HTTP_{status}",
            )
        case _:
            return SourceError(f"Trino returned HTTP {status}: {line}", error_name=f"HTTP_{status}")


def error_type(error: PenstockError) -> str:
    """Trino's error name, or else our error class."""
    return str(error.details.get("error_name") or type(error).__name__)
