"""How a request's body is read: up to a limit, and as strict JSON.

Strict means what PostgreSQL and every other reader mean by JSON: no NaN, no Infinity, no half of a surrogate pair, no
nesting without end; and an integer that does not fit into 64 bits stays one, to be refused, not rounded.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import orjson
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from penstock.api import idempotency
from penstock.api.errors import reply
from penstock.kit.errors import InvalidInput, PayloadTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LONG_NUMBER = re.compile(rb"\d{20}")


def parse(body: bytes) -> Any:
    value = orjson.loads(body)
    if _LONG_NUMBER.search(body):
        try:
            value = from_json(body)
        except ValueError as e:
            raise json.JSONDecodeError(str(e), "", 0) from None
    return value


class StrictRequest(Request):
    async def json(self) -> Any:
        return parse(await self.body())


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            _check_no_nul(strict)
            return await (idempotency.once(strict, handle) if idempotency.applies(strict) else handle(strict))

        return strictly


def _check_no_nul(request: Request) -> None:
    """PostgreSQL has no text with it, so there is nothing that it could name."""
    if "\x00" in request.scope["path"] or b"%00" in request.scope["query_string"]:
        raise InvalidInput("There is a NUL character in the path or the query.")


class BodyLimit:
    """Refuses a body that is too large: at once if it says so, else when it has become so.

    `files` are paths that take a file, which is written down while it comes.
    """

    def __init__(self, app: ASGIApp, limit: int, files: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._limit = limit
        self._files = files or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        limit = self._files.get(scope["path"], self._limit)
        message = f"The body is too large; at most {limit:,} bytes are taken."
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
