"""Instances through the API, on real processes: from asking for one to its end."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.graphs.deployment import connected, until
from tests.graphs.fleet import sailing, sink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.graphs.fleet import Fleet

FIELDS = """
    id snapshot_id snapshot_name mapping_id mapping_version owner_username wrapper_type name
    description status instance_url explorer_url pod_name url_slug progress error_code error_message
    failed_phase stack_trace created_at updated_at started_at last_activity_at expires_at ttl
    inactivity_timeout memory_usage_bytes disk_usage_bytes cpu_cores memory_gb node_count edge_count
"""


@pytest.fixture
async def fleet(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fleet]:
    """No tick helps here: what is not rung for never happens."""
    monkeypatch.setattr("penstock.graphs.instances.controller.POLL_SECONDS", 600)
    async with sailing(database, tmp_path / "home") as it:
        yield it
    await sink(it.launcher)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_an_instance_of_a_ready_snapshot_runs_without_a_tick_and_is_gone_when_terminated(
    fleet: Fleet,
) -> None:
    created = await fleet.create(
        snapshot_id=await fleet.snapshot(), name="first", description="d", cpu_cores=1
    )
    assert set(created) == set(FIELDS.split())
    assert (
        created["status"],
        created["wrapper_type"],
        created["memory_gb"],
        created["cpu_cores"],
    ) == (
        "starting",
        "ladybug",
        2,
        1,
    )
    # The controller's tick of ten minutes is longer than a test may take: it was notified.
    instance = await fleet.reaches(created["id"], "running")
    assert (instance["node_count"], instance["edge_count"], instance["error_code"]) == (3, 2, None)
    assert (
        instance["instance_url"]
        == f"http://127.0.0.1:{fleet.settings.port}/wrapper/{created['url_slug']}"
    )
    assert instance["started_at"] == instance["last_activity_at"] != None  # noqa: E711
    assert moment(instance["expires_at"]) - moment(instance["created_at"]) == timedelta(days=1)
    progress = await fleet.ask("GET", f"/api/instances/{created['id']}/progress")
    assert (progress["phase"], progress["progress_percent"]) == ("ready", 100)
    assert progress["steps"] == [
        {"name": "Person", "type": "node", "status": "completed", "row_count": None}
    ]
    health = (await fleet.through(instance, "/health")).json()
    ended = await fleet.ask("POST", f"/api/instances/{created['id']}/terminate")
    assert ended == {"id": created["id"], "status": "terminated"}
    await fleet.ask("GET", f"/api/instances/{created['id']}", expect=404)
    assert not os.path.exists(f"/proc/{health['pid']}")  # noqa: PTH110
    assert await fleet.launcher.list() == []
    assert (await fleet.through(instance, "/health")).status_code == 404


async def test_an_instance_waits_for_its_snapshot_and_starts_in_the_transaction_that_makes_it_ready(
    fleet: Fleet,
) -> None:
    snapshot_id = await fleet.snapshot(ready=False)
    instance = await fleet.create(snapshot_id=snapshot_id)
    assert instance["status"] == "waiting_for_snapshot"
    assert instance["progress"]["current_step"] == "waiting_for_snapshot"
    await fleet.finish(snapshot_id, size=3 * 1024**3)
    row = await fleet.row(instance["id"])
    assert row.status in ("starting", "running")
    assert row.memory_gb == 13, "sized by what the snapshot turned out to be"
    await fleet.reaches(instance["id"], "running")
    kinds = [
        event["event_type"]
        for event in await fleet.ask("GET", f"/api/instances/{instance['id']}/events")
    ]
    assert kinds == ["running", "starting", "created"]


async def test_an_instance_whose_snapshot_fails_or_is_cancelled_fails_with_that_cause(
    fleet: Fleet,
) -> None:
    first, second = await fleet.snapshot(ready=False), await fleet.snapshot(ready=False)
    instances = [await fleet.create(snapshot_id=snapshot_id) for snapshot_id in (first, second)]
    await fleet.graphs.exports.fail(first, actor="test", reason="The table is gone.", step="Person")
    await fleet.graphs.exports.cancel(second, actor="test")
    failed = [await fleet.reaches(instance["id"], "failed") for instance in instances]
    assert [instance["error_code"] for instance in failed] == ["SNAPSHOT_FAILED"] * 2
    assert "The table is gone." in failed[0]["error_message"]
    assert failed[0]["failed_phase"] == "Person"
    refused = await fleet.create(snapshot_id=first, expect=409)
    assert refused["code"] == "INVALID_STATE"
    await fleet.ask("DELETE", f"/api/instances/{instances[0]['id']}")
    await fleet.ask("GET", f"/api/instances/{instances[0]['id']}", expect=404)


async def test_an_instance_of_a_mapping_takes_a_young_snapshot_only_when_it_is_told_to(
    fleet: Fleet,
) -> None:
    mapping_id = await fleet.mapping()
    snapshot_id = await fleet.snapshot(mapping_id=mapping_id)
    young = await fleet.create(
        mapping_id=mapping_id, max_snapshot_age="PT1H", wrapper_type="ryugraph"
    )
    assert (young["snapshot_id"], young["status"], young["wrapper_type"]) == (
        snapshot_id,
        "starting",
        "ryugraph",
    )
    fresh = await fleet.ask(
        "POST",
        "/api/instances/from-mapping",
        expect=201,
        mapping_id=mapping_id,
        name="fresh",
        mapping_version=1,
    )
    newest = await fleet.create(mapping_id=mapping_id, max_snapshot_age="PT0S")
    assert len({snapshot_id, fresh["snapshot_id"], newest["snapshot_id"]}) == 3, (
        "no age at all is always a new one"
    )
    assert fresh["snapshot_id"] != snapshot_id
    assert fresh["status"] == "waiting_for_snapshot"
    assert len(await fleet.graphs.exports.of_snapshot(fresh["snapshot_id"])) == 1
    of_it = await fleet.ask("GET", f"/api/mappings/{mapping_id}/instances")
    assert {instance["id"] for instance in of_it} == {young["id"], fresh["id"], newest["id"]}


async def test_the_use_case_of_the_request_is_the_role_of_its_exports(fleet: Fleet) -> None:
    mapping_id = await fleet.mapping()
    async with fleet.transaction() as tx:
        await tx.connection.execute(
            "INSERT INTO penstock.data_source (name, type, owner, config, is_default) "
            "VALUES ('d', 'duckdb', 'ada', '{}', true)"
        )
    headers = {"Authorization": "Bearer ada", "X-Use-Case-Id": "fraud-desk"}
    answer = await fleet.http.post(
        "/api/instances", json={"name": "n", "mapping_id": mapping_id}, headers=headers
    )
    [job] = await fleet.graphs.exports.of_snapshot(answer.json()["data"]["snapshot_id"])
    async with fleet.transaction() as tx:
        payload = await tx.connection.fetchval(
            "SELECT payload FROM penstock.job WHERE job_id = $1", job.job_id
        )
    assert json.loads(payload)["starburst_role"] == "fraud-desk"


@pytest.mark.parametrize("code", ["DATA_LOAD_ERROR", "SCHEMA_CREATE_ERROR"])
async def test_a_failure_that_a_server_reports_keeps_its_cause_whatever_follows(
    fleet: Fleet, code: str
) -> None:
    fleet.tell(fail=code)
    created = await fleet.create()
    failed = await fleet.reaches(created["id"], "failed")

    async def cleared() -> bool:
        return not (await fleet.row(created["id"])).placed

    await until(cleared)
    again = await fleet.ask("GET", f"/api/instances/{created['id']}")
    for instance in (failed, again):
        assert (instance["error_code"], instance["error_message"], instance["failed_phase"]) == (
            code,
            "as told",
            "loading_data",
        )
    assert again["stack_trace"] == "Traceback: stand-in"
    assert (await fleet.ask("GET", f"/api/instances/{created['id']}", who="bob"))[
        "stack_trace"
    ] is None
    assert (await fleet.ask("GET", f"/api/instances/{created['id']}", who="eve"))[
        "stack_trace"
    ] is None
    assert (await fleet.ask("GET", f"/api/instances/{created['id']}", who="olga"))[
        "stack_trace"
    ] is not None
    assert again["progress"]["phase"] == "failed"
    assert await fleet.launcher.list() == []


async def test_a_server_that_ends_without_a_word_has_its_log_as_the_trace(fleet: Fleet) -> None:
    fleet.tell(exit=3)
    created = await fleet.create()
    instance = await fleet.reaches(created["id"], "failed")
    assert instance["error_code"] == "STARTUP_FAILED"
    assert "exit code 3" in instance["error_message"]
    assert "leaving without a word" in instance["stack_trace"]


async def test_a_running_server_that_dies_is_an_unexpected_termination(fleet: Fleet) -> None:
    instance = await fleet.running()
    assert (await fleet.through(instance, "/die", method="POST")).status_code == 503
    failed = await fleet.reaches(instance["id"], "failed")
    assert failed["error_code"] == "UNEXPECTED_TERMINATION"
    assert "signal 9" in failed["error_message"]
    assert (await fleet.through(instance, "/health")).json()["error"]["code"] == "INVALID_STATE"


async def test_a_server_that_takes_too_much_memory_is_said_to_have(fleet: Fleet) -> None:
    instance = await fleet.running()
    row = await fleet.row(instance["id"])
    await fleet.launcher.resize(row.handle, cpu_cores=1, memory_bytes=300 << 20)
    await fleet.through(instance, "/grow?mib=400", method="POST")
    failed = await fleet.reaches(instance["id"], "failed")
    assert failed["error_code"] == "OOM_KILLED"


async def test_an_algorithm_that_runs_blocks_the_end_unless_it_is_forced(fleet: Fleet) -> None:
    instance = await fleet.running()
    await fleet.through(instance, "/busy", method="POST", json={"busy": True})
    for path in (
        f"/api/instances/{instance['id']}/terminate",
        f"/api/instances/{instance['id']}/suspend",
    ):
        refused = await fleet.ask("POST", path, expect=409)
        assert refused["code"] == "SHUTDOWN_BLOCKED"
        assert refused["details"]["algorithm"] == "pagerank"
    await fleet.ask("DELETE", f"/api/instances/{instance['id']}", expect=409)
    assert (await fleet.row(instance["id"])).status == "running"
    assert (await fleet.through(instance, "/health")).status_code == 200
    await fleet.ask(
        "POST", f"/api/instances/{instance['id']}/terminate", force=True, reason="enough"
    )
    await fleet.ask("GET", f"/api/instances/{instance['id']}", expect=404)


async def test_a_suspended_instance_has_no_process_and_resumes_with_another(fleet: Fleet) -> None:
    instance = await fleet.running()
    before = (await fleet.through(instance, "/health")).json()["pid"]
    asleep = await fleet.ask("POST", f"/api/instances/{instance['id']}/suspend")
    assert asleep["status"] == "suspended"
    assert await fleet.launcher.list() == []
    refused = await fleet.through(instance, "/health")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "INVALID_STATE")
    assert (await fleet.ask("GET", "/api/instances/user/status"))["active_instances"] == 0
    await fleet.ask("POST", f"/api/instances/{instance['id']}/suspend", expect=409)
    assert (await fleet.ask("POST", f"/api/instances/{instance['id']}/resume"))[
        "status"
    ] == "resuming"
    awake = await fleet.reaches(instance["id"], "running")
    assert awake["url_slug"] == instance["url_slug"]
    assert (await fleet.through(instance, "/health")).json()["pid"] != before
    await fleet.ask("POST", f"/api/instances/{instance['id']}/resume", expect=409)


async def test_a_failed_instance_is_given_more_memory_and_resumed_from_its_snapshot(
    fleet: Fleet,
) -> None:
    instance = await fleet.running()
    place = f"/api/instances/{instance['id']}"
    row = await fleet.row(instance["id"])
    await fleet.launcher.resize(row.handle, cpu_cores=1, memory_bytes=300 << 20)
    await fleet.through(instance, "/grow?mib=400", method="POST")
    await fleet.reaches(instance["id"], "failed")
    refused = await fleet.through(instance, "/health")
    assert f"{place}/resume" in refused.json()["error"]["details"]["hint"]
    assert (await fleet.ask("PUT", f"{place}/memory", memory_gb=4))["memory_gb"] == 4
    resumed = await fleet.ask("POST", f"{place}/resume")
    assert (resumed["status"], resumed["error_code"], resumed["error_message"]) == (
        "resuming",
        None,
        None,
    )
    assert resumed["stack_trace"] is None
    again = await fleet.reaches(instance["id"], "running")
    assert (again["url_slug"], again["snapshot_id"]) == (
        instance["url_slug"],
        instance["snapshot_id"],
    )
    environment = (await fleet.through(instance, "/environment")).json()["environment"]
    assert environment["PENSTOCK_INSTANCE_MEMORY_BYTES"] == str(4 * 1024**3)
    events = await fleet.ask("GET", f"{place}/events")
    [failed] = [event for event in events if event["event_type"] == "failed"]
    assert failed["details"]["error_code"] == "OOM_KILLED"


async def test_a_resumed_instance_that_fails_again_has_the_new_cause(fleet: Fleet) -> None:
    fleet.tell(fail="DATA_LOAD_ERROR")
    instance = await fleet.create()
    await fleet.reaches(instance["id"], "failed")
    fleet.tell(fail="SCHEMA_CREATE_ERROR")
    await fleet.ask("POST", f"/api/instances/{instance['id']}/resume")
    failed = await fleet.reaches(instance["id"], "failed")
    assert failed["error_code"] == "SCHEMA_CREATE_ERROR"


async def test_what_has_no_snapshot_to_load_is_not_resumed(fleet: Fleet) -> None:
    fleet.tell(fail="DATA_LOAD_ERROR")
    instance = await fleet.create()
    await fleet.reaches(instance["id"], "failed")
    await fleet.ask("DELETE", f"/api/snapshots/{instance['snapshot_id']}")
    refused = await fleet.ask("POST", f"/api/instances/{instance['id']}/resume", expect=409)
    assert (refused["code"], "was deleted" in refused["message"]) == ("INVALID_STATE", True)
    waiting = await fleet.create(snapshot_id=await fleet.snapshot(ready=False))
    await fleet.graphs.exports.fail(
        waiting["snapshot_id"], actor="test", reason="Gone.", step="Person"
    )
    await fleet.reaches(waiting["id"], "failed")
    refused = await fleet.ask("POST", f"/api/instances/{waiting['id']}/resume", expect=409)
    assert refused["details"]["snapshot_status"] == "failed"
    assert "retry" in refused["details"]["hint"]


async def test_cores_and_memory_reach_the_process_and_memory_never_shrinks(fleet: Fleet) -> None:
    instance = await fleet.running(cpu_cores=1)
    place = f"/api/instances/{instance['id']}"
    assert len((await fleet.through(instance, "/environment")).json()["affinity"]) == 1
    assert (await fleet.ask("PUT", f"{place}/cpu", cpu_cores=8))["cpu_cores"] == 8

    async def wider() -> bool:
        return len((await fleet.through(instance, "/environment")).json()["affinity"]) == len(
            os.sched_getaffinity(0)
        )

    await until(wider)
    for cores, status in ((0, 422), (9, 422), (1, 200)):
        await fleet.ask("PUT", f"{place}/cpu", expect=status, cpu_cores=cores)
    for memory, status in ((1, 422), (33, 422), (2, 200), (32, 200), (31, 422)):
        await fleet.ask("PUT", f"{place}/memory", expect=status, memory_gb=memory)
    environment = (await fleet.through(instance, "/environment")).json()["environment"]
    assert environment["PENSTOCK_INSTANCE_MEMORY_BYTES"] == str(2 * 1024**3)
    await fleet.ask("POST", f"{place}/suspend")
    await fleet.ask("POST", f"{place}/resume")
    await fleet.reaches(instance["id"], "running")
    environment = (await fleet.through(instance, "/environment")).json()["environment"]
    assert environment["PENSTOCK_INSTANCE_MEMORY_BYTES"] == str(32 * 1024**3)
    assert not any(word in environment for word in ("PENSTOCK_DATABASE_URL", "PENSTOCK_SECRET_KEY"))


async def test_a_life_is_extended_from_now_and_never_shortened(fleet: Fleet) -> None:
    fleet.tell(hold=True)
    instance = await fleet.create(ttl="P2D", inactivity_timeout="PT30M")
    place = f"/api/instances/{instance['id']}/lifecycle"
    assert (instance["ttl"], instance["inactivity_timeout"]) == ("P2D", "PT30M")
    assert moment(instance["expires_at"]) - moment(instance["created_at"]) == timedelta(days=2)
    shorter = await fleet.ask("PUT", place, ttl="PT1H")
    assert (shorter["ttl"], shorter["expires_at"]) == ("PT1H", instance["expires_at"])
    longer = await fleet.ask("PUT", place, ttl="P5D")
    assert (
        timedelta(days=5)
        <= moment(longer["expires_at"]) - moment(instance["created_at"])
        < timedelta(days=5, minutes=1)
    )
    assert longer["inactivity_timeout"] == "PT30M"
    endless = await fleet.ask("PUT", place, ttl=None, inactivity_timeout=None)
    assert (endless["expires_at"], endless["ttl"], endless["inactivity_timeout"]) == (
        None,
        None,
        None,
    )
    for bad in ("P8D", "PT", "P", "-PT1H", "PT0S", "1 day"):
        await fleet.ask("PUT", place, ttl=bad, expect=422)
        await fleet.create(snapshot_id=instance["snapshot_id"], ttl=bad, expect=422)


async def test_lists_are_filtered_sorted_and_paged(fleet: Fleet) -> None:
    fleet.tell(hold=True)
    one = await fleet.create(name="alpha")
    two = await fleet.create(name="beta", who="bob", description="100%")
    cases = {
        "": {one["id"], two["id"]},
        "?owner=bob": {two["id"]},
        "?search=ALPH": {one["id"]},
        "?search=0%25": {two["id"]},
        "?status=running": set(),
        f"?snapshot_id={one['snapshot_id']}": {one["id"]},
        "?created_after=2100-01-01T00:00:00Z": set(),
        f"?created_after={two['created_at']}": {two["id"]},
        f"?created_before={one['created_at']}": {one["id"]},
    }
    for query, expected in cases.items():
        assert {
            instance["id"] for instance in await fleet.ask("GET", f"/api/instances{query}")
        } == expected, query
    for order, first in (("asc", one), ("desc", two)):
        answer = await fleet.ask("GET", f"/api/instances?sort_by=name&sort_order={order}&limit=1")
        assert [instance["id"] for instance in answer] == [first["id"]]
    events = f"/api/instances/{one['id']}/events"
    for path in ("/api/instances", events):
        await fleet.ask("GET", f"{path}?sort_by=nonsense", expect=422)
    event_page = await fleet.ask("GET", f"{events}?sort_by=created_at&sort_order=asc&limit=1")
    assert [event["event_type"] for event in event_page] == ["created"]
    renamed = await fleet.ask("PUT", f"/api/instances/{one['id']}", name="gamma", description="new")
    assert (renamed["name"], renamed["description"]) == ("gamma", "new")
    await fleet.ask("PUT", f"/api/instances/{one['id']}", who="bob", name="theirs", expect=403)
    await fleet.ask("POST", f"/api/instances/{one['id']}/terminate", who="bob", expect=403)
    await fleet.ask("PUT", f"/api/instances/{one['id']}", who="eve", name="admin's")


async def test_a_body_names_a_mapping_or_a_snapshot_and_not_both(fleet: Fleet) -> None:
    snapshot_id = await fleet.snapshot()
    await fleet.ask("POST", "/api/instances", name="n", expect=422)
    for body in (
        {"mapping_id": 1},
        {"max_snapshot_age": "PT1H"},
        {"wrapper_type": "oracle"},
        {"cpu_cores": 9},
    ):
        await fleet.create(snapshot_id=snapshot_id, expect=422, **body)
    await fleet.create(snapshot_id=10**9, expect=404)
    await fleet.create(mapping_id=10**9, expect=404)
    await fleet.create(snapshot_id=snapshot_id, name="", expect=422)
    await fleet.create(snapshot_id=snapshot_id, name="x" * 256, expect=422)
    fleet.tell(hold=True)
    instance = await fleet.create(snapshot_id=snapshot_id, name="x" * 255)
    for body in ({"name": "  "}, {"name": "a\x00b"}, {"description": "a\x00b"}):
        await fleet.create(snapshot_id=snapshot_id, expect=422, **body)
        await fleet.ask("PUT", f"/api/instances/{instance['id']}", expect=422, **body)
    await fleet.graphs.config.set_maintenance(enabled=True, message="later", actor="test")
    refused = await fleet.create(snapshot_id=snapshot_id, expect=503)
    assert refused["code"] == "MAINTENANCE"


async def test_two_control_planes_of_one_home_share_the_work_and_one_takes_over_from_the_other(
    database: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    async with sailing(database, home) as stays:
        async with sailing(database, home) as leaves:
            snapshot_id = await stays.snapshot()
            instances = await asyncio.gather(
                *(
                    control_plane.create(snapshot_id=snapshot_id)
                    for control_plane in (stays, leaves) * 2
                )
            )
            for instance in instances:
                await stays.reaches(instance["id"], "running")
                assert (await stays.through(instance, "/health")).json() == (
                    await leaves.through(instance, "/health")
                ).json()
            assert len(await stays.launcher.list()) == 4
        later = await stays.running(snapshot_id=snapshot_id)
        await stays.ask("POST", f"/api/instances/{later['id']}/terminate")
        await stays.ask("POST", f"/api/instances/{instances[0]['id']}/terminate")
        assert len(await stays.launcher.list()) == 3
        await sink(stays.launcher)


async def test_a_database_that_throws_everybody_out_costs_a_moment_and_no_instance(
    fleet: Fleet,
) -> None:
    before = await fleet.running()
    async with connected(fleet.dsn) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    async def back() -> bool:
        return (await fleet.http.get("/ready")).is_success

    await until(back)
    await fleet.running(snapshot_id=before["snapshot_id"])
    assert (await fleet.row(before["id"])).status == "running"
    assert len(await fleet.launcher.list()) == 2


async def test_an_instance_never_waits_for_a_snapshot_that_is_ready(
    database: str, tmp_path: Path
) -> None:
    sleeper = ("/bin/sleep", "600")
    async with sailing(database, tmp_path / "home", command=sleeper) as fleet:
        for _ in range(6):
            snapshot_id = await fleet.snapshot(ready=False)
            instance, _ = await asyncio.gather(
                fleet.create(snapshot_id=snapshot_id), fleet.finish(snapshot_id)
            )
            assert (await fleet.row(instance["id"])).status == "starting"
            await fleet.ask("DELETE", f"/api/instances/{instance['id']}?force=true")
        await sink(fleet.launcher)
