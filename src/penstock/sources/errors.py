"""What a source can say no with; drivers translate their library's errors into these and leak no
credential."""

from __future__ import annotations

from penstock.kit.errors import InvalidInput, PenstockError, Unavailable

_SERVER_ERROR_TYPES = frozenset({"EXTERNAL", "INSUFFICIENT_RESOURCES", "INTERNAL_ERROR"})


class SourceError(PenstockError):
    """The source answered with an error of its own; `details` has its name and code."""

    code = "SOURCE_ERROR"
    status = 422


class SourceRefused(SourceError):
    """Wrong password, no such role, no permission."""

    code = "SOURCE_REFUSED"


class SnapshotLost(SourceError):
    """The moment that the chunks of a plan share is gone: what is not yet read must be planned
    again."""

    code = "SOURCE_SNAPSHOT_LOST"
    status = 409


class SourceQueryError(InvalidInput):
    """The SQL is wrong: syntax, a missing table or column, a type that does not fit."""

    code = "SOURCE_QUERY_ERROR"


class SourceUnavailable(Unavailable):
    """The source is down, reset the connection or timed out; trying again may help."""

    code = "SOURCE_UNAVAILABLE"


class DriverMissing(InvalidInput):
    """The extra that carries this driver is not installed; the message names it."""

    code = "DRIVER_MISSING"


def transient(error: PenstockError) -> bool:
    """Whether another attempt may succeed.

    True for a source or storage that is away or busy, and for those of Trino's own errors that are
    not the query's fault. Not for a timeout: the driver has tried that again already.
    """
    if error.retryable:
        return True
    error_type = error.details.get("error_type") if isinstance(error, SourceError) else None
    return error_type in _SERVER_ERROR_TYPES and not _is_timeout(error)


def _is_timeout(error: PenstockError) -> bool:
    text = f"{error.details.get('error_name')} {error.message}".lower()
    return any(word in text for word in ("timeout", "timed out", "time_limit"))
