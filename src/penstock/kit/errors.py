"""One error tree for every process.

PenstockError
├── InvalidInput           422  VALIDATION_FAILED
├── PayloadTooLarge        413  PAYLOAD_TOO_LARGE
├── HeadersTooLarge        431  HEADERS_TOO_LARGE
├── RequestTimeout         408  REQUEST_TIMEOUT
├── AuthenticationRequired 401  AUTHENTICATION_REQUIRED
│   ├── InvalidToken            INVALID_TOKEN
│   └── InvalidComponent        INVALID_COMPONENT
├── PermissionDenied       403  PERMISSION_DENIED
├── NotFound               404  RESOURCE_NOT_FOUND
├── Conflict               409  CONFLICT
│   ├── ConcurrencyLimit        CONCURRENCY_LIMIT
│   ├── DependencyExists        DEPENDENCY_EXISTS
│   ├── InvalidState            INVALID_STATE
│   ├── ResourceLocked          RESOURCE_LOCKED
│   └── StaleAttempt            STALE_ATTEMPT
├── RateLimited            429  RATE_LIMITED
├── Unavailable            503  UNAVAILABLE           (retryable)
│   ├── Draining                DRAINING
│   └── DatabaseUnavailable     DATABASE_UNAVAILABLE
└── Internal               500  INTERNAL

An error says what went wrong in a sentence a person can act on; `hint` is the next thing to try and
`details` the facts a program needs. Edges render it, the client rebuilds it from its code.
"""

from __future__ import annotations

from typing import Any, ClassVar


class PenstockError(Exception):
    """Anything that Penstock raises on purpose."""

    code: ClassVar[str] = "INTERNAL"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class InvalidInput(PenstockError):
    """Something in the request is wrong; the message says what and where."""

    code = "VALIDATION_FAILED"
    status = 422


class PayloadTooLarge(PenstockError):
    """More bytes than are taken."""

    code = "PAYLOAD_TOO_LARGE"
    status = 413


class HeadersTooLarge(PenstockError):
    """The address and the headers of a request have more bytes than are taken."""

    code = "HEADERS_TOO_LARGE"
    status = 431


class RequestTimeout(PenstockError):
    """The request came too slowly; its connection was closed."""

    code = "REQUEST_TIMEOUT"
    status = 408


class AuthenticationRequired(PenstockError):
    """No credentials were sent: send `Authorization: Bearer` with an API key or a token."""

    code = "AUTHENTICATION_REQUIRED"
    status = 401


class InvalidToken(AuthenticationRequired):
    """The key or token is unknown, revoked or over."""

    code = "INVALID_TOKEN"


class InvalidComponent(AuthenticationRequired):
    """A service token came with a component that it is not for."""

    code = "INVALID_COMPONENT"


class PermissionDenied(PenstockError):
    """You are known, and may not do this."""

    code = "PERMISSION_DENIED"
    status = 403


class NotFound(PenstockError):
    """There is no such thing."""

    code = "RESOURCE_NOT_FOUND"
    status = 404


class Conflict(PenstockError):
    """What is there already, or who was first, stands against it."""

    code = "CONFLICT"
    status = 409


class DependencyExists(Conflict):
    """Something else needs it; `details` say what, with ids and a count."""

    code = "DEPENDENCY_EXISTS"


class InvalidState(Conflict):
    """Not in the state it is in now."""

    code = "INVALID_STATE"


class ResourceLocked(Conflict):
    """Another holder has the lock; the message names it."""

    code = "RESOURCE_LOCKED"


class ConcurrencyLimit(Conflict):
    """One more would be too many; `details` say of what, how many there are, and how many there may
    be."""

    code = "CONCURRENCY_LIMIT"


class StaleAttempt(Conflict):
    """The fence was rotated: another attempt owns the job, or it is over. Nothing was written."""

    code = "STALE_ATTEMPT"


class RateLimited(PenstockError):
    """Asked too often; `details` say after how many seconds it may be asked again."""

    code = "RATE_LIMITED"
    status = 429


class Unavailable(PenstockError):
    """Not now; try again later."""

    code = "UNAVAILABLE"
    status = 503
    retryable = True


class Draining(Unavailable):
    """No new jobs are taken; what is queued and what runs goes on."""

    code = "DRAINING"


class DatabaseUnavailable(Unavailable):
    """PostgreSQL does not answer."""

    code = "DATABASE_UNAVAILABLE"


class Internal(PenstockError):
    pass


def _tree(root: type[PenstockError]) -> dict[str, type[PenstockError]]:
    classes = {root.code: root}
    for child in root.__subclasses__():
        classes |= _tree(child)
    return classes


def rebuild(
    code: str, message: str, *, hint: str | None = None, details: dict[str, Any] | None = None
) -> PenstockError:
    """The error that crossed the wire as `code`; an unknown code becomes Internal and keeps its
    message."""
    kind = _tree(PenstockError).get(code, Internal)
    return kind(message, hint=hint, **(details or {}))
