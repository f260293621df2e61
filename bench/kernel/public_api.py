"""Jobs that come in by the public `POST /api/jobs`: a control plane in a process of its own, 16
people with a key and a connection each. The client is HTTP by hand, for what is measured is the
control plane."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2

from bench.kernel.section import PAYLOAD, Section, produce, trace
from bench.users import ops_keys
from penstock.kit.vault import new_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

TOKEN = "operator"
READY_SECONDS = 60.0
BODY = json.dumps({"kind": "probe", "payload": PAYLOAD}).encode()


@asynccontextmanager
async def control_plane(dsn: str) -> AsyncIterator[tuple[str, int]]:
    """`penstock serve` on the database: its URL and its process."""
    port = _free_port()
    environment = {
        "PENSTOCK_DATABASE_URL": dsn,
        "PENSTOCK_OPERATOR_TOKEN": TOKEN,
        "PENSTOCK_SECRET_KEY": new_key(),
        "PENSTOCK_SERVICE_TOKEN": "service",
        "PENSTOCK_HOST": "127.0.0.1",
        "PENSTOCK_PORT": str(port),
        "PENSTOCK_LOG_LEVEL": "ERROR",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "penstock.cli", "serve", env=os.environ | environment
    )
    try:
        url = f"http://127.0.0.1:{port}"
        await _ready(url)
        yield url, process.pid
    finally:
        process.terminate()
        await process.wait()


async def singles(section: Section, url: str, jobs: int, producers: int) -> None:
    keys = await ops_keys(url, TOKEN, producers)
    connections = [await _connect(url) for _ in range(producers)]
    enqueues = [
        _enqueue(*pair, key, number)
        for number, (pair, key) in enumerate(zip(connections, keys, strict=True))
    ]
    await produce(section, enqueues, jobs)
    for _, writer in connections:
        writer.close()


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(url)
    return await asyncio.open_connection(address.hostname, address.port)


def _enqueue(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str, producer: int
) -> Callable[[int], Awaitable[object]]:
    fixed = f"POST /api/jobs HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n"
    fixed += f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\nX-Request-ID: "

    async def enqueue(number: int) -> None:
        writer.write(f"{fixed}{trace(producer, number)}\r\n\r\n".encode() + BODY)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if not head.startswith(b"http/1.1 201"):
            raise RuntimeError((head + body).decode())

    return enqueue


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


async def _ready(url: str) -> None:
    async with (
        httpx2.AsyncClient(base_url=url, timeout=5, trust_env=False) as http,
        asyncio.timeout(READY_SECONDS),
    ):
        while True:
            try:
                if (await http.get("/ready")).is_success:
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.05)
