"""Body limits: every list, object and text has a maximum, every route has one, and bodies
of unauthenticated callers are not read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel
from starlette.requests import Request

from penstock.api import permissions
from penstock.api.requests.request_bodies import (
    JSON_BODY_BYTES,
    LARGE_BODY_BYTES,
    OPEN_BODY_BYTES,
    StrictRoute,
)
from penstock.http.body_memory import SMALL_BYTES, BodyMemory, CountedBody
from tests.api.answers import error
from tests.api.raw import connected
from tests.api.resources import FIXED
from tests.api.running_api import Api, running_api
from tests.api.shapes import all_unbounded, bodies
from tests.graphs.deployment import TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import FastAPI
    from fastapi.routing import APIRoute
    from starlette.types import Message

    from tests.api.control_plane import Edge

JSON = {"Content-Type": "application/json"}
WITHOUT_MODEL = re.compile(r"/wrapper/|/api/uploads$|/api/iceberg/")


@pytest.fixture(scope="module")
async def api(
    lasting_database: str, edge: Edge, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Api]:
    home = tmp_path_factory.mktemp("home")
    lake = {"lake": {"warehouse": (home / "warehouse").as_uri()}}
    async with running_api(lasting_database, edge, home, catalogs=lake) as running:
        yield running


@pytest.fixture(scope="module")
def app(api: Api, edge: Edge) -> FastAPI:
    assert edge.app is not None
    return edge.app


class Inner(BaseModel):
    names: list[int]


class Outer(BaseModel):
    words: dict[str, Inner | None]


def test_the_search_for_unbounded_fields_finds_them_at_every_depth() -> None:
    unbounded = {"Outer.words: dict", "Outer.words: str", "Inner.names: list"}
    assert all_unbounded([("/", Outer)]) == unbounded


async def test_every_list_object_and_text_of_a_body_has_a_most(app: FastAPI) -> None:
    shapes = bodies(app)
    assert len(shapes) > 60
    assert all_unbounded(shapes) == set()


def routes(app: FastAPI) -> list[tuple[str, str, APIRoute]]:
    return [
        (*name.split(" ", 1), route)
        for name, route in permissions.names(app.state.routes).items()
        if not name.startswith("GET ")
    ]


def filled(path: str) -> str:
    path = re.sub(r"{\w+_id}", "999999", path).replace("{path}", "query")
    return re.sub(r"{(\w+)}", lambda name: FIXED.get(name[1], "nothing"), path)


async def test_nobody_without_a_credential_has_a_body_read(app: FastAPI, edge: Edge) -> None:
    """The body never comes, so a route that waited for it would not answer."""
    port = int(edge.url.rpartition(":")[2])
    tried = 0
    for method, path, _ in routes(app):
        if permissions.MATRIX[f"{method} {path}"].kind == "open":
            continue
        head = f"{method} {filled(path)} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        async with connected(port) as client:
            client.send(f"{head}Idempotency-Key: k\r\nContent-Length: 1000\r\n\r\n".encode())
            assert (await client.refused())[0] == 401, (method, path)
        tried += 1
    assert tried > 80


async def test_a_role_that_may_not_call_a_route_has_no_body_read(edge: Edge, api: Api) -> None:
    port = int(edge.url.rpartition(":")[2])
    for head in ("PUT /api/config/export", "PUT /api/drain", "POST /api/internal/jobs/finish"):
        async with connected(port) as client:
            client.send(
                f"{head} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann\r\n"
                "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n".encode()
            )
            assert (await client.refused())[0] in (401, 403), head


async def test_every_route_takes_as_much_as_its_limit_and_not_one_byte_more(
    app: FastAPI, api: Api, edge: Edge
) -> None:
    """One byte more is refused by Content-Length; at the limit the route waits for the body."""
    port = int(edge.url.rpartition(":")[2])
    limits = set()
    for method, path, route in routes(app):
        if path.startswith("/wrapper/"):
            continue
        assert isinstance(route, StrictRoute), path
        limit = route.most_bytes(_asked(app, method, route))
        limits.add(limit)
        who = TOKEN if "/internal/" in path else "ada" if path.startswith("/api/admin/") else "oz"
        head = (
            f"{method} {filled(path)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {who}\r\n"
            "X-Component: worker\r\nContent-Type: application/json\r\n"
        )
        async with connected(port) as client:
            client.send(f"{head}Content-Length: {limit + 1}\r\n\r\n".encode())
            refused = await client.refused()
            assert refused == (413, "PAYLOAD_TOO_LARGE"), (method, path)
    payloads = api.services.max_body_bytes
    assert {OPEN_BODY_BYTES, JSON_BODY_BYTES, LARGE_BODY_BYTES, payloads, 1024**3} == limits


def _asked(app: FastAPI, method: str, route: APIRoute) -> Request:
    return Request({"type": "http", "method": method, "app": app, "route": route, "headers": []})


async def test_an_ordinary_body_may_be_as_large_as_the_limit_and_not_one_byte_more(
    api: Api, edge: Edge
) -> None:
    body = b'{"resource_type": "mapping", "resource_id": 999999}'
    fits = await api.ann.post("/api/favorites", content=body.ljust(JSON_BODY_BYTES), headers=JSON)
    error(fits, 404, "RESOURCE_NOT_FOUND")
    more = body.ljust(JSON_BODY_BYTES + 1)
    error(
        await api.ann.post("/api/favorites", content=more, headers=JSON), 413, "PAYLOAD_TOO_LARGE"
    )
    assert edge.app is not None
    assert edge.app.state.body_memory.used == 0


async def test_a_body_with_endless_problems_is_refused_without_a_list_of_them(api: Api) -> None:
    wide = {f"unknown{n}": 1 for n in range(50_000)}
    answer = await api.ann.post("/api/favorites", json=wide)
    error(answer, 422, "VALIDATION_FAILED")
    assert "50,002 errors" in answer.text
    assert len(answer.content) < 1000


async def test_a_list_past_its_most_is_one_problem(api: Api) -> None:
    body = {"name": "m", "node_definitions": [0] * 400_000}
    answer = await api.ann.post("/api/mappings", json=body)
    error(answer, 422, "VALIDATION_FAILED")
    assert "at most" in answer.text
    assert len(answer.content) < 1000


async def test_twenty_problems_are_listed_and_all_are_counted(api: Api) -> None:
    answer = await api.ann.post("/api/favorites", json={f"unknown{n}": 1 for n in range(998)})
    details = error(answer, 422, "VALIDATION_FAILED")["details"]
    assert (len(details["fields"]), details["count"]) == (20, 1000)


class Body:
    def __init__(self, *pieces: int) -> None:
        self._left = list(pieces)

    async def __call__(self) -> Message:
        piece = self._left.pop(0)
        return {"type": "http.request", "body": b"x" * piece, "more_body": bool(self._left)}


async def test_half_sent_bodies_fill_their_memory_and_no_more() -> None:
    memory = BodyMemory(1000)
    first = CountedBody(Body(SMALL_BYTES + 1000, 1), 10**9, memory)
    second = CountedBody(Body(SMALL_BYTES, 1, 1), 10**9, memory)
    await first.receive()
    assert memory.used == 1000
    await second.receive()
    with pytest.raises(Exception, match="Too many large request bodies") as refused:
        await second.receive()
    assert getattr(refused.value, "status_code", None) == 503
    await first.receive()
    second.release()
    assert memory.used == 0


async def test_small_bodies_are_taken_whatever_others_hold() -> None:
    memory = BodyMemory(0)
    small = CountedBody(Body(SMALL_BYTES - 1, 1, 1), 10**9, memory)
    assert len((await small.receive())["body"]) == SMALL_BYTES - 1
    assert (await small.receive())["more_body"]
    assert memory.used == 0
