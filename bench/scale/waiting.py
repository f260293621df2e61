"""Workers that wait for a job, each on a connection of its own: `python -m bench.scale.waiting HOST
PORT TOKEN COUNT`.

They poll as long as an idle worker does and ask again when they hear that there is nothing; with
`beating` they also send the heartbeats of busy workers, every 15 seconds. HTTP by hand: what is
measured is the other side. Whoever is refused asks no more. Prints `waiting` once all have asked,
and at the end of its input how many answers there were.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import cast
from uuid import uuid4

import uvloop

from penstock.worker.claiming import POLL_SECONDS, SHORTEST_POLL

BEAT_SECONDS = 15.0
READY = "waiting"
OPENING = 100
"""Connections that are opened at once."""


class Waiter(asyncio.Protocol):
    """Asks the first request once, and then the other again and again."""

    def __init__(self, first: bytes, request: bytes, pause: float = 0) -> None:
        self._next = first
        self._request = request
        self._pause = pause
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None
        self.answers = 0
        self.answered = asyncio.Event()
        self.refusals: list[bytes] = []
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
        self.answered.set()
        if not self._buffer.startswith(b"HTTP/1.1 200"):
            self.refusals.append(self._buffer)
            return
        self._buffer = b""
        if self._pause:
            asyncio.get_running_loop().call_later(self._pause, self._ask)
        else:
            self._ask()

    def connection_lost(self, _error: Exception | None) -> None:
        self.lost = True
        self.answered.set()

    def _ask(self) -> None:
        if self._transport is not None and not self.lost:
            self._transport.write(self._next)
            self._next = self._request


async def main(host: str, port: str, token: str, count: str, *words: str) -> None:
    loop = asyncio.get_running_loop()
    waiters: list[Waiter] = []
    for start in range(0, int(count), OPENING):
        numbers = range(start, min(start + OPENING, int(count)))
        opening = (_open(host, port, token, number, "beating" in words) for number in numbers)
        waiters += [waiter for group in await asyncio.gather(*opening) for waiter in group]
    await asyncio.gather(*(waiter.answered.wait() for waiter in waiters))
    before = sum(waiter.answers for waiter in waiters)
    print(READY, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    refusals = [refusal for waiter in waiters for refusal in waiter.refusals]
    answer = {
        "answers": sum(waiter.answers for waiter in waiters) - before,
        "lost": sum(waiter.lost for waiter in waiters),
        "refusals": len(refusals),
        "refusal": refusals[0].decode() if refusals else "",
    }
    print(json.dumps(answer))


async def _open(host: str, port: str, token: str, number: int, beating: bool) -> list[Waiter]:
    worker = {"worker": f"bench/{number}", "session": str(uuid4()), "queues": ["default"]}
    wait = POLL_SECONDS * random.uniform(SHORTEST_POLL, 1)
    claim = _request(host, token, "claim", worker | {"limit": 10, "wait_seconds": wait})
    alive = worker | {"slots": 10, "version": "bench"}
    register = _request(host, token, "register", alive)
    waiters = [await _connected(host, port, Waiter(register, claim))]
    if beating:
        beat = _request(host, token, "renew", alive | {"held": []})
        waiters.append(await _connected(host, port, Waiter(beat, beat, BEAT_SECONDS)))
    return waiters


async def _connected(host: str, port: str, waiter: Waiter) -> Waiter:
    await asyncio.get_running_loop().create_connection(lambda: waiter, host, int(port))
    return waiter


def _request(host: str, token: str, verb: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    lines = [
        f"POST /api/internal/jobs/{verb} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {token}",
        "X-Component: worker",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
