"""What graph servers say of themselves, with a token that reaches one instance and no other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.graphs.deployment import TOKEN, until
from tests.graphs.fleet import sailing, sink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx2

    from tests.graphs.fleet import Fleet


@pytest.fixture
async def fleet(database: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with sailing(database, tmp_path / "home") as it:
        it.tell(hold=True)
        yield it
    await sink(it.launcher)


async def loading(fleet: Fleet) -> int:
    """An instance whose server is there, and loads until it is told otherwise."""
    instance = await fleet.create()

    async def loads() -> bool:
        return (await fleet.row(instance["id"])).progress is not None

    await until(loads)
    instance_id: int = instance["id"]
    return instance_id


async def report(
    fleet: Fleet,
    of: int,
    what: str,
    *,
    by: int | None = None,
    method: str = "PUT",
    token: str | None = None,
    **body: Any,
) -> httpx2.Response:
    shown = token or fleet.instances.token_of(by or of)
    headers = {
        "Authorization": f"Bearer {shown}",
        "X-Component": "worker" if shown == TOKEN else "wrapper",
    }
    return await fleet.http.request(
        method, f"/api/internal/instances/{of}/{what}", headers=headers, json=body or None
    )


async def test_a_token_reaches_its_own_instance_and_nothing_else(fleet: Fleet) -> None:
    one, two = (await fleet.create())["id"], (await fleet.create())["id"]
    for what, body in (
        ("status", {"status": "running"}),
        ("metrics", {}),
        ("progress", {"phase": "ready"}),
    ):
        for method in ("PUT", "PATCH"):
            answer = await report(fleet, two, what, by=one, method=method, **body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                403,
                "PERMISSION_DENIED",
            ), what
    assert (await report(fleet, two, "mapping", by=one, method="GET")).status_code == 403
    assert (await report(fleet, two, "activity", by=one, method="POST")).status_code == 403
    assert (
        await report(fleet, one, "mapping", method="GET", token="psi_1_" + "0" * 64)
    ).status_code == 401
    assert (await report(fleet, one, "mapping", method="GET", token="ada")).status_code == 401
    headers = {"Authorization": f"Bearer {fleet.instances.token_of(one)}", "X-Component": "wrapper"}
    claim = {"worker": "w", "queues": ["export"], "limit": 1}
    assert (
        await fleet.http.post("/api/internal/jobs/claim", headers=headers, json=claim)
    ).status_code == 403
    assert (await fleet.http.get(f"/api/instances/{one}", headers=headers)).status_code == 401
    assert (await report(fleet, one, "mapping", method="GET")).status_code == 200
    assert (await report(fleet, one, "mapping", method="GET", token=TOKEN)).status_code == 200
    assert (await report(fleet, 10**6, "mapping", method="GET")).status_code == 404


async def test_a_server_is_told_the_definitions_of_its_snapshots_version_without_their_sql(
    fleet: Fleet,
) -> None:
    instance = await fleet.create()
    answer = (await report(fleet, instance["id"], "mapping", method="GET")).json()["data"]
    snapshot = await fleet.graphs.snapshots.get(instance["snapshot_id"])
    assert answer == {
        "instance_id": instance["id"],
        "snapshot_id": instance["snapshot_id"],
        "mapping_id": instance["mapping_id"],
        "mapping_version": 1,
        "owner_username": "ada",
        "wrapper_type": "ladybug",
        "gcs_path": f"{fleet.settings.storage_root}/{snapshot.prefix}",
        "prefix": snapshot.prefix,
        "manifest": f"{snapshot.prefix}manifest.json",
        "node_definitions": [
            {"label": "Person", "primary_key": {"name": "id", "type": "INT64"}, "properties": []}
        ],
        "edge_definitions": [],
        "limits": {"memory_bytes": 2 * 1024**3, "cpu_cores": 2},
    }


async def test_progress_is_shown_as_it_is_reported(fleet: Fleet) -> None:
    instance = await fleet.create()
    steps = [
        {"name": "schema_created", "status": "completed"},
        {"name": "Person", "type": "node", "status": "in_progress", "row_count": 12},
    ]
    answer = await report(
        fleet, instance["id"], "progress", phase="loading_nodes", current_step="Person", steps=steps
    )
    assert answer.json() == {"data": {"updated": True}}
    shown = await fleet.ask("GET", f"/api/instances/{instance['id']}/progress", who="bob")
    assert (shown["phase"], shown["current_step"], shown["progress_percent"]) == (
        "loading_data",
        "Person",
        50,
    )
    assert shown["steps"][1] == {
        "name": "Person",
        "type": "node",
        "status": "in_progress",
        "row_count": 12,
    }
    assert (await report(fleet, instance["id"], "progress", phase="dancing")).status_code == 422
    assert (
        await report(fleet, instance["id"], "progress", phase="ready", progress_percent=101)
    ).status_code == 422


async def test_activity_moves_on_and_never_into_the_future(fleet: Fleet) -> None:
    instance_id = await loading(fleet)
    await report(
        fleet,
        instance_id,
        "status",
        status="running",
        graph_stats={"node_count": 5, "edge_count": 0},
    )
    began = (await fleet.row(instance_id)).last_activity_at
    assert began is not None
    assert (await report(fleet, instance_id, "activity", method="POST")).status_code == 204
    later = (await fleet.row(instance_id)).last_activity_at
    assert later is not None
    assert later > began
    for moment in (began - timedelta(hours=1), datetime.now(UTC) + timedelta(hours=1)):
        fields: dict[str, Any] = {
            "last_activity_at": moment.isoformat(),
            "memory_usage_bytes": 7,
            "query_count_since_last": 2,
        }
        assert (await report(fleet, instance_id, "metrics", **fields)).json() == {
            "data": {"updated": True}
        }
    row = await fleet.row(instance_id)
    assert row.last_activity_at is not None
    assert later <= row.last_activity_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert (row.memory_usage_bytes, row.query_count, row.node_count) == (7, 4, 5)
    assert (await report(fleet, instance_id, "metrics", memory_usage_bytes=-1)).status_code == 422


async def test_no_cause_is_lost_for_its_length_or_for_a_character_that_is_not_stored(
    fleet: Fleet,
) -> None:
    instance_id = (await fleet.create())["id"]
    step = {"name": "Per\x00son", "status": "in_progress"}
    answer = await report(
        fleet,
        instance_id,
        "progress",
        phase="loading_data",
        current_step="Per\x00son",
        steps=[step],
    )
    assert answer.json() == {"data": {"updated": True}}
    cause = {
        "error_code": "DATA_LOAD_ERROR",
        "error_message": "row \x00" + "x" * 5000,
        "failed_phase": "load\x00ing",
    }
    answer = await report(
        fleet, instance_id, "status", status="failed", stack_trace="at \x00", **cause
    )
    assert answer.json() == {"data": {"updated": True}}
    instance = await fleet.ask("GET", f"/api/instances/{instance_id}")
    assert (instance["error_code"], instance["failed_phase"], instance["stack_trace"]) == (
        "DATA_LOAD_ERROR",
        "loading",
        "at ",
    )
    assert instance["error_message"] == "x" * 4000
    assert instance["progress"]["steps"][0]["name"] == "Person"
    await fleet.ask("GET", f"/api/instances/{instance_id}/events")


async def test_a_step_is_taken_once_and_a_cause_is_kept(fleet: Fleet) -> None:
    instance_id = await loading(fleet)
    for updated in (True, False):
        answer = await report(
            fleet, instance_id, "status", status="running", graph_stats={"node_count": 1}
        )
        assert answer.json() == {"data": {"updated": updated}}
    for code, updated in (("OOM_KILLED", True), ("DATABASE_ERROR", False)):
        answer = await report(
            fleet, instance_id, "status", status="failed", error_code=code, error_message=code
        )
        assert answer.json() == {"data": {"updated": updated}}
    instance = await fleet.ask("GET", f"/api/instances/{instance_id}")
    assert (instance["error_code"], instance["error_message"]) == ("OOM_KILLED", "OOM_KILLED")
    answer = await report(fleet, instance_id, "status", status="running")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "INVALID_STATE_TRANSITION")
    assert (
        await report(fleet, instance_id, "status", status="failed", error_code="BORED")
    ).status_code == 422
    assert (await report(fleet, instance_id, "progress", phase="ready")).json() == {
        "data": {"updated": False}
    }
