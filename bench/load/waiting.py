"""Workers that wait for a job, each on a connection of its own: `python -m bench.load.waiting HOST
PORT TOKEN COUNT`.

They poll as a worker does and ask again when they hear that there is nothing; with `beating` they
also tell that they live, every 15 seconds. HTTP by hand: what is measured is the other side. Prints
`waiting` once all have asked, and at the end of its input how many answers there were.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import cast
from uuid import uuid4

import uvloop

POLL_SECONDS = 20.0
BEAT_SECONDS = 15.0
READY = "waiting"
OPENING = 100
"""Connections that are opened at once."""


class Waiter(asyncio.Protocol):
    """Asks again as soon as it is answered."""

    def __init__(self, request: bytes, pause: float = 0) -> None:
        self._request = request
        self._pause = pause
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None
        self.answers = 0
        self.refusals = 0
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not end or len(body) < int(length):
            return
        self.answers += 1
        self.refusals += not self._buffer.startswith(b"HTTP/1.1 200")
        self._buffer = b""
        if self._pause:
            asyncio.get_running_loop().call_later(self._pause, self._ask)
        else:
            self._ask()

    def connection_lost(self, _error: Exception | None) -> None:
        self.lost = True

    def _ask(self) -> None:
        if self._transport is not None and not self.lost:
            self._transport.write(self._request)


async def main(host: str, port: str, token: str, count: str, *words: str) -> None:
    loop = asyncio.get_running_loop()
    waiters: list[Waiter] = []
    for start in range(0, int(count), OPENING):
        numbers = range(start, min(start + OPENING, int(count)))
        opening = (_open(host, port, token, number, "beating" in words) for number in numbers)
        waiters += [waiter for group in await asyncio.gather(*opening) for waiter in group]
    print(READY, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    lost = sum(waiter.lost for waiter in waiters)
    refusals = sum(waiter.refusals for waiter in waiters)
    print(
        json.dumps(
            {
                "answers": sum(waiter.answers for waiter in waiters),
                "lost": lost,
                "refusals": refusals,
            }
        )
    )


async def _open(host: str, port: str, token: str, number: int, beating: bool) -> list[Waiter]:
    session = str(uuid4())
    worker = {"worker": f"bench/{number}", "session": session, "queues": ["default"]}
    claim = _request(token, "claim", worker | {"limit": 10, "wait_seconds": POLL_SECONDS})
    waiters = [await _connected(host, port, Waiter(claim))]
    if beating:
        beat = _request(token, "renew", worker | {"slots": 10, "version": "bench", "held": []})
        waiters.append(await _connected(host, port, Waiter(beat, BEAT_SECONDS)))
    return waiters


async def _connected(host: str, port: str, waiter: Waiter) -> Waiter:
    await asyncio.get_running_loop().create_connection(lambda: waiter, host, int(port))
    return waiter


def _request(token: str, verb: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    lines = [
        f"POST /api/internal/jobs/{verb} HTTP/1.1",
        "Host: bench",
        f"Authorization: Bearer {token}",
        "X-Component: worker",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
