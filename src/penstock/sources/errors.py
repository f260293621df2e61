"""Errors of the sources package; drivers translate their library's errors into these, without
credentials."""

from __future__ import annotations

from penstock.kit.errors import InvalidInput, PenstockError, Unavailable

_SERVER_ERROR_TYPES = frozenset({"EXTERNAL", "INSUFFICIENT_RESOURCES", "INTERNAL_ERROR"})


class SourceError(PenstockError):
    """The source returned an error; `details` has its name and code."""

    code = "SOURCE_ERROR"
    status = 422


class SourceRefused(SourceError):
    """Wrong password, no such role, no permission."""

    code = "SOURCE_REFUSED"


class SnapshotLost(SourceError):
    """The snapshot that the chunks of a plan share no longer exists: plan the unread chunks
    again."""

    code = "SOURCE_SNAPSHOT_LOST"
    status = 409


class SourceQueryError(InvalidInput):
    """The SQL is invalid: syntax, a missing table or column, a type mismatch."""

    code = "SOURCE_QUERY_ERROR"


class SourceUnavailable(Unavailable):
    """The source is down, reset the connection or timed out; a retry may succeed."""

    code = "SOURCE_UNAVAILABLE"


class DriverMissing(InvalidInput):
    """The extra that carries this driver is not installed; the message names it."""

    code = "DRIVER_MISSING"


def transient(error: PenstockError) -> bool:
    """Whether a retry may succeed.

    True for a source or storage that is down or overloaded, and for Trino errors that the query
    did not cause. False for a timeout: the driver has already retried that.
    """
    if error.retryable:
        return True
    error_type = error.details.get("error_type") if isinstance(error, SourceError) else None
    return error_type in _SERVER_ERROR_TYPES and not _is_timeout(error)


def _is_timeout(error: PenstockError) -> bool:
    text = f"{error.details.get('error_name')} {error.message}".lower()
    return any(word in text for word in ("timeout", "timed out", "time_limit"))
