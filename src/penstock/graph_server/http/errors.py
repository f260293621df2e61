"""Renders errors of a graph server in the control plane's error envelope.

NotReady               503  NOT_READY           (retryable)
ShutdownBlocked        409  SHUTDOWN_BLOCKED
QueryTimeout           408  QUERY_TIMEOUT
"""

from __future__ import annotations

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from penstock.kit import ids, logging
from penstock.kit.errors import (
    Conflict,
    Internal,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    PenstockError,
    Unavailable,
)

log = logging.get(__name__)
RETRY_AFTER_SECONDS = 1


class NotReady(Unavailable):
    """The graph is not loaded yet; `/ready` says when."""

    code = "NOT_READY"


class ShutdownBlocked(Conflict):
    code = "SHUTDOWN_BLOCKED"


class MethodNotAllowed(PenstockError):
    """The path is there, but not with this method."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


def reply(error: PenstockError, request: Request) -> Response:
    hint: dict[str, object] = {} if error.hint is None else {"hint": error.hint}
    request_id = request.headers.get("x-request-id", "")[:128] or ids.request_id()
    body = {
        "error": {"code": error.code, "message": error.message, "details": error.details | hint},
        "meta": {"request_id": request_id},
    }
    answer = Response(
        orjson.dumps(body, default=str), status_code=error.status, media_type="application/json"
    )
    answer.headers["X-Request-ID"] = request_id
    if error.retryable:
        answer.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return answer


def install(app: FastAPI) -> None:
    @app.exception_handler(PenstockError)
    async def ours(request: Request, error: PenstockError) -> Response:
        return reply(error, request)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        fields = [
            {"field": ".".join(map(str, e["loc"])), "problem": e["msg"]}
            for e in error.errors()[:20]
        ]
        return reply(
            InvalidInput(f"{fields[0]['field']}: {fields[0]['problem']}.", fields=fields), request
        )

    @app.exception_handler(HTTPException)
    async def of_the_framework(request: Request, error: HTTPException) -> Response:
        if error.status_code == NotFound.status:
            return reply(NotFound(f"There is no {request.url.path[:200]} here."), request)
        if error.status_code == MethodNotAllowed.status:
            return reply(MethodNotAllowed(f"{request.method} is not possible here."), request)
        if error.status_code == PayloadTooLarge.status:
            return reply(PayloadTooLarge(str(error.detail)), request)
        if error.status_code == Unavailable.status:
            return reply(Unavailable(str(error.detail)), request)
        return reply(InvalidInput("The request could not be read."), request)

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> Response:
        log.error(
            "request_failed", path=request.url.path, error=type(error).__name__, exc_info=error
        )
        return reply(Internal("Something went wrong on our side.", hint="The log has it."), request)
