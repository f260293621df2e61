"""Schema, status, lock, metrics, reports, and the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.storage.object_store import open_store
from tests.graph_server.conftest import EDGES, NODES
from tests.graph_server.server import PLANE, running_server
from tests.graph_server.snapshots import publish
from tests.graph_server.test_queries import ENDLESS, until_active

if TYPE_CHECKING:
    from pathlib import Path

    from tests.graph_server.server import GraphServer


async def test_the_schema_has_every_table_with_its_count(server: GraphServer) -> None:
    schema = (await server.http.get("/schema")).json()
    person, city = schema["node_tables"]
    assert (
        person["label"],
        person["primary_key"],
        person["primary_key_type"],
        person["node_count"],
    ) == (
        "Person",
        "id",
        "INT64",
        3,
    )
    assert person["properties"]["set"] == "BOOL"
    assert (city["label"], city["node_count"]) == ("City", 2)
    assert schema["edge_tables"][0] == {
        "type": "KNOWS",
        "from_node": "Person",
        "to_node": "Person",
        "properties": {"since": "DATE", "weight": "DOUBLE"},
        "edge_count": 2,
    }
    assert (schema["total_nodes"], schema["total_edges"]) == (5, 4)


async def test_the_status_has_all_that_it_promises(server: GraphServer) -> None:
    status = (await server.http.get("/status")).json()
    steady = {
        "status": "running",
        "ready": True,
        "instance_id": 7,
        "snapshot_id": 42,
        "mapping_id": 5,
        "owner_id": "ada",
    }
    assert steady.items() <= status.items()
    assert (status["node_count"], status["edge_count"]) == (5, 4)
    assert (status["node_tables"], status["edge_tables"]) == (
        ["Person", "City"],
        ["KNOWS", "LIVES_IN"],
    )
    assert status["memory_usage_bytes"] > 10**7
    assert status["disk_usage_bytes"] > 0
    assert status["started_at"].endswith("Z")


async def test_the_lock_is_never_null(server: GraphServer) -> None:
    lock = (await server.http.get("/lock")).json()["lock"]
    assert lock == {
        "locked": False,
        "holder_id": None,
        "holder_username": None,
        "algorithm_name": None,
        "algorithm_type": None,
        "execution_id": None,
        "acquired_at": None,
    }


async def test_metrics_and_health_are_open(server: GraphServer) -> None:
    await server.rows("RETURN 1")
    text = (await server.http.get("/metrics", headers={"Authorization": ""})).text
    assert "penstock_instance_ready 1\n" in text
    assert "penstock_instance_nodes 5\n" in text
    assert (await server.http.get("/health", headers={"Authorization": ""})).json()[
        "status"
    ] == "healthy"


async def test_an_unknown_path_and_a_wrong_method_have_the_envelope(server: GraphServer) -> None:
    missing, wrong = await server.http.get("/nothing"), await server.http.get("/query")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "RESOURCE_NOT_FOUND")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert wrong.json()["meta"]["request_id"]


async def test_a_user_cannot_shut_it_down(server: GraphServer) -> None:
    answer = await server.http.post("/shutdown", json={"reason": "spite"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "PERMISSION_DENIED")


async def test_a_server_reports_what_it_did_and_ends_when_it_is_told(short_folder: Path) -> None:
    root = short_folder / "storage"
    root.mkdir()
    mapping = await publish(open_store(str(root)), NODES, EDGES, prefix="ada/5/v3/42/")
    async with running_server(
        short_folder / "i", f"file://{root}", mapping, instance_report_seconds="0.2"
    ) as server:
        await server.rows("RETURN 1")
        report = await server.plane.heard(
            "metrics", lambda body: body["query_count_since_last"] == 1
        )
        assert report["memory_usage_bytes"] > 10**7
        assert report["avg_query_time_ms"] > 0
        assert report["last_activity_at"].endswith("Z")
        await server.plane.heard("activity")
        running = asyncio.create_task(server.query(ENDLESS, timeout_ms=800))
        await until_active(server, 1)
        plain = {"Authorization": PLANE["Authorization"], "X-Penstock-User": ""}
        answer = await server.http.post(
            "/shutdown", json={"reason": "expired", "grace_period_seconds": 5}, headers=plain
        )
        assert answer.json() == {"acknowledged": True, "active_queries": 1, "lock_held": False}
        assert (await running).status_code == 408
        assert await server.exit_code() == 0
