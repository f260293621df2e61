"""A minimal HTTP client on one connection, so that the server dominates the measurement."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.graph_server.server import PROXY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


@asynccontextmanager
async def connected(
    socket: Path,
) -> AsyncIterator[Callable[[str, dict[str, Any]], Awaitable[bytes]]]:
    reader, writer = await asyncio.open_unix_connection(str(socket))
    headers = "".join(f"{name}: {value}\r\n" for name, value in PROXY.items())

    async def ask(path: str, body: dict[str, Any]) -> bytes:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: i\r\n{headers}Content-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in answered[:16]:
            raise RuntimeError(answered.decode())
        length = int(answered.split(b"content-length: ")[1].split(b"\r\n")[0])
        return await reader.readexactly(length)

    try:
        yield ask
    finally:
        writer.close()
