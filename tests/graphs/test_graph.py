"""The whole way: a mapping on a warehouse becomes a running graph that answers Cypher, through HTTP alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.launchers.subprocess import COMMAND
from tests.graphs.fleet import sailing, sink
from tests.graphs.stand import Stand, shop

if TYPE_CHECKING:
    from pathlib import Path

CUSTOMER = {
    "label": "Customer",
    "sql": "SELECT id, name, age FROM customers",
    "primary_key": {"name": "id", "type": "INT64"},
    "properties": [{"name": "name", "type": "STRING"}, {"name": "age", "type": "INT32"}],
}
KNOWS = {
    "type": "KNOWS",
    "from_node": "Customer",
    "to_node": "Customer",
    "sql": "SELECT id AS a, (id + 1) % 1000 AS b FROM customers",
    "from_key": "a",
    "to_key": "b",
    "properties": [],
}


async def test_a_mapping_becomes_a_running_instance_and_answers_cypher_through_http_alone(
    database: str, tmp_path: Path
) -> None:
    pytest.importorskip("ladybug")
    async with sailing(database, tmp_path / "home", command=COMMAND) as fleet:
        stand = Stand(
            parts=fleet.parts,
            settings=fleet.settings.model_copy(update={"url": str(fleet.http.base_url)}),
            http=fleet.http,
        )
        source = await fleet.ask(
            "POST", "/api/data-sources", who="olga", expect=201, name="shop", type="duckdb", config=shop(tmp_path)
        )
        mapping = await fleet.ask(
            "POST",
            "/api/mappings",
            who="olga",
            expect=201,
            name="shop",
            data_source_id=source["id"],
            node_definitions=[CUSTOMER],
            edge_definitions=[KNOWS],
        )
        async with stand.working():
            made = await fleet.create(who="olga", mapping_id=mapping["id"], name="shop")
            assert made["status"] == "waiting_for_snapshot"
            found = await fleet.reaches(made["id"], "running", within=60)
        assert (found["node_count"], found["edge_count"]) == (1000, 1000)
        question = {"query": "MATCH (a:Customer)-[:KNOWS]->(b:Customer) WHERE a.id = 41 RETURN b.id, b.name"}
        answer = await fleet.through(found, "/query", method="POST", who="bob", json=question)
        assert answer.status_code == 200, answer.text
        assert answer.json()["rows"] == [[42, "c42"]]
        arrow = {"Accept": "application/vnd.apache.arrow.stream"}
        everything = {"query": "MATCH (c:Customer) RETURN c.id ORDER BY c.id"}
        answer = await fleet.through(found, "/query", method="POST", headers=arrow, json=everything)
        assert pa.ipc.open_stream(answer.content).read_all()["c.id"].to_pylist() == list(range(1000))
        status = (await fleet.through(found, "/status")).json()
        assert (status["snapshot_id"], status["instance_id"]) == (found["snapshot_id"], found["id"])
        assert (await fleet.through(found, "/shutdown", method="POST", who="olga", json={})).status_code == 403
        refused = await fleet.through(found, "/query", method="POST", json={"query": "CREATE (c:Customer {id: -1})"})
        assert refused.status_code in (400, 403)
        asleep = await fleet.ask("POST", f"/api/instances/{found['id']}/suspend", who="olga")
        assert asleep["status"] == "suspended"
        await fleet.ask("POST", f"/api/instances/{found['id']}/resume", who="olga")
        await fleet.reaches(found["id"], "running", within=30)
        again = await fleet.through(found, "/query", method="POST", json=question)
        assert again.json()["rows"] == [[42, "c42"]]
        [run] = await fleet.launcher.list()
        folder = fleet.settings.home / "instances" / str(run.handle.instance_id) / str(run.handle.launch)
        ended = await fleet.ask("POST", f"/api/instances/{found['id']}/terminate", who="olga")
        assert ended["status"] == "terminated"
        assert not os.path.exists(folder)  # noqa: PTH110
        await sink(fleet.launcher)
