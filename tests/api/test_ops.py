"""Triggering loops, the system state, and retrying exports."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from penstock.graphs.snapshots.export_jobs import Submission
from penstock.graphs.snapshots.payloads import QUEUE, Entity, EntityExport
from penstock.kit.db import Db
from penstock.kit.errors import RateLimited
from penstock.operations.loop_status import LoopStatusStore
from tests.api.answers import error
from tests.api.desk import Desk, data_of, sitting
from tests.graphs.stand import shop, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.api.plane import Edge

OPS = "/api/ops"
TRIGGER = f"{OPS}/jobs/trigger"
LOOPS = {
    "reconcile",
    "lifecycle",
    "export_reconciliation",
    "schema_cache",
    "storage_cleanup",
    "resource_monitor",
}


@pytest.fixture
async def desk(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Desk]:
    async with sitting(database, edge, tmp_path / "home") as desk:
        yield desk


async def exported(
    desk: Desk, folder: Path, owner: str = "ann", name: str = "s"
) -> tuple[int, list[int]]:
    """A snapshot of two entities whose export jobs wait."""
    sources = desk.graphs.sources
    if not (existing := (await sources.page())[0]):
        existing = [
            await sources.add(
                name="shop", kind="duckdb", owner="ann", config=shop(folder), secrets={}
            )
        ]
    snapshot = await desk.graphs.snapshots.add(owner=owner, name=name)
    exports = [
        EntityExport(
            entity=Entity(job_type="node", name=label),
            sql="SELECT id FROM customers",
            columns=(),
            data_source_id=existing[0].data_source_id,
        )
        for label in ("Customer", "Item")
    ]
    jobs = await desk.graphs.exports.start(
        snapshot.snapshot_id, [Submission(wanted=export) for export in exports]
    )
    return snapshot.snapshot_id, [job.job_id for job in jobs]


async def listed(
    desk: Desk, path: str = f"{OPS}/export-jobs", **params: Any
) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = data_of(await desk.oz.get(path, params=params))["jobs"]
    return jobs


async def ran(desk: Desk, loop: str, after: str = "") -> bool:
    jobs = data_of(await desk.oz.get(f"{OPS}/jobs/status"))["jobs"]
    [job] = [job for job in jobs if job["name"] == loop]
    return bool(job["last_run"] and job["last_run"] > after and job["last_status"] == "success")


async def test_a_loop_is_triggered_runs_and_says_so(desk: Desk) -> None:
    body = {"job_name": "schema_cache", "reason": "A new table"}
    queued = data_of(await desk.oz.post(TRIGGER, json=body))
    assert queued["triggered_at"].endswith("Z")
    assert queued == body | {
        "triggered_at": queued["triggered_at"],
        "triggered_by": "oz",
        "status": "queued",
    }

    await until(partial(ran, desk, "schema_cache", after=queued["triggered_at"]), within=10)
    [entry] = data_of(await desk.oz.get("/api/audit", params={"subject": "loop:schema_cache"}))
    assert (entry["actor"], entry["detail"]) == ("oz", {"reason": "A new table"})


async def test_a_loop_is_triggered_once_a_minute_whichever_plane_is_asked(desk: Desk) -> None:
    async with Db(desk.dsn, size=2) as db:
        other = LoopStatusStore(db)
        asked = [other.ask("lifecycle", actor="ben", reason="r") for _ in range(4)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(not isinstance(answer, RateLimited) for answer in answers) == 1
        body = {"job_name": "lifecycle", "reason": "r"}
        refused = await desk.oz.post(TRIGGER, json=body)
        seconds = error(refused, 429, "RATE_LIMITED")["details"]["retry_after_seconds"]
        assert 1 <= seconds <= 60
        assert refused.headers["retry-after"] == str(seconds)
        data_of(await desk.oz.post(TRIGGER, json=body | {"job_name": "schema_cache"}))
        await desk.sql(
            "UPDATE penstock.background_loop"
            " SET triggered_at = triggered_at - interval '40 seconds'"
        )
        error(await desk.oz.post(TRIGGER, json=body), 429, "RATE_LIMITED")
        await desk.sql(
            "UPDATE penstock.background_loop"
            " SET triggered_at = triggered_at - interval '20 seconds'"
        )
        data_of(await desk.oz.post(TRIGGER, json=body))


UNFIT: list[dict[str, Any]] = [
    {"job_name": "nonsense", "reason": "r"},
    {"job_name": "lifecycle"},
    {"job_name": "lifecycle", "reason": ""},
    {"job_name": "lifecycle", "reason": "x" * 501},
    {"job_name": "'; DROP TABLE penstock.job; --", "reason": "r"},
]


async def test_what_is_no_loop_or_has_no_reason_is_refused(desk: Desk) -> None:
    for body in UNFIT:
        error(await desk.oz.post(TRIGGER, json=body), 422, "VALIDATION_FAILED")


async def test_every_loop_is_in_the_status(desk: Desk) -> None:
    jobs = data_of(await desk.oz.get(f"{OPS}/jobs/status"))["jobs"]
    assert {job["name"] for job in jobs} >= LOOPS
    assert all(set(job) == {"name", "next_run", "last_run", "last_status"} for job in jobs)


async def test_the_state_counts_everything_by_its_status(desk: Desk, tmp_path: Path) -> None:
    _, [job, _] = await exported(desk, tmp_path)
    await desk.snapshot(status="failed")
    await desk.instance(status="failed")
    await desk.instance(status="suspended", placed=True)
    await desk.parts.store.claim("w", [QUEUE], 1)
    assert data_of(await desk.oz.get(f"{OPS}/state")) == {
        "instances": {
            "total": 2,
            "by_status": {"failed": 1, "suspended": 1},
            "without_pod_name": 1,
        },
        "snapshots": {"total": 2, "by_status": {"creating": 1, "failed": 1}},
        "export_jobs": {"by_status": {"claimed": 1, "pending": 1}},
    }
    assert [j["id"] for j in await listed(desk, status="claimed")] == [job]


async def test_exports_are_listed_three_ways_with_filters(desk: Desk, tmp_path: Path) -> None:
    snapshot, [first, second] = await exported(desk, tmp_path)
    for path in ("/api/exports", "/api/export-jobs", f"{OPS}/export-jobs"):
        [newest, oldest] = await listed(desk, path)
        assert (newest["id"], oldest["id"]) == (second, first)
        assert oldest == {
            "id": first,
            "snapshot_id": snapshot,
            "entity_type": "node",
            "entity_name": "Customer",
            "status": "pending",
            "claimed_at": None,
            "claimed_by": None,
            "attempts": 0,
            "error_message": None,
        }
    assert [j["id"] for j in await listed(desk, sort_order="asc", limit=1)] == [first]
    assert await listed(desk, status="completed") == []
    assert await listed(desk, snapshot_id=snapshot + 1) == []
    page = (await desk.oz.get("/api/exports", params={"offset": 5})).json()
    assert (page["data"], page["meta"]["total"]) == ({"jobs": []}, 2)
    data_of(await desk.ann.get("/api/exports"))
    error(await desk.ada.get(f"{OPS}/export-jobs"), 403, "PERMISSION_DENIED")
    for wrong in ({"status": "odd"}, {"sort_by": "odd"}, {"snapshot_id": 0}, {"limit": 0}):
        error(await desk.oz.get("/api/exports", params=wrong), 422, "VALIDATION_FAILED")


async def test_an_export_is_cancelled_and_its_snapshot_brought_on_again(
    desk: Desk, tmp_path: Path
) -> None:
    snapshot, [first, second] = await exported(desk, tmp_path)
    error(await desk.ann.post(f"/api/exports/{first}/retry"), 409, "INVALID_STATE")
    cancelled = data_of(
        await desk.ann.post(f"/api/exports/{first}/cancel", json={"reason": "Wrong table"})
    )
    assert cancelled["status"] == "failed"
    assert "Wrong table" in cancelled["error_message"]
    assert (await desk.graphs.snapshots.get(snapshot)).status == "failed"
    again = data_of(await desk.ann.post(f"/api/exports/{first}/retry"))
    assert (again["entity_name"], again["status"]) == ("Customer", "pending")
    assert again["id"] > second
    assert (await desk.graphs.snapshots.get(snapshot)).status == "creating"
    assert {j["entity_name"] for j in await listed(desk, status="pending")} == {"Customer", "Item"}


async def test_exports_of_others_are_for_admins_and_operators(desk: Desk, tmp_path: Path) -> None:
    _, [job, _] = await exported(desk, tmp_path, owner="ann")
    for verb in ("cancel", "retry"):
        error(await desk.ben.post(f"/api/exports/{job}/{verb}"), 403, "PERMISSION_DENIED")
        error(await desk.ben.post(f"/api/exports/{job + 99}/{verb}"), 404, "RESOURCE_NOT_FOUND")
    data_of(await desk.ada.post(f"/api/exports/{job}/cancel"))
    data_of(await desk.oz.post(f"/api/exports/{job}/retry"))


async def test_the_length_of_exports_reaches_the_reconciliation(desk: Desk, tmp_path: Path) -> None:
    snapshot, [job, _] = await exported(desk, tmp_path)
    [loop] = [
        candidate for candidate in desk.parts.loops if candidate.name == "export_reconciliation"
    ]
    await desk.parts.store.claim("w", [QUEUE], 1)
    await desk.sql(
        "UPDATE penstock.live SET claimed_at = claimed_at - interval '61 s' WHERE job_id = $1", job
    )
    await loop.run_once()
    assert [j["id"] for j in await listed(desk, status="claimed")] == [job]
    data_of(await desk.oz.put("/api/config/export", json={"max_duration_seconds": 60}))
    await loop.run_once()
    assert (await desk.graphs.snapshots.get(snapshot)).status == "failed"


async def test_what_has_lived_its_time_is_ended_by_the_rules_of_a_delete_by_hand(
    desk: Desk, tmp_path: Path
) -> None:
    [loop] = [candidate for candidate in desk.parts.loops if candidate.name == "lifecycle"]
    await until(partial(ran, desk, "lifecycle"))
    past = datetime.now(UTC) - timedelta(seconds=1)
    place = desk.graphs.instances.launcher.place
    snapshot = await desk.snapshot("old", status="ready", prefix="ann/0/v0/1/", expires_at=past)
    needed = await desk.snapshot("needed", status="ready", expires_at=past)
    await desk.instance("asleep", status="suspended", snapshot_id=needed)
    await desk.instance("old", status="failed", snapshot_id=snapshot, place=place, expires_at=past)
    mapping = await desk.mapping("old", expires_at=past)
    data_of(
        await desk.ann.post(
            "/api/favorites", json={"resource_type": "mapping", "resource_id": mapping}
        ),
        201,
    )
    assert str(await loop.run_once()) == "Ended(instances=1, snapshots=1, mappings=1, failed=0)"
    assert [i["name"] for i in data_of(await desk.ann.get("/api/instances"))] == ["asleep"]
    assert [s["name"] for s in data_of(await desk.ann.get("/api/snapshots"))] == ["needed"]
    assert data_of(await desk.ann.get("/api/mappings")) == []
    assert data_of(await desk.ann.get("/api/favorites")) == []
    [job] = data_of(await desk.oz.get("/api/jobs", params={"kind": "erase"}))
    assert data_of(await desk.oz.get(f"/api/jobs/{job['id']}"))["payload"] == {
        "prefix": "ann/0/v0/1/"
    }


async def test_only_operators_may(desk: Desk) -> None:
    for somebody in (desk.ann, desk.ada):
        error(await somebody.post(TRIGGER, json={}), 403, "PERMISSION_DENIED")
        for what in ("jobs/status", "state"):
            error(await somebody.get(f"{OPS}/{what}"), 403, "PERMISSION_DENIED")
