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
from tests.api.running_api import Api, data_of, running_api
from tests.graphs.deployment import shop, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.api.control_plane import Edge

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
async def api(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(database, edge, tmp_path / "home") as api:
        yield api


async def exported(
    api: Api, folder: Path, owner: str = "ann", name: str = "s"
) -> tuple[int, list[int]]:
    """A snapshot of two entities whose export jobs wait."""
    sources = api.graphs.sources
    if not (existing := (await sources.page())[0]):
        existing = [
            await sources.add(
                name="shop", kind="duckdb", owner="ann", config=shop(folder), secrets={}
            )
        ]
    snapshot = await api.graphs.snapshots.add(owner=owner, name=name)
    exports = [
        EntityExport(
            entity=Entity(job_type="node", name=label),
            sql="SELECT id FROM customers",
            columns=(),
            data_source_id=existing[0].data_source_id,
        )
        for label in ("Customer", "Item")
    ]
    jobs = await api.graphs.exports.start(
        snapshot.snapshot_id, [Submission(wanted=export) for export in exports]
    )
    return snapshot.snapshot_id, [job.job_id for job in jobs]


async def listed(api: Api, path: str = f"{OPS}/export-jobs", **params: Any) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = data_of(await api.oz.get(path, params=params))["jobs"]
    return jobs


async def ran(api: Api, loop: str, after: str = "") -> bool:
    jobs = data_of(await api.oz.get(f"{OPS}/jobs/status"))["jobs"]
    [job] = [job for job in jobs if job["name"] == loop]
    return bool(job["last_run"] and job["last_run"] > after and job["last_status"] == "success")


async def test_a_loop_is_triggered_runs_and_says_so(api: Api) -> None:
    body = {"job_name": "schema_cache", "reason": "A new table"}
    queued = data_of(await api.oz.post(TRIGGER, json=body))
    assert queued["triggered_at"].endswith("Z")
    assert queued == body | {
        "triggered_at": queued["triggered_at"],
        "triggered_by": "oz",
        "status": "queued",
    }

    await until(partial(ran, api, "schema_cache", after=queued["triggered_at"]), within=10)
    [entry] = data_of(await api.oz.get("/api/audit", params={"subject": "loop:schema_cache"}))
    assert (entry["actor"], entry["detail"]) == ("oz", {"reason": "A new table"})


async def test_a_loop_is_triggered_once_a_minute_whichever_plane_is_asked(api: Api) -> None:
    async with Db(api.dsn, size=2) as db:
        other = LoopStatusStore(db)
        asked = [other.ask("lifecycle", actor="ben", reason="r") for _ in range(4)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(not isinstance(answer, RateLimited) for answer in answers) == 1
        body = {"job_name": "lifecycle", "reason": "r"}
        refused = await api.oz.post(TRIGGER, json=body)
        seconds = error(refused, 429, "RATE_LIMITED")["details"]["retry_after_seconds"]
        assert 1 <= seconds <= 60
        assert refused.headers["retry-after"] == str(seconds)
        data_of(await api.oz.post(TRIGGER, json=body | {"job_name": "schema_cache"}))
        await api.sql(
            "UPDATE penstock.background_loop"
            " SET triggered_at = triggered_at - interval '40 seconds'"
        )
        error(await api.oz.post(TRIGGER, json=body), 429, "RATE_LIMITED")
        await api.sql(
            "UPDATE penstock.background_loop"
            " SET triggered_at = triggered_at - interval '20 seconds'"
        )
        data_of(await api.oz.post(TRIGGER, json=body))


UNFIT: list[dict[str, Any]] = [
    {"job_name": "nonsense", "reason": "r"},
    {"job_name": "lifecycle"},
    {"job_name": "lifecycle", "reason": ""},
    {"job_name": "lifecycle", "reason": "x" * 501},
    {"job_name": "'; DROP TABLE penstock.job; --", "reason": "r"},
]


async def test_what_is_no_loop_or_has_no_reason_is_refused(api: Api) -> None:
    for body in UNFIT:
        error(await api.oz.post(TRIGGER, json=body), 422, "VALIDATION_FAILED")


async def test_every_loop_is_in_the_status(api: Api) -> None:
    jobs = data_of(await api.oz.get(f"{OPS}/jobs/status"))["jobs"]
    assert {job["name"] for job in jobs} >= LOOPS
    assert all(set(job) == {"name", "next_run", "last_run", "last_status"} for job in jobs)


async def test_the_state_counts_everything_by_its_status(api: Api, tmp_path: Path) -> None:
    _, [job, _] = await exported(api, tmp_path)
    await api.snapshot(status="failed")
    await api.instance(status="failed")
    await api.instance(status="suspended", placed=True)
    await api.services.store.claim("w", [QUEUE], 1)
    assert data_of(await api.oz.get(f"{OPS}/state")) == {
        "instances": {
            "total": 2,
            "by_status": {"failed": 1, "suspended": 1},
            "without_pod_name": 1,
        },
        "snapshots": {"total": 2, "by_status": {"creating": 1, "failed": 1}},
        "export_jobs": {"by_status": {"claimed": 1, "pending": 1}},
    }
    assert [j["id"] for j in await listed(api, status="claimed")] == [job]


async def test_exports_are_listed_three_ways_with_filters(api: Api, tmp_path: Path) -> None:
    snapshot, [first, second] = await exported(api, tmp_path)
    for path in ("/api/exports", "/api/export-jobs", f"{OPS}/export-jobs"):
        [newest, oldest] = await listed(api, path)
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
    assert [j["id"] for j in await listed(api, sort_order="asc", limit=1)] == [first]
    assert await listed(api, status="completed") == []
    assert await listed(api, snapshot_id=snapshot + 1) == []
    page = (await api.oz.get("/api/exports", params={"offset": 5})).json()
    assert (page["data"], page["meta"]["total"]) == ({"jobs": []}, 2)
    data_of(await api.ann.get("/api/exports"))
    error(await api.ada.get(f"{OPS}/export-jobs"), 403, "PERMISSION_DENIED")
    for wrong in ({"status": "odd"}, {"sort_by": "odd"}, {"snapshot_id": 0}, {"limit": 0}):
        error(await api.oz.get("/api/exports", params=wrong), 422, "VALIDATION_FAILED")


async def test_an_export_is_cancelled_and_its_snapshot_brought_on_again(
    api: Api, tmp_path: Path
) -> None:
    snapshot, [first, second] = await exported(api, tmp_path)
    error(await api.ann.post(f"/api/exports/{first}/retry"), 409, "INVALID_STATE")
    cancelled = data_of(
        await api.ann.post(f"/api/exports/{first}/cancel", json={"reason": "Wrong table"})
    )
    assert cancelled["status"] == "failed"
    assert "Wrong table" in cancelled["error_message"]
    assert (await api.graphs.snapshots.get(snapshot)).status == "failed"
    again = data_of(await api.ann.post(f"/api/exports/{first}/retry"))
    assert (again["entity_name"], again["status"]) == ("Customer", "pending")
    assert again["id"] > second
    assert (await api.graphs.snapshots.get(snapshot)).status == "creating"
    assert {j["entity_name"] for j in await listed(api, status="pending")} == {"Customer", "Item"}


async def test_exports_of_others_are_for_admins_and_operators(api: Api, tmp_path: Path) -> None:
    _, [job, _] = await exported(api, tmp_path, owner="ann")
    for verb in ("cancel", "retry"):
        error(await api.ben.post(f"/api/exports/{job}/{verb}"), 403, "PERMISSION_DENIED")
        error(await api.ben.post(f"/api/exports/{job + 99}/{verb}"), 404, "RESOURCE_NOT_FOUND")
    data_of(await api.ada.post(f"/api/exports/{job}/cancel"))
    data_of(await api.oz.post(f"/api/exports/{job}/retry"))


async def test_the_length_of_exports_reaches_the_reconciliation(api: Api, tmp_path: Path) -> None:
    snapshot, [job, _] = await exported(api, tmp_path)
    [loop] = [
        candidate for candidate in api.services.loops if candidate.name == "export_reconciliation"
    ]
    await api.services.store.claim("w", [QUEUE], 1)
    await api.sql(
        "UPDATE penstock.live SET claimed_at = claimed_at - interval '61 s' WHERE job_id = $1", job
    )
    await loop.run_once()
    assert [j["id"] for j in await listed(api, status="claimed")] == [job]
    data_of(await api.oz.put("/api/config/export", json={"max_duration_seconds": 60}))
    await loop.run_once()
    assert (await api.graphs.snapshots.get(snapshot)).status == "failed"


async def test_what_has_lived_its_time_is_ended_by_the_rules_of_a_delete_by_hand(
    api: Api, tmp_path: Path
) -> None:
    [loop] = [candidate for candidate in api.services.loops if candidate.name == "lifecycle"]
    await until(partial(ran, api, "lifecycle"))
    past = datetime.now(UTC) - timedelta(seconds=1)
    place = api.graphs.instances.launcher.place
    snapshot = await api.snapshot("old", status="ready", prefix="ann/0/v0/1/", expires_at=past)
    needed = await api.snapshot("needed", status="ready", expires_at=past)
    await api.instance("asleep", status="suspended", snapshot_id=needed)
    await api.instance("old", status="failed", snapshot_id=snapshot, place=place, expires_at=past)
    mapping = await api.mapping("old", expires_at=past)
    data_of(
        await api.ann.post(
            "/api/favorites", json={"resource_type": "mapping", "resource_id": mapping}
        ),
        201,
    )
    assert str(await loop.run_once()) == "Ended(instances=1, snapshots=1, mappings=1, failed=0)"
    assert [i["name"] for i in data_of(await api.ann.get("/api/instances"))] == ["asleep"]
    assert [s["name"] for s in data_of(await api.ann.get("/api/snapshots"))] == ["needed"]
    assert data_of(await api.ann.get("/api/mappings")) == []
    assert data_of(await api.ann.get("/api/favorites")) == []
    [job] = data_of(await api.oz.get("/api/jobs", params={"kind": "erase"}))
    assert data_of(await api.oz.get(f"/api/jobs/{job['id']}"))["payload"] == {
        "prefix": "ann/0/v0/1/"
    }


async def test_only_operators_may(api: Api) -> None:
    for somebody in (api.ann, api.ada):
        error(await somebody.post(TRIGGER, json={}), 403, "PERMISSION_DENIED")
        for what in ("jobs/status", "state"):
            error(await somebody.get(f"{OPS}/{what}"), 403, "PERMISSION_DENIED")
