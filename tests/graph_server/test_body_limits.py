"""What a graph server takes, and from whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import SecretStr

from penstock.graph_server.algorithms import routes as algorithms
from penstock.graph_server.algorithms.executions import Executions
from penstock.graph_server.engine.engine import Engine
from penstock.graph_server.http.app import create_app
from penstock.graph_server.http.body_limit import BODY_BYTES, QUERY_BYTES
from penstock.graph_server.isolation.isolation import Isolation
from penstock.graph_server.served_graph import Served
from penstock.graph_server.settings import InstanceSettings
from tests.api.shapes import all_unbounded, bodies

if TYPE_CHECKING:
    from pathlib import Path

    from tests.graph_server.server import GraphServer

JSON = {"Content-Type": "application/json"}


def ignore(_: object) -> None:
    pass


def test_every_list_object_and_text_for_a_graph_server_has_a_most(tmp_path: Path) -> None:
    settings = InstanceSettings(id=1, token=SecretStr("t"), dir=tmp_path)
    isolation = Isolation(level=0)
    engine = Engine(settings, isolation, lost=ignore)
    served = Served(settings=settings, isolation=isolation, engine=engine)
    app = create_app(served, end=ignore, more=[algorithms.router(Executions.of(served))])
    shapes = bodies(app)
    assert {path for path, _ in shapes} == {"/query", "/subgraph", "/shutdown", "/{name}"}
    assert all_unbounded(shapes) == set()


async def test_a_stranger_is_refused_before_the_body_is_read(server: GraphServer) -> None:
    for path in ("/query", "/subgraph", "/shutdown", "/algo/pagerank"):
        answer = await server.http.post(path, content=b"{", headers=JSON | {"Authorization": ""})
        assert answer.status_code == 401, path


async def test_a_query_may_be_as_large_as_the_limit_and_not_one_byte_more(
    server: GraphServer,
) -> None:
    body = b'{"query": "RETURN 1"}'
    for limit, path in ((QUERY_BYTES, "/query"), (BODY_BYTES, "/algo/pagerank")):
        fits = await server.http.post(path, content=body.ljust(limit), headers=JSON)
        assert fits.status_code in (200, 422)
        more = await server.http.post(path, content=body.ljust(limit + 1), headers=JSON)
        assert (more.status_code, more.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")


async def test_a_head_that_is_too_large_is_refused(server: GraphServer) -> None:
    answer = await server.http.get("/health", headers={"X-Fill": "x" * 70_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (431, "HEADERS_TOO_LARGE")
