"""A TCP proxy in front of the control planes, with the faults that networks have.

`cut` resets every connection now; `swallow` lets the next requests through to the server and resets
before a byte of the reply comes back (the write lands, the caller never knows); `slow` delays for a
while; `drop` loses every byte and closes nothing; a dead upstream is skipped.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress


class Proxy:
    def __init__(self) -> None:
        self.port = 0
        self._upstreams: dict[str, int] = {}
        self._turn = 0
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._swallow = 0
        self._delay = 0.0
        self._dropping = False
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()

    def upstream(self, name: str, port: int | None) -> None:
        if port is None:
            self._upstreams.pop(name, None)
        else:
            self._upstreams[name] = port

    def cut(self) -> int:
        for pair in list(self._pairs):
            for writer in pair:
                _reset(writer)
        return len(self._pairs)

    def swallow(self, replies: int) -> None:
        self._swallow = replies

    def slow(self, seconds: float) -> None:
        self._delay = seconds

    def drop(self, dropping: bool) -> None:
        self._dropping = dropping

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened = await self._connect()
        if opened is None:
            _reset(writer)
            return
        up_reader, up_writer = opened
        pair = (writer, up_writer)
        self._pairs.add(pair)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, up_writer, back=False))
                group.create_task(self._pump(up_reader, writer, back=True))
        except* (OSError, _Swallowed):
            _reset(writer)
        finally:
            self._pairs.discard(pair)
            for side in pair:
                side.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        ports = list(self._upstreams.values())
        self._turn += 1
        for offset in range(len(ports)):
            with suppress(OSError):
                return await asyncio.open_connection(
                    "127.0.0.1", ports[(self._turn + offset) % len(ports)]
                )
        return None

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool
    ) -> None:
        while data := await reader.read(65536):
            if back and self._swallow:
                self._swallow -= 1
                raise _Swallowed
            if self._delay:
                await asyncio.sleep(self._delay)
            if not self._dropping:
                writer.write(data)
                await writer.drain()
        raise ConnectionResetError


class _Swallowed(Exception):
    pass


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST, not FIN: the other side learns nothing of what was on its way."""
    transport = writer.transport
    sock = transport.get_extra_info("socket")
    if sock is not None and not transport.is_closing():
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
