"""Raw HTTP requests, which a normal client would not send."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def sent(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def until_closed(self) -> tuple[int, str]:
        """The status and error code of the response before the server closed the connection."""
        data = bytearray()
        with suppress(ConnectionResetError):
            while piece := await self._reader.read(65536):
                data += piece
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), orjson.loads(body)["error"]["code"]

    async def status(self) -> int:
        """The status of the next response."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        return int(head.split(b" ")[1])

    async def refused(self) -> tuple[int, str]:
        """The status and error code of a response; the connection may stay open."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        content = orjson.loads(await self._reader.readexactly(length))
        return int(head.split(b" ")[1]), content["error"]["code"]

    async def response(self) -> tuple[bytes, bytes]:
        """The head and the body of the next response."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        status, fields = head.split(b"\r\n", 1)
        assert b" 200 " in status, head
        length = int(fields.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return head, await self._reader.readexactly(length)

    async def answered(self) -> bytes:
        return (await self.response())[1]

    async def ended(self) -> bool:
        """Whether the server closed the connection and sent nothing more."""
        with suppress(ConnectionResetError):
            return await self._reader.read() == b""
        return True

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield client
    finally:
        await client.close()
