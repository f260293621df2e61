"""Middleware that limits request bodies and rejects requests without this instance's token."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fastapi.routing import APIRoute
from starlette.requests import Request

from penstock.graph_server.http.identity import trusted
from penstock.http.body_memory import CountedBody

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response

BODY_BYTES = 1024 * 1024
QUERY_BYTES = 16 * 1024 * 1024
"""Queries bring their data along as parameters."""
READS = frozenset({"GET", "HEAD"})


class GuardedRoute(APIRoute):
    """Refuses strangers before it reads what they sent, and bodies larger than it takes."""

    body_bytes: ClassVar[int] = BODY_BYTES

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            if request.method not in READS:
                await trusted(request)
            body = CountedBody(request.receive, self.body_bytes, request.app.state.body_memory)
            body.announced(request.headers.get("content-length", ""))
            try:
                return await handle(Request(request.scope, body.receive))
            finally:
                body.release()

        return guarded


class QueryRoute(GuardedRoute):
    body_bytes = QUERY_BYTES
