"""Snapshots in other storages, graphs in other engines: the same server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.storage.stores import StoreOptions, open_store
from tests.instance.conftest import CITY, EDGES, LIVES, NODES
from tests.instance.server import graph_server, running_server
from tests.instance.snapshots import Edge, Node, publish
from tests.servers.falkor import falkordb
from tests.servers.weed import weed

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "ada/5/v3/42/"
PERSON = Node(
    label="Person",
    key=("id", "INT64"),
    properties=(("name", "STRING"), ("set", "BOOL")),
    table=pa.table({"id": pa.array([1, 2]), "name": ["Ada", "Zoë"], "set": [True, None]}),
)
KNOWS = Edge(type="KNOWS", ends=("Person", "Person"), table=pa.table({"a": pa.array([1]), "b": pa.array([2])}))


async def test_a_snapshot_in_s3_is_fetched_loaded_and_its_copy_removed(short_folder: Path) -> None:
    place = short_folder / "weed"
    place.mkdir()
    with weed(place, "lake") as (s3, process):
        until = time.monotonic() + 60
        while not s3.ready():
            assert process.poll() is None
            assert time.monotonic() < until
        options = StoreOptions(
            endpoint=s3.endpoint, access_key_id=s3.access_key, secret_access_key=s3.secret_key, allow_http=True
        )
        given = await publish(open_store("s3://lake/root", options=options), NODES, EDGES, prefix=PREFIX)
        settings = {
            "storage_endpoint": s3.endpoint,
            "storage_access_key_id": s3.access_key,
            "storage_secret_access_key": s3.secret_key,
            "storage_allow_http": "true",
        }
        async with running_server(short_folder / "i", "s3://lake/root", given, **settings) as server:
            assert await server.rows("MATCH (n) RETURN count(*)") == [[5]]
            assert not (server.folder / "own/files").exists()
            assert s3.secret_key not in server.log.read_text()


@pytest.mark.parametrize("backend", ["ryugraph", "falkordb"])
async def test_other_backends_serve_the_same_graph(short_folder: Path, backend: str) -> None:
    root = short_folder / "storage"
    root.mkdir()
    given = await publish(open_store(str(root)), [PERSON, CITY], [KNOWS, LIVES], prefix=PREFIX)
    place = short_folder / "falkor"
    place.mkdir()
    with falkordb(place) as url:
        settings = {"instance_backend": backend, "instance_falkordb_url": url}
        async with running_server(short_folder / "i", f"file://{root}", given, **settings) as server:
            text = "MATCH (a:Person {id: $x})-[e:KNOWS]->(b) RETURN a, e, b.name AS name"
            answer = (await server.query(text, parameters={"x": 1})).json()
            assert answer["column_types"] == ["NODE", "REL", "STRING"]
            [[a, e, name]] = answer["rows"]
            assert a == {"_id": "Person:1", "_label": "Person", "id": 1, "name": "Ada", "set": True}
            assert (e["_src"], e["_dst"], name) == ("Person:1", "Person:2", "Zoë")
            found = (await server.http.post("/subgraph", json={"start": ["Person:1"], "hops": 2})).json()
            assert (found["node_count"], found["edge_count"]) == (4, 3)
            assert (await server.query("CREATE (:City {name: 'x'})")).status_code == 403
            assert (await server.http.get("/schema")).json()["total_nodes"] == 4


async def test_what_falkordb_cannot_hold_is_its_own_schema_error(short_folder: Path) -> None:
    root = short_folder / "storage"
    root.mkdir()
    given = await publish(open_store(str(root)), NODES, EDGES, prefix=PREFIX)
    place = short_folder / "falkor"
    place.mkdir()
    with falkordb(place) as url:
        settings = {"instance_backend": "falkordb", "instance_falkordb_url": url}
        async with graph_server(short_folder / "i", f"file://{root}", given, **settings) as server:
            outcome = await server.plane.outcome()
            assert outcome["error_code"] == "FALKORDB_SCHEMA_CREATE_ERROR"
            assert "facts is MAP, which FalkorDB does not hold" in outcome["error_message"]


async def test_a_backend_without_its_server_is_a_database_error(short_folder: Path) -> None:
    root = short_folder / "storage"
    root.mkdir()
    given = await publish(open_store(str(root)), [CITY], [], prefix=PREFIX)
    settings = {"instance_backend": "falkordb", "instance_falkordb_url": f"unix://{short_folder}/nobody"}
    async with graph_server(short_folder / "i", f"file://{root}", given, **settings) as server:
        outcome = await server.plane.outcome()
        assert outcome["error_code"] == "FALKORDB_DATABASE_ERROR"
