"""A thin HTTP/1.1 client for passing requests on: heads and bodies as bytes, one request a
connection at a time, connections kept.

It knows no redirects, cookies, proxies, TLS or decoding. Whoever passes a request on wants none of
them, and without them a request costs a tenth of what it does with a general client.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import httptools

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    Headers = list[tuple[bytes, bytes]]

HIGH_WATER = 256 * 1024
"""An answer that is read slower than it comes makes its sender wait from here on."""
IDLE_SECONDS = 30.0
"""Shorter than servers of ours keep a connection, so that it is not closed under its next request.
"""


class Broken(ConnectionError):
    """The server cannot be reached, closed the connection, or does not speak HTTP."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A unix socket, or a host and a port."""

    socket: str | None = None
    host: str = ""
    port: int = 0


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._paused = False
        self._is_cut = False
        self._is_kept = False
        self._waiter: asyncio.Future[None] | None = None
        self._error: Broken | None = None
        self._headers: Headers = []
        self._has_head = True
        self._is_whole = True
        """Nothing is expected before something was asked."""
        self.idle_since = 0.0

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._error is not None:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as e:
            self._fail(f"What it answers is not HTTP ({type(e).__name__}).")
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ends_with_connection and exc is None:
            self._is_whole = True
        self._fail("The connection was closed.")
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # what the parser calls

    def on_message_begin(self) -> None:
        """What was not asked for would be taken for the answer to the next request."""
        if self._has_head:
            self._fail("It answered without being asked.")
        else:
            self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._error is None and self._parser.get_status_code() >= 200:
            self._has_head = True
            self._writable.set()
            self._wake()

    def on_body(self, body: bytes) -> None:
        if self._is_whole:
            return
        self._pieces.append(body)
        self._buffered += len(body)
        if self._buffered > HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_whole = True
            self._is_kept = bool(self._parser.should_keep_alive())
            self._wake()

    # what a caller calls

    @property
    def is_open(self) -> bool:
        return self._error is None

    @property
    def has_answered(self) -> bool:
        """Whether the answer has begun, maybe before the request was sent to its end."""
        return self._has_head

    @property
    def status(self) -> int:
        status: int = self._parser.get_status_code()
        return status

    @property
    def headers(self) -> Headers:
        return self._headers

    @property
    def waiting_bytes(self) -> int:
        """Of the body, come and not read."""
        return self._buffered

    @property
    def buffered(self) -> bytes | None:
        """The whole body, when it is there already."""
        if not self._is_whole:
            return None
        body = b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        return body

    @property
    def is_reusable(self) -> bool:
        """Whether the answer was read to its end, and another request may follow it."""
        return (
            self._is_whole
            and self._error is None
            and not self._pieces
            and not self._is_cut
            and self._is_kept
        )

    async def send(self, head: bytes, body: bytes = b"") -> None:
        """The next request begins; what was there of the last answer is forgotten."""
        self._has_head = self._is_whole = False
        self._write(head + body)

    async def send_more(self, piece: bytes) -> None:
        """Waits while the server reads slower than we write."""
        self._write(piece)
        await self._writable.wait()

    def stop_sending(self) -> None:
        """The request is left unfinished, so no other can follow it."""
        self._is_cut = True

    async def head(self) -> None:
        """Until the answer begins; raises Broken."""
        while not self._has_head:
            await self._wait()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes; raises Broken where it breaks off."""
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._buffered -= len(piece)
                if (
                    self._paused
                    and self._buffered < HIGH_WATER // 2
                    and self._transport is not None
                ):
                    self._paused = False
                    self._transport.resume_reading()
                yield piece
            if self._is_whole:
                return
            await self._wait()

    def abort(self) -> None:
        """Now, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()
        self._fail("The connection was given up.")

    @property
    def _ends_with_connection(self) -> bool:
        """An answer of an older server, which says its length by closing the connection."""
        if not self._has_head or self._is_whole:
            return False
        names = {name.lower() for name, _ in self._headers}
        return not names & {b"content-length", b"transfer-encoding"}

    def _write(self, data: bytes) -> None:
        if self._error is not None:
            raise self._error
        assert self._transport is not None
        self._transport.write(data)

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, message: str) -> None:
        if self._error is None:
            self._error = Broken(message)
        self._wake()


class Connections:
    """Connections to one origin; at most `limit` at once, further callers wait."""

    def __init__(self, origin: Origin, *, limit: int, connect_seconds: float) -> None:
        self._origin = origin
        self._connect_seconds = connect_seconds
        self._room = asyncio.Semaphore(limit)
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._closed = False

    async def take(self) -> Connection:
        """One that was kept, or a new one. Give it back."""
        await self._room.acquire()
        try:
            connection = self._kept() or await self._connect()
        except BaseException:
            self._room.release()
            raise
        self._busy.add(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        """One whose answer was not read to its end is closed, which the server notices."""
        self._busy.discard(connection)
        self._room.release()
        if connection.is_reusable and not self._closed:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.abort()

    def retire(self) -> None:
        """Keep none; who reads may go on."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()

    def close(self) -> None:
        """Cuts off whoever still reads."""
        self._closed = True
        for connection in (*self._idle, *self._busy):
            connection.abort()
        self._idle.clear()

    def _kept(self) -> Connection | None:
        """The one that was used last: the others may rest, and are closed when they have for
        long.
        """
        since = asyncio.get_running_loop().time() - IDLE_SECONDS
        while self._idle and self._idle[0].idle_since < since:
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _connect(self) -> Connection:
        loop, origin = asyncio.get_running_loop(), self._origin
        try:
            async with asyncio.timeout(self._connect_seconds):
                if origin.socket is not None:
                    _, connection = await loop.create_unix_connection(Connection, origin.socket)
                else:
                    _, connection = await loop.create_connection(
                        Connection, origin.host, origin.port
                    )
        except (OSError, TimeoutError) as e:
            raise Broken(f"No connection ({type(e).__name__}).") from e
        return connection


def head_of(start: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """`POST /query HTTP/1.1` and the headers, as they go over the wire."""
    lines = [start, *(name + b": " + value for name, value in headers), b"\r\n"]
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
        raise InvalidInput("There is a line break in a header.")
    return head
