"""Algorithms in the real process, shut in by the kernel: what the others see of them, and what
outlives what."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pytest
import pytest_asyncio

from penstock.storage.object_store import open_store
from tests.graph_server.conftest import BIG, EDGES, NODES
from tests.graph_server.control_plane import DEADLINE
from tests.graph_server.server import PLANE, GraphServer, running_server
from tests.graph_server.snapshots import Edge, Node, publish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

OWNER = {"X-Penstock-Write": "1"}
LONG: dict[str, Any] = {
    "parameters": {"max_iterations": 100_000, "tolerance": 0},
    "result_property": "rank",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served() -> AsyncIterator[GraphServer]:
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        root = Path(folder) / "storage"
        root.mkdir()
        published = await publish(open_store(str(root)), NODES, EDGES, prefix="ada/5/v3/43/")
        async with running_server(Path(folder) / "i", f"file://{root}", published) as running:
            yield running


async def until(holds: Callable[[], Any]) -> Any:
    async with asyncio.timeout(DEADLINE):
        while not (value := holds()):  # noqa: ASYNC110 - what another process does rings no bell here
            await asyncio.sleep(0.01)
    return value


def computing(server: GraphServer) -> list[psutil.Process]:
    """Children of the process that forks them."""
    forks = psutil.Process(server.process.pid).children()
    return [child for fork in forks for child in fork.children()]


async def ended(server: GraphServer, execution_id: str) -> dict[str, Any]:
    async with asyncio.timeout(DEADLINE):
        while True:
            document: dict[str, Any] = (
                await server.http.get(f"/algo/status/{execution_id}")
            ).json()
            if document["status"] != "running":
                return document
            await asyncio.sleep(0.05)


async def done(server: GraphServer, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await server.http.post(path, json=body, headers=OWNER)
    assert answer.status_code in (200, 202), answer.text
    return await ended(server, answer.json()["execution_id"])


async def test_a_result_is_there_for_the_next_query_and_in_the_schema(served: GraphServer) -> None:
    asked = {
        "node_label": "Person",
        "edge_type": "KNOWS",
        "result_property": "depth",
        "source_id": "Person:1",
    }
    assert (await done(served, "/algo/bfs", asked))["nodes_updated"] == 3
    rows = await served.rows("MATCH (p:Person) RETURN p.id, p.depth ORDER BY p.depth")
    assert rows == [[1, 0], [2, 1], [BIG, 2]]
    tables = (await served.http.get("/schema")).json()["node_tables"]
    assert next(t for t in tables if t["label"] == "Person")["properties"]["depth"] == "INT64"


async def test_keys_of_text_and_numbers_share_one_graph(served: GraphServer) -> None:
    asked = {"source_id": "Person:1", "target_id": "City:Żółw"}
    result = (await done(served, "/algo/shortest_path", asked))["result"]
    assert result["path"] == ["Person:1", "Person:2", "City:Żółw"]


@pytest.mark.parametrize("name", ["closeness", "harmonic", "betweenness", "degree"])
async def test_a_weighted_centrality_comes_out_of_its_process(
    served: GraphServer, name: str
) -> None:
    """Its progress is a number of NumPy's, which has to be one of JSON's on the way."""
    asked = {"edge_type": "KNOWS", "weight_property": "weight"}
    execution = await done(served, f"/algo/{name}", asked)
    assert execution["status"] == "completed", execution
    assert execution["result"]["maximum"] >= 0


async def test_a_parameter_that_json_cannot_say_again_is_refused(served: GraphServer) -> None:
    bodies = {
        "/algo/bfs": {"source_id": 2**70},
        "/networkx/shortest_path": {"parameters": {"source": 2**64, "target": 1}},
    }
    for path, body in bodies.items():
        answer = await served.http.post(path, json=body, headers=OWNER)
        assert answer.status_code == 422, answer.text
        assert "64 bits" in answer.json()["error"]["details"]["hint"]


async def test_networkx_answers_from_inside_the_walls(served: GraphServer) -> None:
    document = await done(served, "/networkx/density", {"directed": False})
    assert document["result"]["value"] == pytest.approx(0.4)


async def test_everybody_sees_the_holder_and_health_is_prompt_while_an_algorithm_writes(
    served: GraphServer,
) -> None:
    begun = asyncio.create_task(served.http.post("/algo/pagerank", json=LONG, headers=OWNER))
    await until(lambda: computing(served))
    lock = (await served.http.get("/lock")).json()["lock"]
    assert (lock["locked"], lock["holder_username"], lock["algorithm_name"]) == (
        True,
        "ada",
        "pagerank",
    )
    refused = await served.http.post(
        "/shutdown", json={"reason": "test"}, headers=PLANE | {"X-Penstock-User": ""}
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "SHUTDOWN_BLOCKED")
    for _ in range(20):
        assert (await served.http.get("/health")).status_code == 200
    assert computing(served), "all twenty were answered while it still computed"
    done = await ended(served, (await begun).json()["execution_id"])
    assert done["status"] == "completed"
    assert (await served.http.get("/lock")).json()["lock"]["locked"] is False


async def test_a_killed_child_leaves_lock_and_server_sound(served: GraphServer) -> None:
    begun = asyncio.create_task(served.http.post("/algo/pagerank", json=LONG, headers=OWNER))
    child = (await until(lambda: computing(served)))[0]
    os.kill(child.pid, signal.SIGKILL)
    answer = await begun
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "ALGORITHM_FAILED")
    assert (await served.http.get("/lock")).json()["lock"]["locked"] is False
    assert (await done(served, "/algo/wcc", {"result_property": "part"}))["nodes_updated"] == 5


async def test_no_process_outlives_a_killed_server(short_folder: Path) -> None:
    root = short_folder / "storage"
    root.mkdir()
    published = await publish(open_store(str(root)), NODES, EDGES, prefix="ada/5/v3/44/")
    async with running_server(short_folder / "i", f"file://{root}", published) as server:
        begun = asyncio.create_task(server.http.post("/algo/pagerank", json=LONG, headers=OWNER))
        family = await until(lambda: computing(server))
        family += psutil.Process(server.process.pid).children()
        server.process.kill()
        await asyncio.gather(begun, return_exceptions=True)
        await until(lambda: not any(_alive(one) for one in family))


def _alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


async def test_networkx_goes_by_a_property_called_weight_and_the_lightest_of_parallel_edges() -> (
    None
):
    """However the property is named in the request."""
    places = Node(label="Place", key=("id", "INT64"), table=pa.table({"id": pa.array([1, 2, 3])}))
    roads = Edge(
        type="ROAD",
        ends=("Place", "Place"),
        properties=(("weight", "DOUBLE"),),
        table=pa.table({"a": [1, 1, 2, 2], "b": [2, 2, 3, 3], "weight": [2.5, 9.0, 8.0, 4.0]}),
    )
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        root = Path(folder) / "storage"
        root.mkdir()
        published = await publish(open_store(str(root)), [places], [roads], prefix="ada/5/v3/44/")
        async with running_server(Path(folder) / "i", f"file://{root}", published) as server:
            ends = {"source": "Place:1", "target": "Place:3"}
            by_field = {"parameters": ends, "weight_property": "weight"}
            by_parameter = {"parameters": ends | {"weight": "weight"}}
            for body in (by_field, by_parameter):
                answer = await done(server, "/networkx/dijkstra_path_length", body)
                assert answer["result"]["value"] == 6.5
