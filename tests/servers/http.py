"""A small HTTP/1.1 server that can misbehave at byte level, which no framework allows."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Misdeed = Literal["empty", "hang", "html", "reset", "status", "torn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    query: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens to the next `times` requests whose method and path begin so, after `skip` good
    ones.

    The request is served first: a torn or reset answer was given, and only its way back was bad.
    """

    misdeed: Misdeed
    method: str = "GET"
    path: str = "/v1/statement/executing"
    times: int = 1
    skip: int = 0
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)

    def strikes(self, request: Request) -> bool:
        if (
            self.times == 0
            or request.method != self.method
            or not request.path.startswith(self.path)
        ):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True


class HttpServer:
    def __init__(self, serve: Callable[[Request], Awaitable[Response]]) -> None:
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.crashes: list[Exception] = []
        self.port = 0

    async def __aenter__(self) -> HttpServer:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.crashes:
            raise self.crashes[0]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (request := await _request(reader)) is not None:
                await self._answer(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the other side has left, or we are closing
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        fault = next((fault for fault in self.faults if fault.strikes(request)), None)
        if fault is not None and fault.misdeed == "status":
            response = Response(status=fault.status, headers=fault.headers, body=b"busy")
        else:
            response = await self._served(request)
        match fault.misdeed if fault else None:
            case "hang":
                await asyncio.Event().wait()
            case "reset":
                raise ConnectionResetError
            case "torn":
                writer.write(_bytes(response, request)[: -max(1, len(response.body) // 2)])
                await writer.drain()
                raise ConnectionResetError
            case "empty":
                response = Response(headers=response.headers)
            case "html":
                response = Response(body=b"<html>a proxy speaks</html>")
        writer.write(_bytes(response, request))
        await writer.drain()

    async def _served(self, request: Request) -> Response:
        try:
            return await self._serve(request)
        except Exception as e:
            self.crashes.append(e)
            return Response(status=500, body=b"the test's own server failed")


async def _request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Request(method=method, path=parts.path, headers=headers, body=body, query=parts.query)


def _bytes(response: Response, request: Request) -> bytes:
    headers = {**response.headers, "Content-Length": str(len(response.body))}
    head = f"HTTP/1.1 {response.status} X\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in headers.items()
    )
    return head.encode() + b"\r\n" + (b"" if request.method == "HEAD" else response.body)


def as_json(document: object, status: int = 200) -> Response:
    body = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return Response(status=status, body=body, headers={"Content-Type": "application/json"})
