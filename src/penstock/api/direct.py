"""A fast path for hot requests: worker verbs, graph queries, enqueueing jobs and listing jobs.

It calls the same functions as the routes, without the framework's overhead per request. Any
irregular request (another method, an invalid body, a repeated header) falls through to the route,
which alone has the API description, the validation and the error responses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from penstock.api import permissions
from penstock.api.callers.auth import identify, process_of
from penstock.api.errors import refusal, reply
from penstock.api.graphs import proxy
from penstock.api.internal import worker_jobs
from penstock.api.jobs import jobs
from penstock.api.requests import idempotency
from penstock.api.requests.request_bodies import parse
from penstock.jobs.http_bodies import (
    Body,
    ClaimBody,
    ExchangeBody,
    FinishBody,
    HeartbeatBody,
    JobBody,
)
from penstock.kit.asgi import Replayed, is_plain_json
from penstock.kit.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from penstock.api.permissions import Grant
    from penstock.api.services import Services

    Answered: TypeAlias = Callable[[Request, Services], Awaitable[Response | None]]

BodyT = TypeVar("BodyT", bound=Body)
_PROXIED = re.compile(r"/wrapper/([a-z0-9-]{1,80})/.*")
_LONGEST_BODY = 64 * 1024


class Direct:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = _handler(scope)
        if handler is None:
            return await self._app(scope, receive, send)
        seen = Replayed(receive)
        request = Request(scope, seen.receive)
        try:
            answer = await handler(request, scope["app"].state.services)
        except PenstockError as e:
            answer = reply(e, scope["state"]["request_id"])
        except HTTPException as e:
            answer = refusal(e, request)
        if answer is None:
            return await self._app(scope, seen.again, send)
        return await answer(scope, receive, send)


def _handler(scope: Scope) -> Answered | None:
    if scope["type"] != "http":
        return None
    path, method = scope["path"], scope["method"]
    if method == "POST" and path in _VERBS:
        return _verb
    if method == "GET" and path == "/api/jobs":
        return _list_jobs
    if method == "POST" and path == "/api/jobs":
        return _enqueue
    if path.startswith("/wrapper/") and method in proxy.METHODS:
        return _proxy
    return None


async def _verb(request: Request, services: Services) -> Response | None:
    token = _bearer(request) if services.service_tokens else None
    caller = None if token is None else await process_of(request, token, services)
    if caller is None or caller.component != "worker":
        return None
    if request.headers.getlist("x-component") != ["worker"] or not is_plain_json(
        request.headers, most_bytes=_LONGEST_BODY
    ):
        return None
    form, answer = _VERBS[request.scope["path"]]
    body = await _body(request, form)
    return None if body is None else await answer(body, request, services)


async def _body(request: Request, form: type[BodyT]) -> BodyT | None:
    """None when the body is chunked or invalid."""
    message = await request.receive()
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    try:
        return form.model_validate(parse(message["body"]))
    except ValueError:
        return None


async def _renew(body: HeartbeatBody, _request: Request, services: Services) -> Response:
    return await worker_jobs.renew(body, services)


async def _finish(body: FinishBody, _request: Request, services: Services) -> Response:
    return await worker_jobs.finish(body, services)


_VERBS: Mapping[str, tuple[type[Body], Callable[..., Awaitable[Response]]]] = {
    "/api/internal/jobs/claim": (ClaimBody, worker_jobs.claim),
    "/api/internal/jobs/exchange": (ExchangeBody, worker_jobs.exchange),
    "/api/internal/jobs/finish": (FinishBody, _finish),
    "/api/internal/jobs/renew": (HeartbeatBody, _renew),
}
"""Path of each hot worker verb: its body and its handler."""


async def _list_jobs(request: Request, services: Services) -> Response | None:
    try:
        pairs = parse_qsl(request.scope["query_string"].decode("ascii"), keep_blank_values=True)
    except ValueError:
        return None
    values = dict(pairs)
    if len(values) < len(pairs) or any("\x00" in value for value in values.values()):
        return None
    try:
        query = jobs.JobQuery.model_validate(values)
    except ValidationError:
        return None
    grant = await _granted(request, services, "GET /api/jobs")
    return None if grant is None else await jobs.list_jobs(query, request, services, grant)


async def _enqueue(request: Request, services: Services) -> Response | None:
    if idempotency.applies(request) or request.scope["query_string"]:
        return None
    if not is_plain_json(request.headers, most_bytes=_LONGEST_BODY):
        return None
    grant = await _granted(request, services, "POST /api/jobs")
    body = None if grant is None else await _body(request, JobBody)
    return None if grant is None or body is None else await jobs.enqueue(body, services, grant)


async def _proxy(request: Request, services: Services) -> Response | None:
    match = _PROXIED.fullmatch(request.scope["path"])
    if match is None or services.graphs is None:
        return None
    grant = await _granted(request, services, request.method + " /wrapper/{slug}/{path}")
    return None if grant is None else await proxy.pass_on(match[1], request, services.graphs, grant)


async def _granted(request: Request, services: Services, row: str) -> Grant | None:
    """None when the route must refuse the caller."""
    if _bearer(request) is None:
        return None
    identity = await identify(request, services)
    right = permissions.MATRIX[row].right(identity.role)
    return None if right == "no" else permissions.Grant(identity=identity, right=right)


def _bearer(request: Request) -> str | None:
    shown = request.headers.getlist("authorization")
    if len(shown) != 1:
        return None
    scheme, _, token = shown[0].partition(" ")
    return token if scheme.lower() == "bearer" and token else None
