"""`/wrapper/{slug}/…`: the one way to a graph server, for whoever the control plane has identified.

Nothing that a caller says of itself passes: credentials, cookies, hop-by-hop headers and every `X-Penstock-*` are taken
off, and what we know of the caller is put on, with the server's own token. A path passes as it was written, or not at
all: what could mean one thing here and another there is refused. Bodies stream both ways, and when a caller goes away
its request to the server is cut, which interrupts its query.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Annotated
from urllib.parse import unquote_to_bytes

import httpx2
from fastapi import APIRouter, Path, Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from penstock.api.matrix import Grant, Permit
from penstock.api.parts import Graphs, HasGraphs
from penstock.api.reply import request_id
from penstock.graphs.instance import Instance, InstanceStatus
from penstock.kit import logging
from penstock.kit.errors import InvalidInput, InvalidState, NotFound, PermissionDenied, Unavailable

router = APIRouter(prefix="/wrapper", tags=["instances"])
log = logging.get(__name__)
NOBODY_READS = 499
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
Slug = Annotated[str, Path(pattern=r"^[a-z0-9-]{1,80}$")]

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "expect",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_PASSED = _HOP_BY_HOP | {"host", "authorization", "cookie", "content-length", "forwarded", "x-request-id"}
_NOT_RETURNED = _HOP_BY_HOP | {"set-cookie", "server", "date", "x-request-id"}
_OURS = ("x-penstock-", "x-username", "x-user-role", "x-component", "x-forwarded-", "x-real-ip", "x-use-case-id")
_PATH = re.compile(rb"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
_TWO_FACED = re.compile(rb"%(2f|5c|00|25|2e)|//|/\.{1,2}(/|$)|%(?![0-9a-f]{2})", re.IGNORECASE)
_INTERNAL = frozenset({b"shutdown"})


@router.api_route("/{slug}/{path:path}", methods=list(METHODS), include_in_schema=False)
async def proxy(slug: Slug, request: Request, graphs: HasGraphs, grant: Permit) -> Response:
    path = _path(request, slug)
    instance = await graphs.instances.store.by_slug(slug)
    _check_running(instance)
    if "upgrade" in request.headers:
        raise InvalidInput("Connections are not upgraded here; graph servers speak plain HTTP.", field="Upgrade")
    client, body = graphs.instances.servers.client(instance.handle), _Body(request)
    upstream = httpx2.Request(
        request.method,
        client.base_url.copy_with(raw_path=_with_query(path, request.scope["query_string"])),
        headers=[*_passed(request), *_identity(instance, grant, request, graphs), *_length(request)],
        stream=body,
    )
    try:
        return Relay(await _answer(client, upstream, body, request))
    except ClientDisconnect:
        return Response(status_code=NOBODY_READS)
    except httpx2.TransportError as e:
        log.warning("graph_server_silent", instance_id=instance.instance_id, error=type(e).__name__)
        raise Unavailable(f"The graph server of instance {instance.instance_id} does not answer.") from e


def _path(request: Request, slug: str) -> bytes:
    """As it was written on the wire, below the instance; nothing in it may be read in two ways."""
    raw: bytes = request.scope["raw_path"]
    head = f"/wrapper/{slug}".encode()
    path = raw.removeprefix(head)
    if path == raw or not _PATH.fullmatch(path) or _TWO_FACED.search(path):
        raise InvalidInput("This path is not passed on: it could be read in two ways.", field="path")
    if unquote_to_bytes(path.split(b"/")[1]).lower() in _INTERNAL:
        raise PermissionDenied("A graph server is not shut down from outside.", hint="Terminate its instance.")
    return path


def _check_running(instance: Instance) -> None:
    match instance.status:
        case InstanceStatus.RUNNING:
            return
        case InstanceStatus.STOPPING:
            raise NotFound("There is no such instance.")
        case InstanceStatus.FAILED:
            raise InvalidState(
                f"Instance {instance.instance_id} has failed: {instance.error_message}",
                hint=f"POST /api/instances/{instance.instance_id}/resume loads its snapshot again.",
                status=str(instance.status),
                error_code=instance.error_code,
            )
        case InstanceStatus.SUSPENDED:
            raise InvalidState(
                f"Instance {instance.instance_id} is suspended.",
                hint=f"POST /api/instances/{instance.instance_id}/resume",
                status=str(instance.status),
            )
        case _:
            raise Unavailable(
                f"Instance {instance.instance_id} is {instance.status}.",
                hint=f"GET /api/instances/{instance.instance_id}/progress says how far it is.",
                status=str(instance.status),
                phase=(instance.progress or {}).get("phase"),
            )


def _with_query(path: bytes, query: bytes) -> bytes:
    return path + b"?" + query if query else path


def _passed(request: Request) -> Iterator[tuple[bytes, bytes]]:
    named = {name.strip().lower() for name in ",".join(request.headers.getlist("connection")).split(",")}
    for name, value in request.headers.raw:
        plain = name.decode("latin-1").lower().replace("_", "-")
        if plain not in _NOT_PASSED and plain not in named and not plain.startswith(_OURS):
            yield name, value


def _identity(instance: Instance, grant: Grant, request: Request, graphs: Graphs) -> Iterator[tuple[bytes, bytes]]:
    """Never without a user: a graph server takes a request that names none for the control plane's own."""
    if not grant.username:
        raise PermissionDenied("A caller without a name is passed to no graph server.")
    writes = grant.username == instance.owner_username or grant.role.name in ("ADMIN", "OPS")
    yield b"Host", b"instance"
    yield b"Authorization", graphs.instances.servers.authorization(instance.instance_id).encode()
    yield b"X-Penstock-User", grant.username.encode()
    yield b"X-Penstock-Role", grant.role.name.lower().encode()
    yield b"X-Penstock-Write", b"1" if writes else b"0"
    yield b"X-Request-ID", request_id(request).encode()


def _length(request: Request) -> Iterator[tuple[bytes, bytes]]:
    """How the body is framed is ours to say; how long it is, the server of this side has checked."""
    if "transfer-encoding" in request.headers:
        yield b"Transfer-Encoding", b"chunked"
    else:
        yield b"Content-Length", request.headers.get("content-length", "0").encode()


class _Body(httpx2.AsyncByteStream):
    """A request's body; `read` is set when all of it was."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.read = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._request.stream():
            if chunk:
                yield chunk
        self.read.set()


async def _answer(
    client: httpx2.AsyncClient, upstream: httpx2.Request, body: _Body, request: Request
) -> httpx2.Response:
    """The beginning of the server's answer; cut off when the caller goes before it comes."""
    sending = asyncio.create_task(client.send(upstream, stream=True))
    watching = asyncio.create_task(_gone(request.receive, body.read))
    try:
        await asyncio.wait((sending, watching), return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            raise ClientDisconnect
        return sending.result()
    finally:
        for task in (sending, watching):
            task.cancel()
        await asyncio.gather(sending, watching, return_exceptions=True)


async def _gone(receive: Receive, read: asyncio.Event) -> None:
    await read.wait()
    while (await receive())["type"] != "http.disconnect":
        continue


class Relay(Response):
    """An answer that is passed on as it comes. One that breaks off breaks off here too, and never ends as if whole."""

    def __init__(self, upstream: httpx2.Response) -> None:
        self._upstream = upstream
        self.status_code = upstream.status_code
        self.background = None
        named = {name.strip().lower() for name in upstream.headers.get("connection", "").split(",")}
        self.raw_headers = [
            (name.lower(), value)
            for name, value in upstream.headers.raw
            if name.lower().decode("latin-1") not in _NOT_RETURNED | named
        ]
        self.raw_headers += [(b"x-content-type-options", b"nosniff"), (b"content-security-policy", b"sandbox")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        pumping = asyncio.create_task(self._pump(send))
        read = asyncio.Event()
        read.set()
        watching = asyncio.create_task(_gone(receive, read))
        try:
            await asyncio.wait((pumping, watching), return_when=asyncio.FIRST_COMPLETED)
            if pumping.done():
                pumping.result()
        finally:
            for task in (pumping, watching):
                task.cancel()
            await asyncio.gather(pumping, watching, return_exceptions=True)
            await self._upstream.aclose()

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for chunk in self._upstream.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
