"""The reverse proxy to graph servers, `/wrapper/{slug}/…`, for authenticated callers.

Headers with which a caller could identify itself are removed: credentials, cookies, hop-by-hop
headers and every `X-Penstock-*`. The authenticated identity is added, with the server's own token.
Paths are forwarded byte for byte; ambiguous ones, which two parsers could read differently, are
refused. Bodies stream in both directions. When a caller disconnects, the connection to the server
is closed, which interrupts its query.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Annotated, Self
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Path, Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from penstock.api.permissions import Grant, Permit
from penstock.api.requests import statement_log
from penstock.api.schema.envelope import request_id
from penstock.api.services import Graphs, HasGraphs
from penstock.graphs.instances.model import Instance, InstanceStatus
from penstock.kit import logging
from penstock.kit.errors import InvalidInput, InvalidState, NotFound, PermissionDenied, Unavailable
from penstock.kit.http1 import Broken, Connection, Connections, head_of
from penstock.kit.security_headers import POLICY

router = APIRouter(prefix="/wrapper", tags=["instances"])
log = logging.get(__name__)
CLIENT_CLOSED_REQUEST = 499
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
_NOT_PASSED = _HOP_BY_HOP | {
    "host",
    "authorization",
    "cookie",
    "content-length",
    "forwarded",
    "x-request-id",
}
_BROWSER_POLICY_HEADERS = {
    "cache-control",
    "clear-site-data",
    "content-security-policy",
    "refresh",
    "referrer-policy",
    "set-cookie",
    "strict-transport-security",
    "x-content-type-options",
}
_NOT_RETURNED = frozenset(
    name.encode()
    for name in _HOP_BY_HOP | _BROWSER_POLICY_HEADERS | {"server", "date", "x-request-id"}
)
_OURS = (
    "x-penstock-",
    "x-username",
    "x-user-role",
    "x-component",
    "x-forwarded-",
    "x-real-ip",
    "x-use-case-id",
)
_PATH = re.compile(rb"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
_AMBIGUOUS = re.compile(rb"%(2f|5c|00|25|2e)|//|/\.{1,2}(/|$)|%(?![0-9a-f]{2})", re.IGNORECASE)
_INTERNAL = frozenset({b"shutdown"})
_QUERY = b"/query"
"""The graph server logs the statement, with the user of X-Penstock-User."""


@router.api_route("/{slug}/{path:path}", methods=list(METHODS), include_in_schema=False)
async def proxy(slug: Slug, request: Request, graphs: HasGraphs, grant: Permit) -> Response:
    return await pass_on(slug, request, graphs, grant)


async def pass_on(slug: str, request: Request, graphs: Graphs, grant: Grant) -> Response:
    """Forward the request; returns once the graph server's response headers have arrived."""
    path = _path(request, slug)
    instance = await graphs.instances.store.by_slug(slug)
    _check_running(instance)
    await graphs.rights.check_instance(instance, grant.username, is_admin=grant.is_admin)
    if request.method == "POST" and path.endswith(_QUERY):
        statement_log.of_app(request.app).count("cypher")
    if "upgrade" in request.headers:
        raise InvalidInput(
            "Connection upgrades are not supported; graph servers speak plain HTTP.",
            field="Upgrade",
        )
    start = (
        f"{request.method} ".encode()
        + _with_query(path, request.scope["query_string"])
        + b" HTTP/1.1"
    )
    head = head_of(
        start, [*_passed(request), *_identity(instance, grant, request, graphs), *_length(request)]
    )
    try:
        relay = Relay(graphs.instances.servers.connections(instance.handle))
        return await relay.begin(head, request)
    except ClientDisconnect:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    except Broken as e:
        log.warning("graph_server_silent", instance_id=instance.instance_id, error=str(e))
        raise Unavailable(
            f"The graph server of instance {instance.instance_id} is unreachable."
        ) from e


def _path(request: Request, slug: str) -> bytes:
    """The raw path below the instance; refused if it is ambiguous."""
    raw: bytes = request.scope["raw_path"]
    head = f"/wrapper/{slug}".encode()
    path = raw.removeprefix(head)
    if path == raw or not _PATH.fullmatch(path) or _AMBIGUOUS.search(path):
        raise InvalidInput("This path is ambiguous and is not forwarded.", field="path")
    if unquote_to_bytes(path.split(b"/")[1]).lower() in _INTERNAL:
        raise PermissionDenied(
            "A graph server cannot be shut down through the proxy.", hint="Terminate its instance."
        )
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
                hint=f"GET /api/instances/{instance.instance_id}/progress shows its progress.",
                status=str(instance.status),
                phase=instance.loading_phase,
            )


def _with_query(path: bytes, query: bytes) -> bytes:
    return path + b"?" + query if query else path


def _passed(request: Request) -> Iterator[tuple[bytes, bytes]]:
    named = {
        name.strip().lower() for name in ",".join(request.headers.getlist("connection")).split(",")
    }
    for name, value in request.headers.raw:
        plain = name.decode("latin-1").lower().replace("_", "-")
        if plain not in _NOT_PASSED and plain not in named and not plain.startswith(_OURS):
            yield name, value


def _identity(
    instance: Instance, grant: Grant, request: Request, graphs: Graphs
) -> Iterator[tuple[bytes, bytes]]:
    """A graph server treats a request without a user as the control plane's own, so there is always
    one here."""
    if not grant.username:
        raise PermissionDenied("Requests to a graph server need a username.")
    writes = grant.username == instance.owner_username or grant.role.name in ("ADMIN", "OPS")
    yield b"Host", b"instance"
    yield b"Authorization", graphs.instances.servers.authorization(instance.instance_id).encode()
    yield b"X-Penstock-User", grant.username.encode()
    yield b"X-Penstock-Role", grant.role.name.lower().encode()
    yield b"X-Penstock-Write", b"1" if writes else b"0"
    yield b"X-Request-ID", request_id(request).encode()


def _length(request: Request) -> Iterator[tuple[bytes, bytes]]:
    """We frame the body ourselves; our HTTP server has validated its length."""
    if "transfer-encoding" in request.headers:
        yield b"Transfer-Encoding", b"chunked"
    else:
        yield b"Content-Length", request.headers.get("content-length", "0").encode()


class Relay(Response):
    """A streamed response of a graph server. A truncated one is truncated here too, and never looks
    complete.

    When the caller disconnects, the connection to the server is closed.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._connection: Connection | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_gone = False
        self.background = None

    async def begin(self, head: bytes, request: Request) -> Self:
        """Sends the request and waits for the response headers."""
        self._connection = connection = await self._connections.take()
        try:
            await _send(connection, head, request)
            self._watching = asyncio.create_task(self._watch(request.receive))
            await connection.head()
        except Broken as e:
            self._end()
            if self._is_gone:
                raise ClientDisconnect from e
            raise
        except BaseException:
            self._end()
            raise
        self.status_code = connection.status
        self.raw_headers = _returned(connection.headers)
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        assert self._connection is not None
        try:
            await self._pump(self._connection, send)
        except Broken:
            if not self._is_gone:
                raise
        finally:
            self._end()

    async def _pump(self, connection: Connection, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        body = connection.buffered
        if body is None:
            body = b""
            async for piece in connection.pieces():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            continue
        self._is_gone = True
        if self._connection is not None:
            self._connection.abort()

    def _end(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            self._connections.give_back(connection)


async def _send(connection: Connection, head: bytes, request: Request) -> None:
    """Sends the request, with backpressure from the server on long bodies."""
    is_chunked = "transfer-encoding" in request.headers
    frame = _chunk if is_chunked else bytes
    has_more, piece = await _next_piece(request)
    await connection.send(head, frame(piece))
    while has_more and not connection.has_answered:
        has_more, piece = await _next_piece(request)
        await connection.send_more(frame(piece))
    if has_more:
        connection.stop_sending()
    elif is_chunked:
        await connection.send_more(b"0\r\n\r\n")


async def _next_piece(request: Request) -> tuple[bool, bytes]:
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("more_body", False), message.get("body", b"")


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""


def _returned(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    named = {
        name.strip().lower()
        for header, value in headers
        if header.lower() == b"connection"
        for name in value.split(b",")
    }
    returned = [(name.lower(), value) for name, value in headers]
    returned = [pair for pair in returned if pair[0] not in _NOT_RETURNED and pair[0] not in named]
    return [*returned, (b"content-security-policy", f"{POLICY}; sandbox".encode())]
