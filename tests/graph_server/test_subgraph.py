from __future__ import annotations

import asyncio
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import networkx as nx
import pyarrow as pa
import pytest

from tests.graph_server.conftest import BIG
from tests.graph_server.test_queries import ENDLESS, until_active

if TYPE_CHECKING:
    import httpx2

    from tests.graph_server.server import GraphServer


async def ask(server: GraphServer, **body: Any) -> httpx2.Response:
    return await server.http.post("/subgraph", json=body)


def ids(subgraph: dict[str, Any]) -> tuple[set[str], set[tuple[str, str, str]]]:
    return {n["_id"] for n in subgraph["nodes"]}, {
        (e["_src"], e["_type"], e["_dst"]) for e in subgraph["edges"]
    }


async def test_one_hop_goes_both_ways_and_brings_the_edges_between(server: GraphServer) -> None:
    nodes, edges = ids((await ask(server, start=["Person:2"])).json())
    assert nodes == {"Person:1", "Person:2", f"Person:{BIG}", "City:Żółw"}
    assert edges == {
        ("Person:1", "KNOWS", "Person:2"),
        ("Person:2", "KNOWS", f"Person:{BIG}"),
        ("Person:2", "LIVES_IN", "City:Żółw"),
    }


@pytest.mark.parametrize(("hops", "count"), [(0, 1), (1, 3), (2, 5), (9, 5)])
async def test_hops_widen_it(server: GraphServer, hops: int, count: int) -> None:
    subgraph = (await ask(server, start=["Person:1"], hops=hops)).json()
    assert (subgraph["node_count"], subgraph["truncated"]) == (count, False)


async def test_relationship_types_narrow_it(server: GraphServer) -> None:
    nodes, edges = ids(
        (await ask(server, start=["Person:1"], relationship_types=["LIVES_IN"])).json()
    )
    assert nodes == {"Person:1", "City:London"}
    assert edges == {("Person:1", "LIVES_IN", "City:London")}


async def test_a_query_can_be_the_start(server: GraphServer) -> None:
    asked = {
        "cypher": "MATCH (n:Person) WHERE n.id < $x RETURN n",
        "parameters": {"x": 3},
        "hops": 0,
    }
    nodes, edges = ids((await ask(server, **asked)).json())
    assert (nodes, edges) == ({"Person:1", "Person:2"}, {("Person:1", "KNOWS", "Person:2")})


async def test_a_limit_is_said(server: GraphServer) -> None:
    subgraph = (await ask(server, start=["Person:1"], hops=3, limit=2)).json()
    assert (subgraph["node_count"], subgraph["truncated"]) == (2, True)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"start": ["Person:1"], "cypher": "RETURN 1"}, 422),
        ({"start": []}, 422),
        ({"start": ["Nobody:1"]}, 422),
        ({"start": ["Person"]}, 422),
        ({"start": ["Person:x"]}, 422),
        ({"start": ["Person:1"], "hops": 11}, 422),
        ({"start": ["Person:1"], "relationship_types": ["NOPE"]}, 422),
        ({"cypher": "MATCH (n) DELETE n"}, 403),
        ({"cypher": "RETURN $x"}, 400),
    ],
)
async def test_what_makes_no_sense_is_refused(
    server: GraphServer, body: dict[str, Any], status: int
) -> None:
    assert (await ask(server, **body)).status_code == status


async def test_graphml_and_gexf_are_read_by_networkx(server: GraphServer, tmp_path: Any) -> None:
    for form, load in (("graphml", nx.read_graphml), ("gexf", nx.read_gexf)):
        answer = await ask(server, start=["Person:2"], format=form)
        assert "xml" in answer.headers["content-type"]
        ET.fromstring(answer.content)
        (tmp_path / form).write_bytes(answer.content)
        graph = load(tmp_path / form)
        assert set(graph.nodes) == {"Person:1", "Person:2", f"Person:{BIG}", "City:Żółw"}
        assert graph.number_of_edges() == 3
        assert graph.nodes["Person:1"]["name"] == "Ada"
        assert graph.nodes["Person:1"]["score"] == 1.5


async def test_arrow_has_a_row_for_each(server: GraphServer) -> None:
    answer = await ask(server, start=["Person:2"], format="arrow")
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column("kind").to_pylist() == ["node"] * 4 + ["edge"] * 3
    assert table.column_names == ["kind", "id", "label", "source", "target", "properties"]


async def test_a_client_that_hangs_up_stops_the_search(server: GraphServer) -> None:
    asking = asyncio.create_task(ask(server, cypher=ENDLESS))
    await until_active(server, 1)
    asking.cancel()
    await until_active(server, 0)


async def test_its_time_has_a_limit_which_is_said(server: GraphServer) -> None:
    for timeout, status in ((3_600_000, 200), (3_600_001, 422)):
        assert (await ask(server, start=["Person:1"], timeout_ms=timeout)).status_code == status
