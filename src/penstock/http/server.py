"""The HTTP server of our processes: uvicorn with connection limits.

A connection costs a descriptor and memory before its caller is authenticated, so these limits apply
to everybody:

- A request's head must be complete `header_seconds` after its first byte, or after the connection
  was opened, and has at most `header_bytes`.
- A body must keep arriving: at most `body_seconds` between bytes, and `bytes_per_second` on average
  after the first `body_seconds`. Time in which we do not read is not counted.
- After the response was sent, at most `unread_bytes` more of the body are read, so that the client
  can receive the response. A response to a body that may be longer says `Connection: close`, and
  the connection is closed after the body or after those bytes: a client must not send its next
  request on it.
- One address has at most `per_address` connections to this process. Addresses in `exempt`, such as
  a shared proxy, are not counted. IPv6 is counted by /64, the usual allocation of one host.

A refused client gets the usual error envelope, and the connection is closed.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, ClassVar, TypeAlias, cast

import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from penstock.kit import ids, logging
from penstock.kit.errors import (
    HeadersTooLarge,
    InvalidInput,
    PenstockError,
    RateLimited,
    RequestTimeout,
)
from penstock.kit.security_headers import SecurityHeaders, headers_for

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

log = logging.get(__name__)
KEEP_ALIVE_SECONDS = 75
"""Longer than workers keep an idle connection, so that they close it, and not we during their next
request."""
TICKS_A_SWEEP = 5
"""uvicorn ticks ten times a second."""
RETRY_AFTER_SECONDS = 5
Network: TypeAlias = IPv4Network | IPv6Network
LOOPBACK: tuple[Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    header_seconds: float = 10.0
    header_bytes: int = 64 * 1024
    body_seconds: float = 30.0
    bytes_per_second: int = 1024
    unread_bytes: int = 16 * 1024 * 1024
    per_address: int = 256
    exempt: tuple[Network, ...] = LOOPBACK


def networks(text: str) -> tuple[Network, ...]:
    """Parses a setting such as `10.0.0.0/8, 192.0.2.7`; raises InvalidInput."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        return tuple(ip_network(name, strict=False) for name in names)
    except ValueError as e:
        raise InvalidInput(
            f"{e}.", hint="Separate addresses or networks with commas: 10.0.0.0/8, 192.0.2.7"
        ) from None


class AddressCounts:
    """Counts the connections of each address."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> str | None:
        """The key under which it was counted, for `leave`; None when it has too many."""
        host = _host(address)
        if not host or self._is_exempt(address):
            return ""
        if self._open[host] >= self._limits.per_address:
            return None
        self._open[host] += 1
        return host

    def leave(self, host: str) -> None:
        if host:
            self._open[host] -= 1
            if not self._open[host]:
                del self._open[host]

    def _is_exempt(self, address: str) -> bool:
        parsed = _parsed(address)
        return any(parsed in network for network in self._limits.exempt)


def _parsed(address: str) -> IPv4Address | IPv6Address:
    parsed = ip_address(address.partition("%")[0])
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, IPv6Address) else parsed


def _host(address: str) -> str:
    """The key under which an address is counted; empty for a unix socket."""
    try:
        parsed = _parsed(address)
    except ValueError:
        return ""
    return str(parsed) if parsed.version == 4 else str(ip_network((parsed, 64), strict=False))


class Stage(Enum):
    """What a connection is waiting for."""

    REQUEST = 1
    HEAD = 2
    BODY = 3


class HttpProtocol(HttpToolsProtocol):
    """One connection; `_expires` is the deadline for what its client is sending."""

    limits: ClassVar[ConnectionLimits]
    addresses: ClassVar[AddressCounts]

    _counted_as: str | None = ""
    _stage = Stage.HEAD
    _now = 0.0
    _expires = math.inf
    _head_bytes = 0
    _body_began = 0.0
    _body_bytes = 0
    _body_left: float = 0
    _unread_bytes = 0
    _closes_after_body = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._expires = self.loop.time() + self.limits.header_seconds
        self._counted_as = self.addresses.enter(self.client[0] if self.client else "")
        if self._counted_as is None:
            most = self.limits.per_address
            self._refuse(
                RateLimited(
                    f"Your address already has {most} open connections, the maximum.",
                    hint="Reuse connections: one can serve many requests in sequence.",
                    limit=most,
                    retry_after_seconds=RETRY_AFTER_SECONDS,
                )
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self.addresses.leave(self._counted_as or "")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._now = self.loop.time()
        was_body = self._stage is Stage.BODY
        if self._stage is Stage.REQUEST:
            self._await_head()
        super().data_received(data)
        if self._stage is Stage.HEAD and not was_body:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.header_bytes and not self.transport.is_closing():
                self._refuse(self._too_large())

    def expire(self, now: float) -> None:
        """Close the connection if its deadline has passed."""
        if now < self._expires:
            return
        if self.transport.is_closing():
            self.transport.abort()
            return
        if self.flow.read_paused or getattr(self.cycle, "waiting_for_100_continue", False):
            self._now = now
            if self._stage is Stage.BODY:
                self._await_body()
            else:
                self._await_head()
            return
        log.info("client_too_slow", stage=self._stage.name.lower(), client=str(self.client))
        self._refuse(self._too_slow())

    # callbacks of the HTTP parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers are dropped: authentication uses the headers only."""
        if self._stage is Stage.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.limits.header_bytes:
            self._refuse(self._too_large())
        if not self.transport.is_closing():
            self._head_bytes = 0
            self._body_left = _announced_bytes(self.headers)
            self._await_body()
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.transport.is_closing():
            return
        self._body_bytes += len(body)
        self._body_left -= len(body)
        self._expires = self._now + self.limits.body_seconds
        earned = self._body_bytes / self.limits.bytes_per_second
        self._expires = min(self._expires, self._body_began + self.limits.body_seconds + earned)
        if self.cycle.response_complete:
            self._unread_bytes += len(body)
            if self._unread_bytes > self.limits.unread_bytes:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.transport.is_closing():
            return
        self._stage, self._expires, self._unread_bytes = Stage.REQUEST, math.inf, 0
        super().on_message_complete()
        if self._closes_after_body and self.cycle.response_complete:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Adds the security headers: a malformed request never reaches the application."""
        if self.transport.is_closing():
            return
        ordinary = self.server_state.default_headers
        self.server_state.default_headers = [*ordinary, *headers_for(self.scheme or "http")]
        try:
            super().send_400_response(msg)
        finally:
            self.server_state.default_headers = ordinary

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._closes_after_body and self._stage is not Stage.BODY:
            self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        async def closing(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_closing(message: Message) -> None:
                is_start = message["type"] == "http.response.start"
                if is_start and cycle.more_body and self._may_stay_unread():
                    headers = [*message.get("headers", ()), (b"connection", b"close")]
                    await send({**message, "headers": headers})
                    # Otherwise uvicorn closes the connection while the client still sends, which
                    # can cost the client the response.
                    cycle.keep_alive = self._closes_after_body = True
                else:
                    await send(message)

            await cast("ASGIApp", app)(scope, receive, send_closing)

        super()._start_asgi_task(cycle, cast("ASGI3Application", closing))

    def _may_stay_unread(self) -> bool:
        """Whether the rest of the body may be more than we read after the response."""
        return self._stage is Stage.BODY and self._body_left > self.limits.unread_bytes

    def _await_head(self) -> None:
        self._stage, self._expires = Stage.HEAD, self._now + self.limits.header_seconds

    def _await_body(self) -> None:
        self._stage, self._expires = Stage.BODY, self._now + self.limits.body_seconds
        self._body_began, self._body_bytes = self._now, 0

    def _too_large(self) -> HeadersTooLarge:
        most = self.limits.header_bytes
        return HeadersTooLarge(
            f"The headers are too large; the limit is {most:,} bytes.", limit=most
        )

    def _too_slow(self) -> RequestTimeout:
        if self._stage is Stage.BODY:
            return RequestTimeout(
                "The body arrived too slowly.",
                hint=f"Send at least {self.limits.bytes_per_second:,} bytes a second.",
            )
        seconds = self.limits.header_seconds
        return RequestTimeout(f"The request headers were incomplete after {seconds:g} seconds.")

    def _refuse(self, error: PenstockError) -> None:
        """Send the error, unless the application has begun to respond, and close the connection."""
        began = getattr(self.cycle, "response_started", False)
        is_next = self._stage is not Stage.BODY and began and self.cycle.response_complete
        if not began or is_next:
            self.transport.write(_answer(error, self.scheme or "http"))
        self._expires = self.loop.time() + self.limits.header_seconds
        self.transport.close()


def _announced_bytes(headers: list[tuple[bytes, bytes]]) -> float:
    """The length of a request's body, infinite if only its end will tell."""
    fields = dict(headers)
    if b"transfer-encoding" in fields:
        return math.inf
    return int(fields.get(b"content-length", b"0"))


def _answer(error: PenstockError, scheme: str) -> bytes:
    request_id = ids.request_id()
    hint = {} if error.hint is None else {"hint": error.hint}
    envelope = {"code": error.code, "message": error.message, "details": error.details | hint}
    body = orjson.dumps({"error": envelope, "meta": {"request_id": request_id}})
    wait = error.details.get("retry_after_seconds")
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
        (b"connection", b"close"),
        *headers_for(scheme),
        *(() if wait is None else ((b"retry-after", str(wait).encode()),)),
    ]
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join((*lines, b"", body))


def limited_protocol(chosen: ConnectionLimits) -> type[HttpProtocol]:
    """A protocol class for one server, with its own connection counts."""

    class LimitedHttpProtocol(HttpProtocol):
        limits = chosen
        addresses = AddressCounts(chosen)

    return LimitedHttpProtocol


class HttpServer(uvicorn.Server):
    """uvicorn without its own signal handlers: the process installs them, and tests need none."""

    def __init__(
        self,
        app: ASGIApp,
        limits: ConnectionLimits,
        *,
        grace_seconds: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                SecurityHeaders(app),
                http=limited_protocol(limits),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                # Otherwise callers could forge their address; see `client_address`.
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=grace_seconds,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            )
        )

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_A_SWEEP == 0:
            self.close_slow_connections()
        return await super().on_tick(counter)

    def close_slow_connections(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, HttpProtocol):
                connection.expire(connection.loop.time())

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
