"""Fast path of `POST /query`: a regular request bypasses the framework.

Whatever is irregular (another type of body, one that does not fit, numbers that readers of JSON
take differently) takes the ordinary way, whose refusals are the only ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson
from starlette.requests import Request

from penstock.graph_server.http.errors import reply
from penstock.graph_server.http.identity import trusted
from penstock.graph_server.queries import query as queries
from penstock.graphdb.errors import CypherError
from penstock.kit.asgi import Replayed, is_plain_json
from penstock.kit.errors import PenstockError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from penstock.graph_server.served_graph import Served

_LONGEST_BODY = 256 * 1024
_LONG_NUMBER = re.compile(rb"\d{19}")


class DirectQueries:
    def __init__(self, app: ASGIApp, served: Served) -> None:
        self._app = app
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != "/query":
            return await self._app(scope, receive, send)
        seen = Replayed(receive)
        request = Request(scope, seen.receive)
        try:
            answer = await self._answer(request)
        except PenstockError as e:
            answer = reply(e, request)
        if answer is None:
            return await self._app(scope, seen.again, send)
        return await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        if not is_plain_json(request.headers, most_bytes=_LONGEST_BODY):
            return None
        await trusted(request)
        message = await request.receive()
        if message["type"] != "http.request" or message.get("more_body", False):
            return None
        content = message["body"]
        if _LONG_NUMBER.search(content):
            return None
        try:
            body = queries.QueryBody.model_validate(orjson.loads(content))
            queries.check_values(body.parameters)
        except (ValueError, CypherError):
            return None
        return await queries.run(self._served, body, request)
