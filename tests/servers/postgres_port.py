"""A PostgreSQL that listens on a socket alone, on a port, as a container reaches one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def over_tcp(dsn: str, address: str = "127.0.0.1") -> AsyncIterator[str]:
    """The DSN of the same database over TCP."""
    parts = urlsplit(dsn)
    [options] = [{name: values[0] for name, values in parse_qs(parts.query).items()}]
    socket = f"{options['host']}/.s.PGSQL.{options['port']}"
    password = Path(options["passfile"]).read_text().strip().rpartition(":")[2]

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            their_reader, their_writer = await asyncio.open_unix_connection(socket)
            await asyncio.gather(_copy(reader, their_writer), _copy(their_reader, writer))

    server = await asyncio.start_server(forward, address, 0)
    port = server.sockets[0].getsockname()[1]
    yield f"postgresql://{options['user']}:{password}@{address}:{port}{parts.path}"
    server.close()
    await server.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()
        await writer.wait_closed()
