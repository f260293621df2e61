"""Oversized, deep, wide and slow bodies on every route: none blocks the event loop,
exhausts memory or causes a server error.

Blocking is measured in CPU seconds of the loop's thread between two `await`s, so that machine load
does not matter. The seed is the day; a failure prints it.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from penstock.api import permissions
from penstock.api.requests.request_bodies import JSON_BODY_BYTES
from penstock.api.serving.server import Server, bind
from penstock.http.server import ConnectionLimits
from tests.api.metered import LoopMeter
from tests.api.raw import Client, connected
from tests.api.resources import FIXED
from tests.api.running_api import Api, running_api
from tests.graphs.deployment import TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from fastapi import FastAPI

    from tests.api.control_plane import Edge

SEED = int(
    os.environ.get("PENSTOCK_FUZZ_SEED", datetime.datetime.now(datetime.UTC).strftime("%Y%m%d"))
)
ATTACKS = int(os.environ.get("PENSTOCK_FUZZ_BODIES", "6"))
LOOP_SECONDS = 1.0
MEMORY_BYTES = 512 * 1024**2
NOT_TRIED = {"PUT /api/drain", "POST /api/ops/jobs/trigger", "DELETE /api/admin/resources/bulk"}
"""A body that happened to be right would stop the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A body: `count` of something, as the whole of it or as one field of an object."""

    kind: str
    count: int
    field: str
    pieces: int

    def body(self) -> bytes:
        value = KINDS[self.kind](self.count)
        whole = b'{"%b": %b}' % (self.field.encode(), value) if self.field else value
        return whole[:JSON_BODY_BYTES]


KINDS = {
    "deep lists": lambda n: b"[" * n + b"]" * n,
    "deep objects": lambda n: b'{"a":' * n + b"1" + b"}" * n,
    "deep and open": lambda n: b"[" * n,
    "list": lambda n: b"[" + b",".join([b"0"] * n) + b"]",
    "list of objects": lambda n: b"[" + b",".join([b"{}"] * n) + b"]",
    "object": lambda n: json.dumps({f"k{i}": 0 for i in range(n)}).encode(),
    "objects in objects": lambda n: json.dumps({f"k{i}": {"a": {}} for i in range(n)}).encode(),
    "text": lambda n: b'"' + b"x" * n + b'"',
    "escapes": lambda n: b'"' + b"\\u0041" * n + b'"',
    "number": lambda n: b"9" * n,
    "fraction": lambda n: b"0." + b"1" * n,
    "operators": lambda n: b'"SELECT 1' + b" || 1" * n + b'"',
    "spaces": lambda n: b" " * n,
    "bytes": lambda n: b"\xff" * n,
}
FIELDS = [
    "",
    *("actions", "config", "credentials", "jobs", "kind", "left", "node_definitions", "parameters"),
    *("payload", "recipe", "sql", "sources", "query", "name", "endings", "key", "updates"),
]
attacks = st.builds(
    Attack,
    kind=st.sampled_from(sorted(KINDS)),
    count=st.sampled_from([1, 900, 20_000, 150_000, 1_100_000]),
    field=st.sampled_from(FIELDS),
    pieces=st.sampled_from([1, 1, 100]),
)


@dataclass(frozen=True, slots=True)
class Target:
    api: Api
    meter: LoopMeter
    port: int
    routes: list[tuple[str, str]]


@pytest.fixture(scope="module")
async def target(
    lasting_database: str, edge: Edge, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Target]:
    home = tmp_path_factory.mktemp("home")
    lake = {"lake": {"warehouse": (home / "warehouse").as_uri()}}
    async with running_api(lasting_database, edge, home, catalogs=lake) as api:
        assert edge.app is not None
        meter = LoopMeter(edge.app)
        with bind("127.0.0.1", 0) as listener:
            server = Server(meter, ConnectionLimits(body_seconds=2, header_seconds=2))
            task = asyncio.create_task(server.serve(sockets=[listener]))
            await server.tried.wait()
            yield Target(api, meter, listener.getsockname()[1], list(routes(edge.app)))
            server.should_exit = True
            await task


def routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    for name in permissions.names(app.state.routes):
        if name not in NOT_TRIED:
            method, path = name.split(" ", 1)
            path = re.sub(r"{\w+_id}", "999999", path)
            yield method, re.sub(r"{(\w+)}", lambda name: FIXED.get(name[1], "nothing"), path)


def head(method: str, path: str, framing: str) -> bytes:
    who = TOKEN if "/internal/" in path else "ada" if path.startswith("/api/admin/") else "oz"
    query = "?name=a.csv" if path == "/api/uploads" else ""
    return (
        f"{method} {path}{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {who}\r\n"
        f"X-Component: worker\r\nContent-Type: application/json\r\n{framing}\r\n\r\n"
    ).encode()


async def send(client: Client, method: str, path: str, body: bytes, pieces: int) -> int:
    if pieces == 1:
        client.send(head(method, path, f"Content-Length: {len(body)}") + body)
    else:
        client.send(head(method, path, "Transfer-Encoding: chunked"))
        step = len(body) // pieces + 1
        for begin in range(0, len(body), step):
            piece = body[begin : begin + step]
            client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
    return await client.status()


@seed(SEED)
@settings(
    max_examples=ATTACKS,
    deadline=None,
    database=None,
    print_blob=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(attack=attacks)
async def test_no_body_holds_the_loop_or_ends_in_an_error_of_ours(
    target: Target, attack: Attack
) -> None:
    memory = psutil.Process().memory_info().rss
    target.meter.longest, body = 0.0, attack.body()
    for method, path in target.routes:
        async with connected(target.port) as client:
            status = await send(client, method, path, body, attack.pieces)
        assert status < 500 or (status == 503 and "/wrapper/" in path), (SEED, method, path, status)
    assert target.meter.longest < LOOP_SECONDS, (SEED, target.meter.request, target.meter.longest)
    assert psutil.Process().memory_info().rss - memory < MEMORY_BYTES, (SEED, attack)


async def test_a_body_that_never_comes_to_its_end_is_closed_on_every_route(
    target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    async def stopped(method: str, path: str) -> int:
        async with connected(target.port) as client:
            client.send(head(method, path, "Content-Length: 5000") + b'{"name": ')
            return await client.status()

    taking = [route for route in target.routes if route[0] != "GET"]
    answers = await asyncio.gather(*(stopped(*route) for route in taking))
    for route, status in zip(taking, answers, strict=True):
        assert status < 500 or "/wrapper/" in route[1], (route, status)
    assert answers.count(408) > 50
    assert "request_failed" not in capsys.readouterr().out


async def test_the_meter_counts_what_holds_the_loop_and_not_what_waits() -> None:
    async def busy(*_: object) -> None:
        await asyncio.sleep(0)
        sum(range(3_000_000))
        await asyncio.sleep(0)

    async def waiting(*_: object) -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    scope = {"method": "GET", "path": "/"}
    idle, blocked = LoopMeter(waiting), LoopMeter(busy)
    await idle(scope, asyncio.Queue().get, asyncio.Queue().put)
    await blocked(scope, asyncio.Queue().get, asyncio.Queue().put)
    assert blocked.longest > 5 * idle.longest
    assert blocked.request == "GET /"
