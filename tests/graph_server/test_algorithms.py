"""Algorithms over HTTP: what they are asked, answer, write and refuse."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from penstock.graphdb.algorithms.allowed import ALLOWED
from penstock.graphdb.algorithms.catalog import CATALOG
from tests.graph_server.people import People, people

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def graph(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[People]:
    async with people(tmp_path_factory.mktemp("people")) as people_graph:
        yield people_graph


async def refused(
    graph: People, path: str, body: dict[str, Any], **headers: str
) -> tuple[int, dict[str, Any]]:
    answer = await graph.run(path, body, **headers)
    return answer.status_code, answer.json()["error"]


async def test_pagerank_is_written_to_the_chosen_label(graph: People) -> None:
    asked = {"node_label": "Person", "edge_type": "KNOWS", "result_property": "rank"}
    done = await graph.done("/algo/pagerank", asked)
    assert done["nodes_updated"] == 5
    assert done["result"]["converged"]
    assert (done["algorithm_type"], done["node_label"], done["progress_percent"]) == (
        "native",
        "Person",
        100,
    )
    ranks = await graph.values("Person", "rank")
    assert sum(ranks.values()) == pytest.approx(1)
    assert max(ranks, key=lambda person: ranks[person]) in (4, 5)
    assert not graph.lock.holding


async def test_writing_again_replaces_what_was_there(graph: People) -> None:
    for limit in (1, 2):
        asked = {"node_label": "Person", "edge_type": "KNOWS", "result_property": "steps"}
        await graph.done(
            "/algo/bfs", asked | {"parameters": {"source_id": "Person:1", "max_depth": limit}}
        )
    assert await graph.values("Person", "steps") == {1: 0, 2: 1, 3: 2, 4: 1, 5: 2}
    await graph.done("/algo/bfs", asked | {"parameters": {"source_id": "Person:5"}})
    assert await graph.values("Person", "steps") == {1: None, 2: None, 3: None, 4: None, 5: 0}


async def test_keys_of_different_labels_never_collide(graph: People) -> None:
    done = await graph.done("/algo/degree", {"result_property": "edges"})
    assert done["nodes_updated"] == 8
    assert await graph.values("City", "edges") == {1: 2, 2: 2, 3: 1}
    assert (await graph.values("Person", "edges"))[1] == 4
    ids = [v["id"] for v in (await graph.done("/algo/degree"))["result"]["values"]]
    assert len(set(ids)) == 8


async def test_a_named_type_brings_in_its_other_end_and_writes_only_what_was_asked(
    graph: People,
) -> None:
    asked = {"node_label": "City", "edge_type": "LIVES_IN", "result_property": "people"}
    done = await graph.done("/algo/degree", asked | {"parameters": {"direction": "in"}})
    assert done["nodes_updated"] == 3
    assert await graph.values("City", "people") == {1: 2, 2: 2, 3: 1}


async def test_a_path_is_in_the_answer(graph: People) -> None:
    asked = {"source_id": "Person:1", "target_id": "Person:5", "relationship_types": ["KNOWS"]}
    short = (await graph.done("/algo/shortest_path", asked))["result"]
    assert short == {
        "found": True,
        "path": ["Person:1", "Person:4", "Person:5"],
        "distance": 2.0,
        "hops": 2,
    }
    cheap = (await graph.done("/algo/shortest_path", asked | {"weight_property": "cost"}))["result"]
    assert cheap["path"] == ["Person:1", "Person:2", "Person:3", "Person:4", "Person:5"]
    assert cheap["distance"] == 8.0
    few = (
        await graph.done("/algo/shortest_path", asked | {"weight_property": "cost", "max_depth": 3})
    )["result"]
    assert (few["hops"], few["distance"]) == (2, 10.0)
    none = (
        await graph.done(
            "/algo/shortest_path", asked | {"target_id": "City:3", "source_id": "City:1"}
        )
    )["result"]
    assert none == {"found": False, "path": None, "distance": None, "hops": None}


async def test_a_star_goes_by_coordinates(graph: People) -> None:
    asked = {
        "source_id": "Person:1",
        "target_id": "Person:5",
        "edge_type": "KNOWS",
        "weight_property": "cost",
    }
    guided = {"heuristic": "euclidean", "x_property": "x", "y_property": "y"}
    assert (await graph.done("/algo/shortest_path", asked | {"parameters": guided}))["result"][
        "distance"
    ] == 8.0
    status, error = await refused(
        graph, "/algo/shortest_path", asked | {"parameters": guided | {"x_property": "lon"}}
    )
    assert (status, error["code"]) == (422, "VALIDATION_FAILED")


async def test_hits_writes_two_properties(graph: People) -> None:
    await graph.done(
        "/algo/hits", {"node_label": "Person", "edge_type": "KNOWS", "result_property": "h"}
    )
    assert sum((await graph.values("Person", "h_hub")).values()) == pytest.approx(1)
    assert sum((await graph.values("Person", "h_authority")).values()) == pytest.approx(1)


async def test_vectors_are_written_as_lists(graph: People) -> None:
    asked = {"node_label": "Person", "result_property": "vector", "parameters": {"dimensions": 4}}
    await graph.done("/algo/fastrp", asked)
    assert {len(v) for v in (await graph.values("Person", "vector")).values()} == {4}


async def test_without_the_right_to_write_results_are_only_read(graph: People) -> None:
    reader = {"X-Penstock-Write": "0"}
    status, error = await refused(graph, "/algo/wcc", {"result_property": "c"}, **reader)
    assert (status, error["code"]) == (403, "PERMISSION_DENIED")
    answer = await graph.run("/algo/wcc", {}, **reader)
    assert answer.json()["result"]["components"] == 1


@pytest.mark.parametrize("name", sorted(CATALOG))
async def test_every_algorithm_is_listed_with_all_it_takes(graph: People, name: str) -> None:
    described = (await graph.client.get(f"/algo/algorithms/{name}")).json()
    assert described["description"]
    for parameter in described["parameters"]:
        assert parameter["description"]
        assert parameter["required"] or "default" in parameter


async def test_the_listing_can_be_narrowed_to_a_category(graph: People) -> None:
    every = (await graph.client.get("/algo/algorithms")).json()
    assert every["total"] == len(CATALOG)
    some = (await graph.client.get("/algo/algorithms", params={"category": "similarity"})).json()[
        "algorithms"
    ]
    assert [a["name"] for a in some] == ["adamic_adar", "common_neighbors", "jaccard", "overlap"]
    assert (
        await graph.client.get("/algo/algorithms", params={"category": "magic"})
    ).status_code == 422


async def test_networkx_s_functions_are_listed_with_their_parameters(graph: People) -> None:
    every = (await graph.client.get("/networkx/algorithms")).json()
    assert every["total"] == len(ALLOWED)
    one = (await graph.client.get("/networkx/algorithms/betweenness_centrality")).json()
    assert {"name": "normalized", "type": "boolean"}.items() <= one["parameters"][1].items()
    assert "backend" not in [p["name"] for p in one["parameters"]]


REFUSALS: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("/algo/no_such", {}, 404, "ALGORITHM_NOT_FOUND", "no_such"),
    ("/networkx/read_gml", {}, 404, "ALGORITHM_NOT_FOUND", "read_gml"),
    ("/networkx/draw", {}, 404, "ALGORITHM_NOT_FOUND", "draw"),
    (
        "/algo/pagerank",
        {"parameters": {"damping_factor": 1}},
        422,
        "VALIDATION_FAILED",
        "damping_factor must be at",
    ),
    (
        "/algo/pagerank",
        {"parameters": {"max_iterations": 0}},
        422,
        "VALIDATION_FAILED",
        "at least 1",
    ),
    (
        "/algo/pagerank",
        {"parameters": {"max_iterations": 1.5}},
        422,
        "VALIDATION_FAILED",
        "an integer",
    ),
    ("/algo/pagerank", {"parameters": {"dampling": 1}}, 422, "VALIDATION_FAILED", "dampling"),
    ("/algo/pagerank", {"node_label": "Nobody"}, 422, "VALIDATION_FAILED", "Nobody"),
    ("/algo/pagerank", {"edge_type": "HATES"}, 422, "VALIDATION_FAILED", "HATES"),
    ("/algo/pagerank", {"weight_property": "since"}, 422, "VALIDATION_FAILED", "since"),
    (
        "/algo/pagerank",
        {"node_label": "Person", "node_labels": ["City"]},
        422,
        "VALIDATION_FAILED",
        "not both",
    ),
    (
        "/algo/pagerank",
        {"result_property": "name"},
        422,
        "VALIDATION_FAILED",
        "comes from the mapping",
    ),
    ("/algo/pagerank", {"result_property": "1 or 2"}, 422, "VALIDATION_FAILED", "result_property"),
    ("/algo/pagerank", {"result_propert": "x"}, 422, "VALIDATION_FAILED", "result_propert"),
    ("/algo/pagerank", {"timeout_ms": 0}, 422, "VALIDATION_FAILED", "timeout_ms"),
    ("/algo/scc", {"directed": False}, 422, "VALIDATION_FAILED", "directed must be true"),
    ("/algo/diameter", {"result_property": "d"}, 422, "VALIDATION_FAILED", "no value per node"),
    ("/algo/bfs", {}, 422, "VALIDATION_FAILED", "source_id is required"),
    ("/algo/bfs", {"source_id": "Person:99"}, 404, "RESOURCE_NOT_FOUND", "Person:99"),
    ("/algo/bfs", {"source_id": 1}, 422, "VALIDATION_FAILED", "several labels"),
    (
        "/algo/bfs",
        {"parameters": {"source_id": ["Person:1"]}},
        422,
        "VALIDATION_FAILED",
        "a node's id",
    ),
    (
        "/networkx/pagerank",
        {"parameters": {"backend": "evil"}},
        422,
        "VALIDATION_FAILED",
        "backend",
    ),
    (
        "/networkx/density",
        {"result_property": "d"},
        422,
        "VALIDATION_FAILED",
        "not one value per node",
    ),
]


@pytest.mark.parametrize(("path", "body", "status", "code", "says"), REFUSALS)
async def test_what_cannot_be_done_is_said(
    graph: People, path: str, body: dict[str, Any], status: int, code: str, says: str
) -> None:
    answer_status, error = await refused(graph, path, body)
    assert (answer_status, error["code"]) == (status, code)
    assert says in error["message"]
    assert not graph.lock.holding


@pytest.mark.parametrize(
    ("capability", "path", "body"),
    [
        ("native_algorithms", "/algo/pagerank", {}),
        ("networkx", "/networkx/density", {}),
        ("write_back", "/algo/pagerank", {"result_property": "rank"}),
        ("write_back", "/networkx/pagerank", {"result_property": "rank"}),
    ],
)
async def test_what_a_backend_cannot_do_is_refused_by_the_capability_s_name(
    graph: People, monkeypatch: pytest.MonkeyPatch, capability: str, path: str, body: dict[str, Any]
) -> None:
    fewer = dataclasses.replace(graph.engine.capabilities, **{capability: False})
    monkeypatch.setattr(graph.engine, "_capabilities", fewer)
    status, error = await refused(graph, path, body)
    assert (status, error["code"], error["details"]["capability"]) == (
        422,
        "CAPABILITY_MISSING",
        capability,
    )
    assert not graph.lock.holding


async def test_executions_are_listed_newest_first_without_their_long_parts(graph: People) -> None:
    done = await graph.done("/algo/degree")
    first = (await graph.client.get("/algo/executions")).json()["executions"][0]
    assert first["execution_id"] == done["execution_id"]
    assert "values" not in first["result"]
    status = (await graph.client.get(f"/algo/status/{done['execution_id']}")).json()
    assert status["result"]["values"]
    assert (await graph.client.get("/algo/status/nothing")).status_code == 404
    assert (
        await graph.client.delete(f"/algo/executions/{done['execution_id']}")
    ).status_code == 409


async def test_networkx_writes_back_and_answers(graph: People) -> None:
    asked = {"node_label": "Person", "edge_type": "KNOWS"}
    density = await graph.done("/networkx/density", asked)
    assert density["result"] == {
        "kind": "scalar",
        "computed_by": "networkx",
        "value": 0.3,
        "truncated": False,
    }
    load = await graph.done("/networkx/load_centrality", asked | {"result_property": "load"})
    assert load["nodes_updated"] == 5
    assert load["algorithm_type"] == "networkx"
    assert (await graph.values("Person", "load"))[4] == pytest.approx(0.25)
    paths = {"parameters": {"source": "Person:1", "target": "Person:5"}, "weight_property": "cost"}
    cheap = await graph.done("/networkx/dijkstra_path_length", asked | paths)
    assert cheap["result"]["value"] == 8.0
    by_name = {"parameters": {"attribute": "name"}, **asked}
    assert (await graph.done("/networkx/attribute_assortativity_coefficient", by_name))["result"][
        "value"
    ] < 0
