"""What a control plane or graph server can answer with, as one tree of exceptions rebuilt from the error's code.

try:
    ps.mappings.get(99)
except penstock.errors.NotFound as e:
    print(e.code, e.message, e.hint, e.details, e.request_id)
"""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """The root. `code` is the server's, or UNREACHABLE when nobody answered."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int,
        hint: str | None = None,
        details: dict[str, Any] | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.hint = hint
        self.details: dict[str, Any] = details or {}
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class Unreachable(ClientError):
    """Nobody answers at the address."""


class Unauthenticated(ClientError):
    """No credential, or one that is not known."""


class PermissionDenied(ClientError):
    """The role or the owner does not allow it."""


class NotFound(ClientError):
    """There is no such thing, or not any more."""


class Invalid(ClientError):
    """The request breaks a rule; `details` says which."""


class Conflict(ClientError):
    """What is there stands against it."""


class InvalidState(Conflict):
    """The state machine has no such step from here."""


class Locked(Conflict):
    """Somebody holds it; `details` has the holder."""


class LimitReached(Conflict):
    """A limit of instances or memory."""


class DependencyExists(Conflict):
    """Others depend on it; `details` says which."""


class RateLimited(ClientError):
    """Too often."""


class Unavailable(ClientError):
    """The server is there and cannot do it now: draining, in maintenance, or without its database."""


class TimedOut(ClientError):
    """A query or an algorithm ran out of its time, or a wait of ours did."""


class QueryError(ClientError):
    """The graph engine refuses the query."""


class Failed(ClientError):
    """The work itself failed: an instance that did not start, a run, a job, an algorithm."""


class ServerError(ClientError):
    """The server's own fault."""


BY_CODE: dict[str, type[ClientError]] = {
    "UNREACHABLE": Unreachable,
    "AUTHENTICATION_REQUIRED": Unauthenticated,
    "INVALID_TOKEN": Unauthenticated,
    "INVALID_ROLE": Unauthenticated,
    "INVALID_COMPONENT": Unauthenticated,
    "PERMISSION_DENIED": PermissionDenied,
    "RESOURCE_NOT_FOUND": NotFound,
    "ALGORITHM_NOT_FOUND": NotFound,
    "VALIDATION_FAILED": Invalid,
    "CONFLICT": Conflict,
    "STALE_ATTEMPT": Conflict,
    "JOBS_ALREADY_EXIST": Conflict,
    "SHUTDOWN_BLOCKED": Conflict,
    "INVALID_STATE": InvalidState,
    "INVALID_STATE_TRANSITION": InvalidState,
    "RESOURCE_LOCKED": Locked,
    "CONCURRENCY_LIMIT": LimitReached,
    "DEPENDENCY_EXISTS": DependencyExists,
    "RATE_LIMITED": RateLimited,
    "MAINTENANCE": Unavailable,
    "DRAINING": Unavailable,
    "DATABASE_UNAVAILABLE": Unavailable,
    "QUERY_TIMEOUT": TimedOut,
    "ALGORITHM_TIMEOUT": TimedOut,
    "RYUGRAPH_ERROR": QueryError,
    "ALGORITHM_FAILED": Failed,
    "INTERNAL": ServerError,
}
_BY_STATUS: dict[int, type[ClientError]] = {
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    408: TimedOut,
    409: Conflict,
    422: Invalid,
    429: RateLimited,
    503: Unavailable,
}


def unreachable(url: str, cause: Exception) -> Unreachable:
    return Unreachable(
        f"Nobody answers at {url} ({type(cause).__name__}).",
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
    kind = BY_CODE.get(code) or _BY_STATUS.get(status) or (ServerError if status >= 500 else Invalid)
    details = fields.get("details")
    found = details if isinstance(details, dict) else {}
    return kind(
        str(fields.get("message") or f"The server answered {status}."),
        code=code,
        status=status,
        hint=found.get("hint"),
        details=found,
        request_id=meta.get("request_id") if isinstance(meta, dict) else None,
    )
