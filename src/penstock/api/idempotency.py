"""`Idempotency-Key` on any write of the public API: the first answer is given again, and nothing is
done twice.

A key belongs to its caller, method and path. What says that nothing was done (a refusal of the
credential, a wish to try later, an error of ours) is not kept, so the same key can be tried again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import Response

from penstock.accounts.idempotency import MAX_KEY, Answer
from penstock.accounts.idempotency import Request as Asked
from penstock.api import permissions
from penstock.api.auth import identify
from penstock.api.envelope import request_id
from penstock.api.errors import reply
from penstock.kit.errors import InvalidInput, PayloadTooLarge, PenstockError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from penstock.api.services import Services

HEADER = "idempotency-key"
OTHER_PROTOCOLS = ("/api/internal/", "/api/iceberg/")
"""Here a write is safe to repeat by other means: a fence, or the catalog's own conditions."""
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEPT_HEADERS = ("content-type", "etag", "location")
_NOT_KEPT = frozenset({401, 403, 408, 413, 425, 429})
_KEY = re.compile(rf"[!-~]{{1,{MAX_KEY}}}")


def applies(request: Request) -> bool:
    return (
        request.method in WRITES
        and HEADER in request.headers
        and not request.url.path.startswith(OTHER_PROTOCOLS)
    )


async def once(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    parts: Services = request.app.state.parts
    if parts.people is None:
        return await handle(request)
    answers = parts.people.answers
    asked = await _asked(request, parts)
    begun = await answers.begin(asked)
    if isinstance(begun, Answer):
        await _check_may_still(request, parts)
        return _again(begun)
    kept = False
    try:
        answer = await _answer(request, handle)
        if kept := _says_what_was_done(answer):
            await answers.keep(asked, begun, _to_keep(answer))
    finally:
        if not kept:
            await answers.forget(asked, begun)
    return answer


async def _asked(request: Request, parts: Services) -> Asked:
    keys = request.headers.getlist(HEADER)
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        raise InvalidInput(f"Idempotency-Key: one key of 1-{MAX_KEY} visible ASCII characters.")
    _check_length(request, parts.max_body_bytes)
    identity = await identify(request, parts)
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return Asked(
        username=identity.username,
        role=identity.role,
        method=request.method,
        path=path,
        key=keys[0],
        body=await request.body(),
    )


async def _check_may_still(request: Request, parts: Services) -> None:
    """A stored answer is for whom the route lets in now."""
    if permissions.row(request).kind == "role":
        await permissions.permit(request, await identify(request, parts))


def _check_length(request: Request, most: int) -> None:
    """The body is held in memory to be told from others; a file that is uploaded is not."""
    if "transfer-encoding" in request.headers:
        raise InvalidInput("With an Idempotency-Key the body's length must be said beforehand.")
    if int(request.headers.get("content-length", "0")) > most:
        raise PayloadTooLarge(
            f"With an Idempotency-Key at most {most:,} bytes are taken.", limit=most
        )


async def _answer(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    try:
        return await handle(request)
    except PenstockError as e:
        return reply(e, request_id(request))


def _says_what_was_done(answer: Response) -> bool:
    return answer.status_code < 500 and answer.status_code not in _NOT_KEPT


def _to_keep(answer: Response) -> Answer | None:
    if answer.headers.get("cache-control") == "no-store":
        return None
    headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
    return Answer(status=answer.status_code, headers=headers, body=bytes(answer.body))


def _again(answer: Answer) -> Response:
    return Response(
        answer.body,
        status_code=answer.status,
        headers={**answer.headers, "idempotency-replayed": "true"},
    )
