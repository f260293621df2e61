"""Error responses: one envelope for all errors, without internal details."""

import re
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from penstock.api.schema.envelope import Reply, request_id
from penstock.kit.errors import (
    AuthenticationRequired,
    DatabaseUnavailable,
    Internal,
    InvalidComponent,
    InvalidInput,
    InvalidToken,
    NotFound,
    PayloadTooLarge,
    PenstockError,
    PermissionDenied,
    RateLimited,
    Unavailable,
)
from penstock.kit.json_value import JsonObject

RETRY_AFTER_SECONDS = 2
_MOST_FIELDS = 20


class MethodNotAllowed(PenstockError):
    """The path exists, but does not support this method."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


class ErrorDetail(BaseModel):
    code: str = Field(description="A stable code, for programs.")
    message: str = Field(description="A message, for people.")
    details: JsonObject = Field(description="Facts, and under `hint` what to do next.")


class ErrorMeta(BaseModel):
    request_id: str


class ErrorBody(BaseModel):
    error: ErrorDetail
    meta: ErrorMeta


def declare(*kinds: type[PenstockError]) -> dict[int | str, dict[str, Any]]:
    """The error responses of an operation, for its OpenAPI description."""
    declared: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        entry = declared.setdefault(
            kind.status, {"model": ErrorBody, "description": "", "content": _content()}
        )
        entry["description"] = f"{entry['description']}, {kind.code}".removeprefix(", ")
        error = {"code": kind.code, "message": "A sentence.", "details": {}}
        entry["content"]["application/json"]["examples"][kind.code] = {
            "value": {"error": error, "meta": {"request_id": "5f0c2f6e9d0e4a7d8f5a3b1c2d4e6f70"}}
        }
    return declared


def _content() -> dict[str, object]:
    return {"application/json": {"examples": {}}}


PUBLIC = (
    AuthenticationRequired,
    InvalidToken,
    PermissionDenied,
    InvalidInput,
    RateLimited,
    Unavailable,
    DatabaseUnavailable,
)
INTERNAL = (*PUBLIC, InvalidComponent, PayloadTooLarge)


def envelope(error: PenstockError, request_id: str) -> dict[str, object]:
    hint = {} if error.hint is None else {"hint": error.hint}
    body = {"code": error.code, "message": error.message, "details": error.details | hint}
    return {"error": body, "meta": {"request_id": request_id}}


def reply(error: PenstockError, request_id: str) -> Reply:
    answer = Reply(
        orjson.Fragment(orjson.dumps(envelope(error, request_id), default=str)),
        status_code=error.status,
    )
    if wait := error.details.get(
        "retry_after_seconds", RETRY_AFTER_SECONDS if error.retryable else None
    ):
        answer.headers["Retry-After"] = str(wait)
    if error.status == AuthenticationRequired.status:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def install(app: FastAPI) -> None:
    @app.exception_handler(PenstockError)
    async def ours(request: Request, error: PenstockError) -> Reply:
        return reply(error, request_id(request))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Reply:
        return reply(_invalid(error), request_id(request))

    @app.exception_handler(HTTPException)
    async def of_the_framework(request: Request, error: HTTPException) -> Reply:
        return refusal(error, request)


def refusal(error: HTTPException, request: Request) -> Reply:
    """An error of the framework, in our envelope."""
    answer = reply(_translated(error, request), request_id(request))
    if answer.status_code == MethodNotAllowed.status:
        answer.headers["Allow"] = ", ".join(_methods(request))
    return answer


def _invalid(error: RequestValidationError) -> InvalidInput:
    """Names the invalid fields and never echoes their values, which may be large or secret."""
    errors = error.errors()
    fields = [{"field": _path(e["loc"]), "problem": _problem(e)} for e in errors[:_MOST_FIELDS]]
    first = fields[0]
    return InvalidInput(f"{first['field']}: {first['problem']}.", fields=fields, count=len(errors))


def _problem(error: dict[str, Any]) -> str:
    match error["type"]:
        case "json_invalid":
            return f"not valid JSON ({error['ctx']['error']})"
        case "union_tag_invalid":
            return f"{error['ctx']['discriminator']} must be one of {error['ctx']['expected_tags']}"
    return re.sub(r"^Value error, ", "", str(error["msg"]))


def _path(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:80] for part in loc)


def _methods(request: Request) -> list[str]:
    """The methods allowed on this path, of all routes; the framework reports only the first one's.
    The routes with the fewest path parameters win.
    """
    here = [
        route
        for route in request.app.state.routes
        if route.matches(request.scope)[0] is not Match.NONE
    ]
    fewest = min((route.path_format.count("{") for route in here), default=0)
    return sorted(
        {
            method
            for route in here
            if route.path_format.count("{") == fewest
            for method in route.methods
        }
    )


def _translated(error: HTTPException, request: Request) -> PenstockError:
    match error.status_code:
        case 404:
            return NotFound(
                f"There is no path {request.url.path[:200]}.",
                hint="GET /api/openapi.json lists all paths.",
            )
        case 405:
            return MethodNotAllowed(f"This path does not support {request.method}.")
        case 413:
            return PayloadTooLarge(str(error.detail))
        case 422:
            return InvalidInput(str(error.detail))
        case 503:
            return Unavailable(str(error.detail))
        case status if 400 <= status < 500:
            return InvalidInput("The request could not be read.")
        case _:
            return Internal("Something went wrong on our side.")
