"""A minimal HTTP server for `/health`, `/ready` and `/metrics`.

Workers have no web framework. One request per connection, GET and HEAD only, limited in size and
time. It runs in the background thread, so a blocked handler does not look like a dead process.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import orjson

from penstock.kit import logging
from penstock.kit.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.jobs.model import Json

log = logging.get(__name__)
MAX_REQUEST = 8 * 1024
MAX_SECONDS = 5.0
MAX_CONNECTIONS = 32
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"


def document(value: Json, *, well: bool = True) -> Page:
    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
    return Page(status=status, body=orjson.dumps(value) + b"\n")


class HealthServer:
    def __init__(self, host: str, port: int, pages: Mapping[str, Callable[[], Page]]) -> None:
        self._host = host
        self._port = port
        self._pages = pages
        self._open = 0
        self._server: asyncio.Server | None = None
        self.url = ""

    async def __aenter__(self) -> HealthServer:
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host, self._port, limit=MAX_REQUEST
            )
        except OSError as e:
            raise Conflict(
                f"The worker cannot serve its health on {self._host}:{self._port}:"
                f" {os.strerror(e.errno or 0)}.",
                hint="Set PENSTOCK_WORKER_PORT to a free port, or to 0 for any.",
            ) from None
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        log.info("health_served", url=self.url, pages=sorted(self._pages))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(MAX_SECONDS):
                writer.write(_rendered(*await self._answer(reader)))
                await writer.drain()
        except (TimeoutError, OSError):
            return
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[Page, bool]:
        if self._open > MAX_CONNECTIONS:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE), True
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return _error(HTTPStatus.BAD_REQUEST), True
        except asyncio.LimitOverrunError:
            return _error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), True
        match head.split(b"\r\n", 1)[0].decode("latin-1").split(" "):
            case ["GET" | "HEAD" as method, path, _]:
                page = self._pages.get(path.partition("?")[0])
                return page() if page else _error(HTTPStatus.NOT_FOUND), method == "GET"
            case [_, _, _]:
                return _error(HTTPStatus.METHOD_NOT_ALLOWED), True
            case _:
                return _error(HTTPStatus.BAD_REQUEST), True


def _error(status: HTTPStatus) -> Page:
    return Page(status=status, body=orjson.dumps({"error": status.phrase}) + b"\n")


def _rendered(page: Page, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (page.body if with_body else b"")
