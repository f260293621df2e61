"""`Idempotency-Key` on writes of the public API: a repetition gets the stored first response.

A key belongs to its caller, method and path. Responses that mean that nothing was done (401, 403,
429, server errors …) are not stored, so the same key can be tried again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import Response

from penstock.accounts.idempotency import MAX_KEY, Answer
from penstock.accounts.idempotency import Request as KeyedRequest
from penstock.api import permissions
from penstock.api.callers.auth import identify
from penstock.api.errors import reply
from penstock.api.schema.envelope import request_id
from penstock.kit.errors import InvalidInput, PayloadTooLarge, PenstockError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from penstock.api.services import Services

HEADER = "idempotency-key"
OTHER_PROTOCOLS = ("/api/internal/", "/api/iceberg/")
"""Writes here are safe to repeat by other means: a fence, or the Iceberg commit requirements."""
MAX_ANSWER = 1024 * 1024
"""Answers are stored in the database for a day; longer ones belong to queries, which may be sent
again."""
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_STORED_HEADERS = ("content-type", "etag", "location")
_NOT_STORED = frozenset({401, 403, 408, 413, 425, 429})
_KEY = re.compile(rf"[!-~]{{1,{MAX_KEY}}}")


def applies(request: Request) -> bool:
    return (
        request.method in WRITES
        and HEADER in request.headers
        and not request.url.path.startswith(OTHER_PROTOCOLS)
    )


async def once(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    services: Services = request.app.state.services
    if services.people is None:
        return await handle(request)
    answers = services.people.answers
    keyed = await _keyed_request(request, services)
    begun = await answers.begin(keyed)
    if isinstance(begun, Answer):
        await _check_still_permitted(request, services)
        return _replay(begun)
    stored = False
    try:
        answer = await _answer(request, handle)
        if stored := _is_final(answer):
            await answers.store(keyed, begun, _to_store(answer))
    finally:
        if not stored:
            await answers.release(keyed, begun)
    return answer


async def _keyed_request(request: Request, services: Services) -> KeyedRequest:
    keys = request.headers.getlist(HEADER)
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        raise InvalidInput(f"Idempotency-Key: one key of 1-{MAX_KEY} visible ASCII characters.")
    _check_length(request, services.max_body_bytes)
    identity = await identify(request, services)
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return KeyedRequest(
        username=identity.username,
        role=identity.role,
        method=request.method,
        path=path,
        key=keys[0],
        body=await request.body(),
    )


async def _check_still_permitted(request: Request, services: Services) -> None:
    """The caller may have lost access to the route since the response was stored."""
    if permissions.row(request).kind == "role":
        await permissions.permit(request, await identify(request, services))


def _check_length(request: Request, most: int) -> None:
    """The body is read into memory to be compared, so large uploads cannot have a key."""
    if "transfer-encoding" in request.headers:
        raise InvalidInput("A request with an Idempotency-Key needs a Content-Length.")
    if int(request.headers.get("content-length", "0")) > most:
        raise PayloadTooLarge(
            f"A request with an Idempotency-Key may have at most {most:,} bytes.", limit=most
        )


async def _answer(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    try:
        return await handle(request)
    except PenstockError as e:
        return reply(e, request_id(request))


def _is_final(answer: Response) -> bool:
    return answer.status_code < 500 and answer.status_code not in _NOT_STORED


def _to_store(answer: Response) -> Answer | None:
    if answer.headers.get("cache-control") == "no-store" or len(answer.body) > MAX_ANSWER:
        return None
    headers = {name: answer.headers[name] for name in _STORED_HEADERS if name in answer.headers}
    return Answer(status=answer.status_code, headers=headers, body=bytes(answer.body))


def _replay(answer: Answer) -> Response:
    return Response(
        answer.body,
        status_code=answer.status,
        headers={**answer.headers, "idempotency-replayed": "true"},
    )
