"""Middleware that gives each request an id, for logs and responses: the caller's if safe, else a
new one.

It is the outermost middleware, so it also handles unexpected exceptions: they are logged with a
traceback and answered with INTERNAL.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from structlog.contextvars import bound_contextvars

from penstock.api.errors import reply
from penstock.kit import ids, logging
from penstock.kit.errors import Internal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.get(__name__)
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


class RequestIds:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def named(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        with bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, named)
            except ClientDisconnect:
                log.info("client_gone", method=scope["method"], path=scope["path"])
            except Exception:
                log.exception("request_failed", method=scope["method"], path=scope["path"])
                if not started:
                    answer = reply(
                        Internal("Something went wrong on our side.", hint="See the server log."),
                        request_id,
                    )
                    await answer(scope, receive, named)
        return None


def _request_id(scope: Scope) -> str:
    shown = next(
        (value for name, value in scope["headers"] if name == b"x-request-id"), b""
    ).decode("latin-1")
    return shown if _SAFE.fullmatch(shown) else ids.request_id()
