"""Errors of a control plane or graph server as one exception tree, rebuilt from the error's
code.

ClientError
├── Unreachable
├── Unauthenticated
├── PermissionDenied
├── NotFound
├── Invalid
│   ├── Refused
│   ├── TooLarge
│   └── QueryError
├── Conflict
│   ├── InvalidState
│   ├── Locked
│   ├── LimitReached
│   └── DependencyExists
├── RateLimited
├── Unavailable
├── TimedOut
├── Failed
│   ├── SourceFailed
│   └── StorageFailed
└── ServerError

try:
    ps.mappings.get(99)
except penstock.errors.NotFound as e:
    print(e.code, e.message, e.hint, e.details, e.request_id)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.json_value import JsonObject


class ClientError(Exception):
    """The root. `code` is the server's, or UNREACHABLE when the server is unreachable."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int,
        hint: str | None = None,
        details: JsonObject | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.hint = hint
        self.details: JsonObject = details or {}
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class Unreachable(ClientError):
    """The server is unreachable."""


class Unauthenticated(ClientError):
    """No credential, or one that is not known."""


class PermissionDenied(ClientError):
    """The role or the owner does not allow it."""


class NotFound(ClientError):
    """There is no such thing, or not any more."""


class Invalid(ClientError):
    """The request breaks a rule; `details` says which."""


class Refused(Invalid):
    """Rejected by a guard: SQL that is not read-only, or a name or address not allowed."""


class TooLarge(Invalid):
    """More than is taken at once."""


class Conflict(ClientError):
    """What is there stands against it."""


class InvalidState(Conflict):
    """The state machine has no such step from here."""


class Locked(Conflict):
    """Somebody holds it; `details` has the holder."""


class LimitReached(Conflict):
    """A limit of instances, memory or uploads."""


class DependencyExists(Conflict):
    """Others depend on it; `details` says which."""


class RateLimited(ClientError):
    """Too often."""


class Unavailable(ClientError):
    """The server is temporarily unavailable: draining, read-only or without its database."""


class TimedOut(ClientError):
    """A query or an algorithm ran out of its time, or a wait of ours did."""


class QueryError(Invalid):
    """The graph engine refuses the query."""


class Failed(ClientError):
    """The work itself failed: an instance that did not start, a run, a job, an algorithm."""


class SourceFailed(Failed):
    """A data source refuses, or gives up half way."""


class StorageFailed(Failed):
    """The object store refused, is full, or an object is damaged."""


class ServerError(ClientError):
    """The server's own fault."""


_CODES: dict[type[ClientError], str] = {
    Unreachable: "UNREACHABLE",
    Unauthenticated: "AUTHENTICATION_REQUIRED INVALID_TOKEN INVALID_ROLE INVALID_COMPONENT",
    PermissionDenied: "PERMISSION_DENIED",
    NotFound: "RESOURCE_NOT_FOUND ALGORITHM_NOT_FOUND OBJECT_MISSING",
    Invalid: "VALIDATION_FAILED METHOD_NOT_ALLOWED CAPABILITY_MISSING COLUMNS_DIFFER "
    "DRIVER_MISSING "
    "RECIPE_INVALID"
    " EXPORT_TOO_LARGE"
    " RECONCILE_BAD_VALUE RECONCILE_DECISION RECONCILE_RULE RECONCILE_TOO_MANY SAME_VERSION"
    " SCHEMA_MISMATCH"
    " UNKNOWN_ACTION",
    Refused: "MAINTENANCE_REFUSED OUTBOUND_REFUSED URL_REFUSED SQL_REFUSED"
    " SQL_UNREADABLE SQL_TOO_LARGE SQL_STATEMENT_REFUSED SQL_FUNCTION_REFUSED SQL_TABLE_REFUSED"
    " SQL_DUPLICATE_COLUMN",
    TooLarge: "PAYLOAD_TOO_LARGE HEADERS_TOO_LARGE",
    Conflict: "CONFLICT STALE_ATTEMPT JOBS_ALREADY_EXIST SHUTDOWN_BLOCKED CLUSTER_HELD "
    "COMMIT_CONFLICT"
    " RECONCILE_THRESHOLD OBJECT_EXISTS",
    InvalidState: "INVALID_STATE INVALID_STATE_TRANSITION",
    Locked: "RESOURCE_LOCKED",
    LimitReached: "CONCURRENCY_LIMIT UPLOAD_QUOTA_EXCEEDED",
    DependencyExists: "DEPENDENCY_EXISTS",
    RateLimited: "RATE_LIMITED",
    Unavailable: "UNAVAILABLE MAINTENANCE DRAINING DATABASE_UNAVAILABLE NOT_READY LAUNCH_FAILED "
    "COMMIT_UNKNOWN"
    " CATALOG_UNAVAILABLE ENGINE_UNAVAILABLE GRAPH_ENGINE_RESTARTED SOURCE_UNAVAILABLE "
    "SOURCE_CHANGED SOURCE_QUERY_LOST"
    " STORAGE_UNAVAILABLE SCRATCH_FULL SECRET_KEY_MISSING",
    TimedOut: "QUERY_TIMEOUT ALGORITHM_TIMEOUT REQUEST_TIMEOUT",
    QueryError: "RYUGRAPH_ERROR ENGINE_QUERY_FAILED",
    Failed: "ALGORITHM_FAILED ALGORITHM_CANCELLED ALGORITHM_OUT_OF_MEMORY ENGINE_FAILED "
    "ENGINE_OUT_OF_MEMORY"
    " GRAPH_ENGINE_CRASHED QUERY_OUT_OF_MEMORY"
    " MAINTENANCE_FAILED TABLE_UNREADABLE UNREADABLE_FILE CONTENT_DIFFERS RECONCILE_TOTALS"
    " DATABASE_ERROR SCHEMA_CREATE_ERROR DATA_LOAD_ERROR",
    SourceFailed: "SOURCE_ERROR SOURCE_REFUSED SOURCE_QUERY_ERROR SOURCE_SNAPSHOT_LOST",
    StorageFailed: (
        "STORAGE_ERROR STORAGE_BUCKET_MISSING STORAGE_REFUSED STORAGE_FULL OBJECT_DAMAGED "
        "ROWS_DIFFER"
    ),
    ServerError: "INTERNAL POSTGRES_FAILED POSTGRES_MISSING",
}
BY_CODE: dict[str, type[ClientError]] = {
    code: kind for kind, codes in _CODES.items() for code in codes.split()
}
_BY_STATUS: dict[int, type[ClientError]] = {
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    408: TimedOut,
    409: Conflict,
    413: TooLarge,
    422: Invalid,
    429: RateLimited,
    503: Unavailable,
}


def unreachable(url: str, cause: Exception) -> Unreachable:
    return Unreachable(
        f"No server is reachable at {url} ({type(cause).__name__}).",
        code="UNREACHABLE",
        status=503,
        hint="Start it with `penstock up`, or set PENSTOCK_URL.",
    )


def rebuilt(status: int, body: object) -> ClientError:
    """The exception of an answer that is not a success, whatever its body looks like."""
    envelope = body if isinstance(body, dict) else {}
    error = envelope.get("error")
    fields = error if isinstance(error, dict) else {}
    meta = envelope.get("meta")
    code = str(fields.get("code") or ("INTERNAL" if status >= 500 else f"HTTP_{status}"))
    kind = (
        BY_CODE.get(code) or _BY_STATUS.get(status) or (ServerError if status >= 500 else Invalid)
    )
    details = fields.get("details")
    detail_fields = details if isinstance(details, dict) else {}
    return kind(
        str(fields.get("message") or f"The server answered {status}."),
        code=code,
        status=status,
        hint=detail_fields.get("hint"),
        details=detail_fields,
        request_id=meta.get("request_id") if isinstance(meta, dict) else None,
    )
