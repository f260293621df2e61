"""Frames between the graph server and its engine process.

A channel is one unix socket with one thread behind it, and carries one request at a time. Requests
are pickled, for the engine process trusts its server. Replies are bytes or JSON and never
unpickled: the engine process runs queries of strangers.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import orjson

from penstock.kit.errors import PenstockError, rebuild

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    Bytes: TypeAlias = bytes | memoryview

REPLY, ERROR, CHUNK, END = b"R", b"E", b"C", b"Z"
"""A whole answer; why there is none; one piece of a stream; its end."""
PIECE_BYTES = 256 * 1024
_REPLY_HEAD = struct.Struct("!cQ")
_REQUEST_HEAD = struct.Struct("!Q")
_SOCKET_BYTES = 2 * 1024 * 1024


class EngineGone(Exception):
    """The engine process ended while it was waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A method of `Work` and its arguments."""

    method: str
    arguments: dict[str, object]

    def packed(self) -> bytes:
        content = pickle.dumps((self.method, self.arguments), protocol=pickle.HIGHEST_PROTOCOL)
        return _REQUEST_HEAD.pack(len(content)) + content


# The engine process's side: blocking, a thread a channel.


def receive(sock: socket.socket) -> Request | None:
    """The next request; None when the server has closed the channel."""
    data = sock.recv(65536)
    if not data:
        return None
    buffer = bytearray(data)
    while len(buffer) < _REQUEST_HEAD.size:
        buffer += _more(sock)
    [length] = _REQUEST_HEAD.unpack_from(buffer)
    while len(buffer) < _REQUEST_HEAD.size + length:
        buffer += _more(sock)
    method, arguments = pickle.loads(memoryview(buffer)[_REQUEST_HEAD.size :])  # noqa: S301 - see above
    return Request(method=method, arguments=arguments)


def send(sock: socket.socket, kind: bytes, content: Bytes = b"") -> None:
    head = _REPLY_HEAD.pack(kind, len(content))
    if len(content) <= PIECE_BYTES:
        sock.sendall(head + bytes(content))
        return
    sock.sendall(head)
    sock.sendall(content)


def send_error(sock: socket.socket, error: PenstockError) -> None:
    content = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "details": error.details,
    }
    send(sock, ERROR, orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS))


def widen(sock: socket.socket) -> None:
    """Room for a batch on its way while the next one is made."""
    import socket as module

    for option in (module.SO_SNDBUF, module.SO_RCVBUF):
        sock.setsockopt(module.SOL_SOCKET, option, _SOCKET_BYTES)


def _more(sock: socket.socket) -> bytes:
    data = sock.recv(1024 * 1024)
    if not data:
        raise EngineGone
    return data


# The server's side: on the event loop.


class Frame:
    """The beginning of a reply; its content is read only as fast as somebody takes it."""

    def __init__(self, kind: bytes, length: int, channel: Channel, first: bytes) -> None:
        self.kind = kind
        self.length = length
        self._left = length
        self._channel = channel
        self._first = first

    async def pieces(self) -> AsyncIterator[bytes]:
        """The unread rest; reading may stop and continue later."""
        while self._left:
            piece = self._first or await self._channel.read(min(self._left, PIECE_BYTES))
            self._first = b""
            self._left -= len(piece)
            yield piece

    async def whole(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def error(self) -> PenstockError:
        content = orjson.loads(await self.whole())
        return rebuild(
            content["code"], content["message"], hint=content["hint"], details=content["details"]
        )


class Channel:
    """The server's end of a channel; `slot` is its number in both processes, `request` counts the
    requests that it carried."""

    def __init__(self, sock: socket.socket, slot: int) -> None:
        self.slot = slot
        self.request = 0
        self._sock = sock
        self._coming: asyncio.Future[bytes] | None = None
        self._rest = b""

    async def send(self, packed: bytes) -> None:
        self.request += 1
        try:
            await asyncio.get_running_loop().sock_sendall(self._sock, packed)
        except OSError as e:
            raise EngineGone from e

    async def frame(self) -> Frame:
        """The beginning of the next reply."""
        while len(self._rest) < _REPLY_HEAD.size:
            self._rest += await self._receive(PIECE_BYTES)
        kind, length = _REPLY_HEAD.unpack_from(self._rest)
        end = _REPLY_HEAD.size + length
        first, self._rest = self._rest[_REPLY_HEAD.size : end], self._rest[end:]
        return Frame(kind, length, self, first)

    async def read(self, size: int) -> bytes:
        """Some bytes of the frame that was begun, at most `size`."""
        if not self._rest:
            self._rest = await self._receive(size)
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece

    async def _receive(self, size: int) -> bytes:
        """A read that is never cancelled: what it took would be lost, and the next frame
        unreadable."""
        if self._coming is None:
            loop = asyncio.get_running_loop()
            self._coming = asyncio.ensure_future(loop.sock_recv(self._sock, size))
        try:
            data = await asyncio.shield(self._coming)
        except OSError as e:
            raise EngineGone from e
        self._coming = None
        if not data:
            raise EngineGone
        return data

    def close(self) -> None:
        self._sock.close()
