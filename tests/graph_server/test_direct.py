"""The short path of `POST /query` gives the same responses as its route."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx2
import pytest
from pydantic import SecretStr

from penstock.graph_server.engine.engine import Engine
from penstock.graph_server.http.app import create_app
from penstock.graph_server.isolation.isolation import Isolation
from penstock.graph_server.queries import direct
from penstock.graph_server.served_graph import Graph, Served
from penstock.graph_server.settings import InstanceSettings
from tests.graph_server.people import TOKEN, load
from tests.graph_server.server import ARROW

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MATCH = "MATCH (n:Person) RETURN n.id ORDER BY n.id"
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    content: bytes
    takes_short_path: bool = True
    method: str = "POST"
    path: str = "/query"
    token: str | None = TOKEN
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    in_pieces: bool = False


def body(query: object = MATCH, **fields: object) -> bytes:
    return json.dumps({"query": query, **fields}).encode()


def nested(depth: int) -> bytes:
    """A parameter with that many lists in each other."""
    return b'{"query": "RETURN $p", "parameters": {"p": ' + b"[" * depth + b"]" * depth + b"}}"


ASKED = {
    "rows": Ask(content=body()),
    "parameters": Ask(content=body("RETURN $a, $b", parameters={"a": [1, 2], "b": {"c": 1.5}})),
    "a missing parameter": Ask(content=body("RETURN $a")),
    "a parameter too many": Ask(content=body("RETURN 1", parameters={"a": 1})),
    "nodes": Ask(content=body("MATCH (n:City) RETURN n ORDER BY n.id")),
    "no rows": Ask(content=body("MATCH (n:City) WHERE n.id < 0 RETURN n.id")),
    "a limit": Ask(content=body(max_rows=2)),
    "a limit as text": Ask(content=body(max_rows="2")),
    "a limit as yes": Ask(content=body(max_rows=True)),
    "a limit of nothing": Ask(content=body(max_rows=None)),
    "Arrow": Ask(content=body(), headers=JSON | {"Accept": ARROW}),
    "a write": Ask(content=body("CREATE (:Person {id: 9})")),
    "no Cypher": Ask(content=body("MATCH")),
    "too much time": Ask(content=body(timeout_ms=10**9)),
    "a field that is not known": Ask(content=body(colour="red")),
    "a field that is there twice": Ask(content=b'{"query": "RETURN 1", "query": "RETURN 2"}'),
    "a query string": Ask(content=body(), path="/query?colour=red"),
    "a user": Ask(content=body(), headers=JSON | {"X-Penstock-User": "ada"}),
    "a deep parameter": Ask(content=nested(200)),
    "a parameter too deep for engines": Ask(content=nested(500), takes_short_path=False),
    "a parameter too deep for JSON": Ask(content=nested(1000), takes_short_path=False),
    "a parameter much too deep": Ask(content=nested(10_000), takes_short_path=False),
    "no token": Ask(content=body(), token=None),
    "another's token": Ask(content=body(), token="x" * 32),
    "another scheme": Ask(content=body(), token=None, headers=JSON | {"Authorization": "Basic x"}),
    "no fields": Ask(content=b"{}", takes_short_path=False),
    "no object": Ask(content=b"[]", takes_short_path=False),
    "no JSON": Ask(content=b"{", takes_short_path=False),
    "nothing": Ask(content=b"", takes_short_path=False),
    "an empty query": Ask(content=body(""), takes_short_path=False),
    "a number as query": Ask(content=body(1), takes_short_path=False),
    "a limit of zero": Ask(content=body(max_rows=0), takes_short_path=False),
    "half a second of a millisecond": Ask(content=body(timeout_ms=0.5), takes_short_path=False),
    "parameters that are null": Ask(content=body(parameters=None), takes_short_path=False),
    "NaN": Ask(content=b'{"query": "RETURN $a", "parameters": {"a": NaN}}', takes_short_path=False),
    "half a character": Ask(content=b'{"query": "RETURN \'\\ud800\'"}', takes_short_path=False),
    "no UTF-8": Ask(content=b'{"query": "RETURN \'\xff\'"}', takes_short_path=False),
    "UTF-16": Ask(content=body().decode().encode("utf-16"), takes_short_path=False),
    "a mark of the byte order": Ask(content=b"\xef\xbb\xbf" + body(), takes_short_path=False),
    "a long number": Ask(
        content=body("RETURN $a", parameters={"a": 2**63}), takes_short_path=False
    ),
    "a huge number": Ask(
        content=b'{"query": "RETURN $a", "parameters": {"a": 1e400}}', takes_short_path=False
    ),
    "another type": Ask(
        content=body(), headers={"Content-Type": "text/plain"}, takes_short_path=False
    ),
    "a type with its encoding": Ask(
        content=body(),
        headers={"Content-Type": "application/json; charset=utf-8"},
        takes_short_path=False,
    ),
    "no type": Ask(content=body(), headers={}, takes_short_path=False),
    "in pieces": Ask(content=body(), in_pieces=True, takes_short_path=False),
    "another method": Ask(content=b"", method="GET", takes_short_path=False),
    "another path": Ask(content=body(), path="/query/", takes_short_path=False),
}


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder: Path = tmp_path_factory.mktemp("direct")
    settings = InstanceSettings(
        id=1, token=SecretStr(TOKEN), dir=folder, memory_bytes=1024**3, isolation="off"
    )
    engine = Engine(settings, Isolation(level=0), lost=pytest.fail)
    schema = await load(engine, folder)
    graph = Graph(engine=engine, schema=schema, counts=await engine.counts())
    yield Served(
        settings=settings,
        isolation=Isolation(level=0),
        engine=engine,
        state="running",
        loaded=graph,
    )
    await engine.close()


def in_one_piece(app: ASGIApp) -> ASGIApp:
    """As a server gives a small body to an application; the client's transport never does."""

    async def gathered(scope: Scope, receive: Receive, send: Send) -> None:
        content, more = b"", True
        while more:
            message = await receive()
            content, more = content + message["body"], message["more_body"]
        messages: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

        async def once() -> Message:
            return messages.pop() if messages else await receive()

        await app(scope, once, send)

    return gathered


async def answer(served: Served, asked: Ask) -> tuple[int, dict[str, str], object]:
    async def pieces() -> AsyncIterator[bytes]:
        middle = len(asked.content) // 2
        yield asked.content[:middle]
        yield asked.content[middle:]

    headers = dict(asked.headers)
    if asked.token is not None:
        headers["Authorization"] = f"Bearer {asked.token}"
    app: ASGIApp = create_app(served, end=pytest.fail)
    transport = httpx2.ASGITransport(app=app if asked.in_pieces else in_one_piece(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://graph") as client:
        content = pieces() if asked.in_pieces else asked.content
        response = await client.request(asked.method, asked.path, headers=headers, content=content)
    shown = {
        name: value
        for name, value in response.headers.items()
        if name not in ("x-request-id", "content-length")
    }
    if response.headers.get("content-type") != "application/json":
        return response.status_code, shown, response.content
    document = response.json()
    document.pop("execution_time_ms", None)
    document.get("meta", {}).pop("request_id", None)
    return response.status_code, shown, document


@pytest.mark.parametrize("name", ASKED)
async def test_both_paths_answer_alike(
    served: Served, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, taken = ASKED[name], []
    original = direct.DirectQueries._answer

    async def noted(self: direct.DirectQueries, request: Request) -> Response | None:
        try:
            response = await original(self, request)
        except BaseException:
            taken.append(True)
            raise
        taken.append(response is not None)
        return response

    monkeypatch.setattr(direct.DirectQueries, "_answer", noted)
    short = await answer(served, asked)
    assert any(taken) == asked.takes_short_path
    monkeypatch.setattr(direct, "is_plain_json", lambda *_, **__: False)
    assert short == await answer(served, asked)


async def test_both_paths_refuse_alike_before_the_graph_is_loaded(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "state", "starting")
    asked = Ask(content=body())
    short = await answer(served, asked)
    monkeypatch.setattr(direct, "is_plain_json", lambda *_, **__: False)
    assert short == await answer(served, asked)
    assert short[0] == 503
