"""Snapshots in other storages, graphs in other engines: the same server."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
import pytest
import redis
from pydantic import SecretStr

from penstock.graph_server.process import bind_listener
from penstock.graph_server.settings import InstanceSettings
from penstock.storage.object_store import StoreOptions, open_store
from tests.graph_server.conftest import CITY, EDGES, LIVES, NODES
from tests.graph_server.server import PLANE, graph_server, running_server
from tests.graph_server.snapshots import Edge, Node, publish
from tests.graph_server.test_algorithms_served import done
from tests.graph_server.test_queries import until_active
from tests.servers.falkor import falkordb
from tests.servers.process import free_ports
from tests.servers.weed import weed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.graph_server.server import GraphServer

PREFIX = "ada/5/v3/42/"
PERSON = Node(
    label="Person",
    key=("id", "INT64"),
    properties=(("name", "STRING"), ("set", "BOOL")),
    table=pa.table({"id": pa.array([1, 2]), "name": ["Ada", "Zoë"], "set": [True, None]}),
)
KNOWS = Edge(
    type="KNOWS",
    ends=("Person", "Person"),
    table=pa.table({"a": pa.array([1]), "b": pa.array([2])}),
)


async def test_a_snapshot_in_s3_is_fetched_loaded_and_its_copy_removed(short_folder: Path) -> None:
    place = short_folder / "weed"
    place.mkdir()
    with weed(place, "lake") as (s3, process):
        until = time.monotonic() + 60
        while not s3.ready():
            assert process.poll() is None
            assert time.monotonic() < until
        options = StoreOptions(
            endpoint=s3.endpoint,
            access_key_id=s3.access_key,
            secret_access_key=s3.secret_key,
            allow_http=True,
        )
        mapping = await publish(
            open_store("s3://lake/root", options=options), NODES, EDGES, prefix=PREFIX
        )
        settings = {
            "storage_endpoint": s3.endpoint,
            "storage_access_key_id": s3.access_key,
            "storage_secret_access_key": s3.secret_key,
            "storage_allow_http": "true",
        }
        async with running_server(
            short_folder / "i", "s3://lake/root", mapping, **settings
        ) as server:
            assert await server.rows("MATCH (n) RETURN count(*)") == [[5]]
            assert not (server.folder / "own/files").exists()
            assert s3.secret_key not in server.log.read_text()


async def test_it_serves_over_tcp_too(short_folder: Path) -> None:
    root = short_folder / "storage"
    root.mkdir()
    mapping = await publish(open_store(str(root)), [CITY], [], prefix=PREFIX)
    [port] = free_ports(1)
    async with running_server(
        short_folder / "i", f"file://{root}", mapping, instance_port=str(port)
    ) as server:
        assert await server.rows("RETURN 1") == [[1]]
        [connection] = [
            c
            for c in psutil.Process(server.process.pid).net_connections("tcp")
            if c.status == "LISTEN"
        ]
        assert connection.laddr.port == port


def test_an_answer_of_two_writes_does_not_wait_for_the_callers_acknowledgement(
    tmp_path: Path,
) -> None:
    settings = InstanceSettings(id=1, token=SecretStr("t"), dir=tmp_path, host="127.0.0.1", port=0)
    with bind_listener(settings) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("backend", ["ryugraph", "falkordb"])
async def test_other_backends_serve_the_same_graph(short_folder: Path, backend: str) -> None:
    root = short_folder / "storage"
    root.mkdir()
    mapping = await publish(open_store(str(root)), [PERSON, CITY], [KNOWS, LIVES], prefix=PREFIX)
    place = short_folder / "falkor"
    place.mkdir()
    with falkordb(place) as url:
        settings = {"instance_backend": backend, "instance_falkordb_url": url}
        async with running_server(
            short_folder / "i", f"file://{root}", mapping, **settings
        ) as server:
            text = "MATCH (a:Person {id: $x})-[e:KNOWS]->(b) RETURN a, e, b.name AS name"
            answer = (await server.query(text, parameters={"x": 1})).json()
            assert answer["column_types"] == ["NODE", "REL", "STRING"]
            [[a, e, name]] = answer["rows"]
            assert a == {"_id": "Person:1", "_label": "Person", "id": 1, "name": "Ada", "set": True}
            assert (e["_src"], e["_dst"], name) == ("Person:1", "Person:2", "Zoë")
            actual = (
                await server.http.post("/subgraph", json={"start": ["Person:1"], "hops": 2})
            ).json()
            assert (actual["node_count"], actual["edge_count"]) == (4, 3)
            assert (await server.query("CREATE (:City {name: 'x'})")).status_code == 403
            assert (await server.http.get("/schema")).json()["total_nodes"] == 4
            await algorithms_write_back(server)
            await a_hang_up_leaves_it_sound(server)


async def algorithms_write_back(server: GraphServer) -> None:
    asked = {"node_label": "Person", "edge_type": "KNOWS", "result_property": "rank"}
    for path in ("/algo/pagerank", "/networkx/pagerank"):
        assert (await done(server, path, asked))["nodes_updated"] == 2
        ranks = await server.rows("MATCH (p:Person) RETURN p.rank ORDER BY p.id")
        assert [rank for [rank] in ranks] == pytest.approx([0.350877, 0.649123], abs=1e-4)
    person = (await server.http.get("/schema")).json()["node_tables"][0]
    assert person["properties"]["rank"] == "DOUBLE"
    whole = await done(server, "/algo/wcc", {"result_property": "part"})
    assert (whole["nodes_updated"], whole["result"]["components"]) == (4, 1)


async def a_hang_up_leaves_it_sound(server: GraphServer) -> None:
    """At once where the engine can be interrupted, by its time elsewhere."""
    triples = (
        "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 3000) AS c WITH a, "
        "b, c"
    )
    asking = asyncio.create_task(
        server.query(f"{triples} WHERE a * b + c < 0 RETURN count(*)", timeout_ms=1500)
    )
    await until_active(server, 1)
    asking.cancel()
    await until_active(server, 0)
    assert await server.rows("MATCH (n:City) RETURN count(*)") == [[2]]


async def test_what_falkordb_cannot_hold_is_its_own_schema_error(short_folder: Path) -> None:
    root = short_folder / "storage"
    root.mkdir()
    mapping = await publish(open_store(str(root)), NODES, EDGES, prefix=PREFIX)
    place = short_folder / "falkor"
    place.mkdir()
    with falkordb(place) as url:
        settings = {"instance_backend": "falkordb", "instance_falkordb_url": url}
        async with graph_server(
            short_folder / "i", f"file://{root}", mapping, **settings
        ) as server:
            outcome = await server.plane.outcome()
            assert outcome["error_code"] == "FALKORDB_SCHEMA_CREATE_ERROR"
            assert "facts is MAP, which FalkorDB does not support" in outcome["error_message"]


async def test_a_backend_without_its_server_is_a_database_error(short_folder: Path) -> None:
    root = short_folder / "storage"
    root.mkdir()
    mapping = await publish(open_store(str(root)), [CITY], [], prefix=PREFIX)
    settings = {
        "instance_backend": "falkordb",
        "instance_falkordb_url": f"unix://{short_folder}/nobody",
    }
    async with graph_server(short_folder / "i", f"file://{root}", mapping, **settings) as server:
        outcome = await server.plane.outcome()
        assert outcome["error_code"] == "FALKORDB_DATABASE_ERROR"


async def test_two_instances_share_a_falkordb_and_each_leaves_it_as_it_was(
    short_folder: Path,
) -> None:
    place = short_folder / "falkor"
    place.mkdir()
    root = short_folder / "storage"
    root.mkdir()
    mapping = await publish(open_store(str(root)), [CITY], [], prefix=PREFIX)
    with (
        falkordb(place) as url,
        redis.Redis(unix_socket_path=url.removeprefix("unix://")) as client,
    ):
        settings = {"instance_backend": "falkordb", "instance_falkordb_url": url}
        client.execute_command("GRAPH.QUERY", "penstock-8", "CREATE (:City {name: 'Atlantis'})")
        async with running_server(
            short_folder / "i", f"file://{root}", mapping, **settings
        ) as server:
            assert await server.rows("MATCH (n:City) RETURN count(n)") == [[2]]
            assert sorted(client.execute_command("GRAPH.LIST")) == [b"penstock-7", b"penstock-8"]
            plain = {"Authorization": PLANE["Authorization"], "X-Penstock-User": ""}
            await server.http.post("/shutdown", json={"grace_period_seconds": 5}, headers=plain)
            assert await server.exit_code() == 0
        assert client.execute_command("GRAPH.LIST") == [b"penstock-8"]
