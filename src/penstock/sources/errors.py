"""What a source can say no with; drivers translate their library's errors into these and leak no credential."""

from __future__ import annotations

from penstock.kit.errors import InvalidInput, PenstockError, Unavailable


class SourceError(PenstockError):
    """The source answered with an error of its own; `details` has its name and code."""

    code = "SOURCE_ERROR"
    status = 422


class SourceRefused(SourceError):
    """Wrong password, no such role, no permission."""

    code = "SOURCE_REFUSED"


class SnapshotLost(SourceError):
    """The moment that the chunks of a plan share is gone: what is not yet read must be planned again."""

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
