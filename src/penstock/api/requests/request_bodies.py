"""Request bodies: size limits and strict JSON parsing.

Strict is JSON that PostgreSQL and other readers accept: no NaN, no Infinity, no lone surrogates, no
unbounded nesting. Integers beyond 64 bits are parsed exactly, so that validation refuses them
instead of rounding.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from penstock.api import permissions
from penstock.api.errors import reply
from penstock.api.requests import idempotency
from penstock.http.body_memory import CountedBody
from penstock.kit.errors import InvalidInput, PayloadTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from penstock.api.services import Services
    from penstock.kit.json_value import JsonValue

OPEN_BODY_BYTES = 64 * 1024
"""For routes that need no credentials."""
JSON_BODY_BYTES = 1024 * 1024
LARGE_BODY_BYTES = 8 * 1024 * 1024
FILE_BYTES = 1024**3
FEW_BYTES = 64 * 1024
"""Any invalid body of this size is validated within milliseconds."""
MAX_PROBLEMS = 1000
_LONG_NUMBER = re.compile(rb"[0-9]{20}")


def parse(body: bytes) -> JsonValue:
    value: JsonValue = orjson.loads(body)
    if _LONG_NUMBER.search(body):
        try:
            value = from_json(body)
        except ValueError as e:
            raise json.JSONDecodeError(str(e), "", 0) from None
    return value


class StrictRequest(Request):
    """A request with strict JSON; a large body with too many errors against `shape` is refused
    before FastAPI formats each of them."""

    shape: TypeAdapter[object] | None = None

    async def json(self) -> Any:
        content = await self.body()
        value = parse(content)
        if self.shape is not None and len(content) > FEW_BYTES:
            _check_few_problems(value, self.shape)
        return value


def _check_few_problems(value: object, shape: TypeAdapter[object]) -> None:
    try:
        shape.validate_python(value)
    except ValidationError as e:
        if e.error_count() > MAX_PROBLEMS:
            message = f"The body has {e.error_count():,} errors; this route expects another format."
            raise HTTPException(InvalidInput.status, message) from None


class StrictRoute(APIRoute):
    """Checks permissions before it reads the body, and limits the body's size."""

    body_bytes: ClassVar[int | None] = JSON_BODY_BYTES
    """None: the control plane's maximum."""
    is_held: ClassVar[bool] = True
    """Whether the whole body is read into memory."""
    refuses_nul: ClassVar[bool] = True
    """Whether a NUL character in the path or the query is refused before the handler."""
    _shape: TypeAdapter[object] | None = None

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            await permissions.admit(request)
            if self.refuses_nul:
                _check_no_nul(request)
            memory = request.app.state.body_memory if self.is_held else None
            body = CountedBody(request.receive, self.most_bytes(request), memory)
            body.announced(request.headers.get("content-length", ""))
            strict = StrictRequest(request.scope, body.receive)
            strict.shape = self._shape_of_body()
            try:
                return await (
                    idempotency.once(strict, handle)
                    if idempotency.applies(strict)
                    else handle(strict)
                )
            finally:
                body.release()

        return strictly

    def most_bytes(self, request: Request) -> int:
        services: Services = request.app.state.services
        most = services.max_body_bytes if self.body_bytes is None else self.body_bytes
        return min(most, OPEN_BODY_BYTES) if permissions.is_open(request) else most

    def _shape_of_body(self) -> TypeAdapter[object] | None:
        field = self.body_field
        model = None if field is None else field.field_info.annotation
        if self._shape is None and model is not None:
            self._shape = TypeAdapter(model)
        return self._shape


class PayloadRoute(StrictRoute):
    """For job payloads, whose maximum size the operator sets."""

    body_bytes = None


class LargeRoute(StrictRoute):
    """For bodies with many queries."""

    body_bytes = LARGE_BODY_BYTES


class FileRoute(StrictRoute):
    """For file uploads, which are streamed to disk."""

    is_held = False

    def most_bytes(self, request: Request) -> int:
        services: Services = request.app.state.services
        if services.reconciliation is None:
            return FILE_BYTES
        return services.reconciliation.service.uploads.quota.max_bytes


def _check_no_nul(request: Request) -> None:
    """PostgreSQL cannot store NUL in text, so no such name exists."""
    if "\x00" in request.scope["path"] or b"%00" in request.scope["query_string"]:
        raise InvalidInput("The path or the query contains a NUL character.")


class BodyLimit:
    """Middleware that refuses a body that is too large, by its Content-Length or while it is read.

    `files` maps paths of file uploads, which are streamed to disk, to their limits.
    """

    def __init__(self, app: ASGIApp, limit: int, files: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._limit = limit
        self._files = files or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        limit = self._files.get(scope["path"], self._limit)
        message = f"The body is too large; the limit is {limit:,} bytes."
        if _announced(scope) > limit:
            answer = reply(PayloadTooLarge(message, limit=limit), scope["state"]["request_id"])
            return await answer(scope, receive, send)
        read = 0

        async def counted() -> Message:
            nonlocal read
            received = await receive()
            read += len(received.get("body", b""))
            if read > limit:
                raise HTTPException(PayloadTooLarge.status, message)
            return received

        return await self._app(scope, counted, send)


def _announced(scope: Scope) -> int:
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(length) if length.isdigit() else 0
