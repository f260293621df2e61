"""A TCP door before a real server, which can be frozen, cut or reset while bytes go through it."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class Proxy:
    def __init__(
        self, upstream: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
    ) -> None:
        self._upstream = upstream
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._budget: int | None = None
        self._at_budget: Callable[[], None] = self.freeze
        self._struck = asyncio.Event()
        self.port = 0
        self.connections = 0

    def after(self, size: int, strike: Callable[[], None]) -> None:
        """Strike once the server has sent `size` more bytes; `struck` waits for it."""
        self._struck.clear()
        self._budget, self._at_budget = size, strike

    async def struck(self, within: float = 20) -> None:
        await asyncio.wait_for(self._struck.wait(), within)

    def freeze(self) -> None:
        """Nothing goes through any more; the connections stay."""
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    def cut(self) -> None:
        """End every connection as a server that exits does."""
        for writer in tuple(self._writers):
            writer.close()

    def reset(self) -> None:
        """End every connection as a machine that lost its power and came back does."""
        for writer in tuple(self._writers):
            handle = writer.get_extra_info("socket")
            if handle.family != socket.AF_UNIX:
                handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        server_reader, server_writer = await self._upstream()
        both = {writer, server_writer}
        self._writers |= both
        try:
            await asyncio.gather(
                self._pump(reader, server_writer, counted=False),
                self._pump(server_reader, writer, counted=True),
            )
        finally:
            self._writers -= both
            for end in both:
                end.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
                if counted:
                    self._count(len(data))
        writer.close()

    def _count(self, size: int) -> None:
        if self._budget is None:
            return
        self._budget -= size
        if self._budget <= 0:
            self._budget = None
            self._at_budget()
            self._struck.set()


@asynccontextmanager
async def proxied(
    upstream: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]],
) -> AsyncIterator[Proxy]:
    proxy = Proxy(upstream)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.thaw()
        proxy.cut()
