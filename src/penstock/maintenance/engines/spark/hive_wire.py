"""Transports to a HiveServer2: a socket with SASL PLAIN framing, or HTTP."""

from __future__ import annotations

import asyncio
import base64
import ssl
import struct
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import httpx2

from penstock.maintenance.engines.contract import EngineFailed, EngineUnavailable
from penstock.maintenance.engines.spark import thrift

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.maintenance.engines.spark.address import Address
    from penstock.maintenance.engines.spark.thrift import Record, Sent

ANSWER_SECONDS = 60.0
LARGEST = 64 * 1024 * 1024
_LENGTH = struct.Struct("!i")
_START, _OK, _COMPLETE = 1, 2, 5


class Transport(Protocol):
    async def exchange(self, message: bytes) -> bytes: ...


class Wire:
    def __init__(self, address: Address, transport: Transport) -> None:
        self._address = address
        self._transport = transport

    async def call(self, name: str, request: dict[int, Sent]) -> Record:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return thrift.answer(await self._transport.exchange(thrift.call(name, request)))
        except (OSError, EOFError, httpx2.TransportError) as e:
            raise gone(self._address, e) from None


class _Socket:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def authenticate(self, user: str, secret: str) -> None:
        for status, payload in ((_START, b"PLAIN"), (_OK, f"\0{user}\0{secret or 'x'}".encode())):
            self._writer.write(bytes((status,)) + _LENGTH.pack(len(payload)) + payload)
        await self._writer.drain()
        status = _OK
        while status == _OK:
            status = (await self._reader.readexactly(1))[0]
            payload = await self._frame()
        if status != _COMPLETE:
            raise EngineFailed(
                f"Spark rejected the credentials: {payload.decode(errors='replace')[:200]}"
            )

    async def exchange(self, message: bytes) -> bytes:
        self._writer.write(_LENGTH.pack(len(message)) + message)
        await self._writer.drain()
        return await self._frame()

    async def _frame(self) -> bytes:
        [size] = _LENGTH.unpack(await self._reader.readexactly(4))
        if not 0 <= size <= LARGEST:
            raise EngineFailed(f"Spark sent a message of {size} bytes; the limit is {LARGEST}.")
        return await self._reader.readexactly(size)


class _Http:
    def __init__(self, address: Address, client: httpx2.AsyncClient) -> None:
        self._client = client
        scheme = "https" if address.tls else "http"
        self._url = f"{scheme}://{address.host}:{address.port}/{address.path}"
        basic = base64.b64encode(f"{address.user}:{address.secret or 'x'}".encode()).decode()
        authorization = f"Bearer {address.token}" if address.token else f"Basic {basic}"
        self._headers = {"Authorization": authorization, "Content-Type": "application/x-thrift"}

    async def exchange(self, message: bytes) -> bytes:
        reply = await self._client.post(self._url, content=message, headers=self._headers)
        if reply.status_code in (401, 403):
            raise EngineFailed(f"Spark rejected the credentials: HTTP {reply.status_code}.")
        if not reply.is_success:
            raise EngineUnavailable(f"Spark answered with HTTP {reply.status_code}.")
        return reply.content


@asynccontextmanager
async def wire(address: Address) -> AsyncIterator[Wire]:
    if address.http:
        async with httpx2.AsyncClient(timeout=ANSWER_SECONDS) as client:
            yield Wire(address, _Http(address, client))
        return
    socket, writer = await _connected(address)
    try:
        yield Wire(address, socket)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _connected(address: Address) -> tuple[_Socket, asyncio.StreamWriter]:
    secure = ssl.create_default_context() if address.tls else None
    writer = None
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(address.host, address.port, ssl=secure)
            socket = _Socket(reader, writer)
            await socket.authenticate(address.user, address.secret)
    except BaseException as e:
        if writer is not None:
            writer.close()
        if isinstance(e, OSError | EOFError):
            raise gone(address, e) from None
        raise
    return socket, writer


def gone(address: Address, error: Exception) -> EngineUnavailable:
    return EngineUnavailable(
        f"Spark at {address} is unreachable: {str(error) or type(error).__name__}.",
        hint="Check that the server is running and that the address is right.",
    )
