"""Two hundred connections of two ordinary accounts, from an address of their own.

Bodies that are slow or giant have an account to themselves: they hold its requests up, and floods
and expensive queries should not be milder for it.

They are a process, so that what they cost is not in the users' figures. It prints how many answers
of each status they got, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

import psutil

LOOPBACK = "127.0.0.2"
"""Of this machine too, and not the users'."""
MEGABYTE = 1024 * 1024
TRICKLE_SECONDS = 1.0
RETRY_SECONDS = 0.05
WIDE = json.dumps({f"k{n}": n for n in range(50_000)}).encode()
LISTED = b'{"name": "m", "node_definitions": [' + b",".join([b"0"] * 400_000) + b"]}"
CHAIN = {
    "sql": "SELECT 'a' AS id" + "||'a'" * 4_900,
    "primary_key": {"name": "id", "type": "STRING"},
    "properties": [],
}
MAPPING = json.dumps(
    {"node_definitions": [{"label": f"L{n}"} | CHAIN for n in range(20)], "edge_definitions": []}
).encode()
CYPHER = "UNWIND range(1, 5000) AS a UNWIND range(1, 5000) AS b RETURN count(a * b)"
QUERY = json.dumps({"query": CYPHER, "timeout_ms": 2000}).encode()
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Behavior: TypeAlias = Callable[["Attack", Streams], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Attack:
    host: str
    port: int
    key: str
    graph: str
    address: str
    outcomes: Counter[str] = field(default_factory=Counter)

    def head(self, method: str, path: str, *fields: str) -> bytes:
        shown = (
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}",
            f"Authorization: Bearer {self.key}",
        )
        return "\r\n".join((*shown, "Content-Type: application/json", *fields, "", "")).encode()

    def post(self, path: str, body: bytes) -> bytes:
        return self.head("POST", path, f"Content-Length: {len(body)}") + body

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Streams]:
        streams = await asyncio.open_connection(self.host, self.port, local_addr=(self.address, 0))
        try:
            yield streams
        finally:
            streams[1].close()

    async def answered(self, streams: Streams) -> None:
        head = await streams[0].readuntil(b"\r\n\r\n")
        self.outcomes[head.split(b" ")[1].decode()] += 1
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                await streams[0].readexactly(int(line.split(b":")[1]))


def outside_address() -> str:
    """Not a loopback address where the machine has another: those of loopback have no rate limit
    as an address."""
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET and not address.address.startswith("127."):
                return address.address
    return LOOPBACK


async def slow_head(attack: Attack, streams: Streams) -> None:
    streams[1].write(b"POST /api/mappings HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    while not streams[0].at_eof():
        streams[1].write(b"X-A: b\r\n")
        await _heard(attack, streams)


async def slow_body(attack: Attack, streams: Streams) -> None:
    streams[1].write(attack.head("POST", "/api/mappings", f"Content-Length: {MEGABYTE}") + b"{")
    while not streams[0].at_eof():
        streams[1].write(b" ")
        await _heard(attack, streams)


async def _heard(attack: Attack, streams: Streams) -> None:
    try:
        async with asyncio.timeout(TRICKLE_SECONDS):
            await attack.answered(streams)
    except TimeoutError:
        return


async def flood(attack: Attack, streams: Streams) -> None:
    for path in ("/api/mappings?limit=100", "/health", "/api/instances", "/nowhere"):
        streams[1].write(attack.head("GET", path))
        await attack.answered(streams)


async def giant_body(attack: Attack, streams: Streams) -> None:
    endless = attack.head("POST", "/api/mappings", "Content-Length: 1000000000")
    for body in (attack.post("/api/favorites", WIDE), attack.post("/api/mappings", LISTED)):
        streams[1].write(body)
        await attack.answered(streams)
    streams[1].write(endless + b"x" * MEGABYTE)
    await attack.answered(streams)


async def expensive_query(attack: Attack, streams: Streams) -> None:
    streams[1].write(attack.post("/api/mappings/validate", MAPPING))
    await attack.answered(streams)
    streams[1].write(attack.post(f"{attack.graph}/query", QUERY))
    await attack.answered(streams)


BEHAVIORS: dict[Behavior, int] = {
    slow_head: 60,
    slow_body: 40,
    flood: 50,
    giant_body: 30,
    expensive_query: 20,
}

HOLDING = frozenset({slow_head, slow_body, giant_body})


async def again_and_again(attack: Attack, behavior: Behavior) -> None:
    while True:
        try:
            async with attack.connected() as streams:
                while not streams[0].at_eof():
                    await behavior(attack, streams)
        except (OSError, EOFError):
            attack.outcomes["closed"] += 1
        await asyncio.sleep(RETRY_SECONDS * (1 + random.random()))


async def main(url: str, keys: Sequence[str], graph: str, seconds: float) -> None:
    parts = urlsplit(url)
    address, outcomes = outside_address(), Counter[str]()
    quick, slow = (
        Attack(parts.hostname or "", parts.port or 80, key, graph, address, outcomes)
        for key in keys
    )
    tasks = [
        asyncio.create_task(again_and_again(slow if behavior in HOLDING else quick, behavior))
        for behavior, count in BEHAVIORS.items()
        for _ in range(count)
    ]
    done, _ = await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    for task in done:
        task.result()
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2].split(","), sys.argv[3], float(sys.argv[4])))
