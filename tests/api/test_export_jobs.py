"""The internal API of export workers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import pytest
from structlog.testing import capture_logs

from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.jobs.model import JobSpec
from penstock.kit.outbound import WITH_PRIVATE, OutboundPolicy
from penstock.kit.statement_digest import statement_digest
from tests.api.test_schema import resolved
from tests.graphs.deployment import (
    CUSTOMER,
    PURCHASED,
    Deployment,
    running_deployment,
    settings,
    shop,
)
from tests.jobs.conformance import Clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FACE = "/api/internal/export-jobs"
SNAPSHOTS = "/api/internal/snapshots"
NEXT_URI = "https://trino.example/v1/statement/executing/q1/y1/1"


@pytest.fixture
async def deployment(database: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with running_deployment(database, settings(tmp_path / "home")) as it:
        await it.graphs.sources.make_default(
            await it.source("duckdb", shop(tmp_path, customers=10)), actor="me"
        )
        yield it


@asynccontextmanager
async def clock(database: str) -> AsyncIterator[Clock]:
    connection = await asyncpg.connect(database)
    try:
        yield Clock(connection)
    finally:
        await connection.close()


async def claim(deployment: Deployment, **more: Any) -> list[dict[str, Any]]:
    answer = await deployment.ask("POST", f"{FACE}/claim", worker_id="w1", **more)
    assert answer["claimed"] == len(answer["jobs"])
    return list(answer["jobs"])


async def claim_one(deployment: Deployment) -> dict[str, Any]:
    [job] = await claim(deployment, limit=1)
    return job


async def pollable(deployment: Deployment) -> list[dict[str, Any]]:
    return list((await deployment.ask("GET", f"{FACE}/pollable?limit=50"))["jobs"])


async def update(
    deployment: Deployment,
    job: dict[str, Any],
    *,
    status_code: int = 200,
    method: str = "PATCH",
    **fields: Any,
) -> Any:
    body = {"attempt_id": job["attempt_id"], **fields}
    return await deployment.ask(method, f"{FACE}/{job['id']}", expect=status_code, **body)


async def submit(
    deployment: Deployment, job: dict[str, Any], *, pause: float = 0, **fields: Any
) -> Any:
    due = datetime.now(UTC) + timedelta(seconds=pause)
    fields = {
        "starburst_query_id": "q1",
        "next_uri": NEXT_URI,
        "next_poll_at": due.isoformat(),
        **fields,
    }
    return await update(deployment, job, status="submitted", **fields)


async def test_a_claimed_job_says_all_that_its_worker_needs_and_no_credential(
    deployment: Deployment,
) -> None:
    snapshot_id = await deployment.snapshot(
        CUSTOMER | {"starburst_catalog": "lake", "starburst_role": "analyst"}
    )
    job = await claim_one(deployment)
    prefix = f"{deployment.settings.storage_root}/me@example.com/0/v0/{snapshot_id}"
    assert job["gcs_path"] == f"{prefix}/nodes/Customer/"
    expected = {
        "snapshot_id": snapshot_id,
        "job_type": "node",
        "entity_name": "Customer",
        "status": "claimed",
        "sql": CUSTOMER["sql"],
        "column_names": ["id", "name", "age"],
        "starburst_catalog": "lake",
        "starburst_role": "analyst",
        "claimed_by": "w1",
        "lease_seconds": 600,
    }
    assert {name: job[name] for name in expected} == expected
    assert job["source"]["type"] == "duckdb"
    assert job["claimed_at"].endswith("Z")
    assert job["attempt_id"]
    assert await claim(deployment) == []


async def test_of_many_claimers_each_job_has_one(deployment: Deployment) -> None:
    await deployment.snapshot(*({**CUSTOMER, "entity_name": f"N{n}"} for n in range(20)))
    answers = await asyncio.gather(*(claim(deployment, limit=3) for _ in range(10)))
    claimed = [job["id"] for jobs in answers for job in jobs]
    assert len(claimed) == len(set(claimed)) == 20


async def test_a_waiting_claimer_is_woken_by_a_new_job(deployment: Deployment) -> None:
    waiting = asyncio.create_task(claim(deployment, wait_seconds=20))
    await deployment.snapshot(CUSTOMER)
    async with asyncio.timeout(15):
        [job] = await waiting
    assert job["entity_name"] == "Customer"


async def test_a_submitted_job_is_pollable_when_due_by_one_worker_at_a_time_and_never_claimable(
    deployment: Deployment,
) -> None:
    await deployment.snapshot(CUSTOMER)
    job = await claim_one(deployment)
    shown = await submit(deployment, job, poll_count=1, submitted_at="2026-01-15T10:30:00Z")
    assert (shown["status"], shown["starburst_query_id"], shown["next_uri"]) == (
        "submitted",
        "q1",
        NEXT_URI,
    )
    assert (shown["poll_count"], shown["submitted_at"]) == (1, "2026-01-15T10:30:00Z")
    assert await claim(deployment) == []
    answers = await asyncio.gather(*(pollable(deployment) for _ in range(5)))
    [due] = [job for jobs in answers for job in jobs]
    assert due["attempt_id"] != job["attempt_id"]
    assert (due["status"], due["next_uri"]) == ("submitted", NEXT_URI)
    again = await update(
        deployment,
        due,
        next_uri=f"{NEXT_URI}0",
        next_poll_at=datetime.now(UTC).isoformat(),
        poll_count=2,
    )
    assert (again["status"], again["next_uri"], again["poll_count"]) == (
        "submitted",
        f"{NEXT_URI}0",
        2,
    )
    assert again["submitted_at"] == "2026-01-15T10:30:00Z"
    [last] = await pollable(deployment)
    done = await update(deployment, last, status="completed", row_count=7, size_bytes=70)
    assert (done["status"], done["row_count"], done["size_bytes"]) == ("completed", 7, 70)
    assert (done["starburst_query_id"], done["next_uri"]) == ("q1", None)


async def test_a_job_that_is_not_due_is_not_pollable_and_no_pause_lets_a_query_be_abandoned(
    deployment: Deployment,
) -> None:
    await deployment.snapshot(CUSTOMER)
    shown = await submit(deployment, await claim_one(deployment), pause=86_400)
    assert await pollable(deployment) == []
    pause = datetime.fromisoformat(shown["next_poll_at"]) - datetime.now(UTC)
    assert timedelta(seconds=50) < pause <= timedelta(seconds=100)


async def test_a_submission_without_its_query_is_refused(deployment: Deployment) -> None:
    await deployment.snapshot(CUSTOMER)
    job = await claim_one(deployment)
    error = await update(deployment, job, status="submitted", status_code=422)
    assert error["code"] == "VALIDATION_FAILED"
    assert "Node Customer" in error["message"]
    assert (await deployment.ask("GET", f"{FACE}/{job['id']}"))["status"] == "claimed"


async def test_completed_needs_a_row_count_and_zero_is_one(deployment: Deployment) -> None:
    await deployment.snapshot(CUSTOMER)
    job = await claim_one(deployment)
    error = await update(deployment, job, status="completed", status_code=422)
    assert "row_count" in error["message"]
    done = await update(deployment, job, status="completed", row_count=0, method="PUT")
    assert (done["status"], done["row_count"]) == ("completed", 0)
    assert done["completed_at"] is not None
    repeated = await update(deployment, job, status="completed", row_count=0)
    assert repeated["row_count"] == 0


async def test_a_foreign_attempt_changes_nothing_and_is_told_so(deployment: Deployment) -> None:
    await deployment.snapshot(CUSTOMER)
    job = await claim_one(deployment)
    before = await deployment.ask("GET", f"{FACE}/{job['id']}")
    for fields in (
        {"status": "completed", "row_count": 1},
        {"status": "failed", "error_message": "no"},
        {"status": "submitted", "starburst_query_id": "q", "next_uri": NEXT_URI},
        {"rows_so_far": 5},
    ):
        error = await update(
            deployment, job | {"attempt_id": str(uuid4())}, status_code=409, **fields
        )
        assert error["code"] == "STALE_ATTEMPT"
        assert await deployment.ask("GET", f"{FACE}/{job['id']}") == before


async def test_a_lapsed_attempt_changes_nothing_and_another_worker_has_the_job(
    deployment: Deployment, database: str
) -> None:
    snapshot_id = await deployment.snapshot(CUSTOMER)
    old = await claim_one(deployment)
    async with clock(database) as time_:
        await time_.advance(601)
        await deployment.services.store.reap()
        new = await claim_one(deployment)
        assert new["attempts"] == 2
        error = await update(deployment, old, status="completed", row_count=1, status_code=409)
        assert error["code"] == "STALE_ATTEMPT"
        await update(deployment, new, status="completed", row_count=2)
    [job] = await deployment.jobs(snapshot_id)
    assert job["row_count"] == 2


async def test_rows_so_far_are_shown_while_the_job_runs(deployment: Deployment) -> None:
    await deployment.snapshot(CUSTOMER)
    shown = await update(deployment, await claim_one(deployment), rows_so_far=123)
    assert (shown["status"], shown["rows_so_far"]) == ("claimed", 123)


async def test_a_failed_job_fails_its_snapshot_names_the_step_and_cancels_what_waits(
    deployment: Deployment,
) -> None:
    snapshot_id = await deployment.snapshot(CUSTOMER, PURCHASED)
    job = await claim_one(deployment)
    await update(deployment, job, status="failed", error_message="QUERY_EXCEEDED_TIME_LIMIT")
    snapshot = await deployment.failed(snapshot_id)
    assert snapshot.failed_step == "Customer"
    assert snapshot.error_message == "Node Customer: QUERY_EXCEEDED_TIME_LIMIT"
    first, second = await deployment.jobs(snapshot_id)
    assert (first["error_message"], second["status"]) == ("QUERY_EXCEEDED_TIME_LIMIT", "failed")


async def test_only_export_jobs_are_found_here(deployment: Deployment) -> None:
    [other] = await deployment.services.store.enqueue([JobSpec(kind="probe")])
    for job_id in (other.job_id, 999_999, 2**50):
        assert (await deployment.ask("GET", f"{FACE}/{job_id}", expect=404))[
            "code"
        ] == "RESOURCE_NOT_FOUND"
        body = {"attempt_id": str(uuid4()), "rows_so_far": 1}
        assert (await deployment.ask("PATCH", f"{FACE}/{job_id}", expect=404, **body))[
            "code"
        ] == "RESOURCE_NOT_FOUND"


async def test_graph_servers_and_strangers_do_not_reach_the_workers_routes(
    deployment: Deployment,
) -> None:
    for method, path in (
        ("POST", f"{FACE}/claim"),
        ("GET", f"{FACE}/pollable"),
        ("GET", f"{FACE}/attempts"),
        ("GET", f"{FACE}/1"),
        ("PATCH", f"{FACE}/1"),
        ("POST", f"{SNAPSHOTS}/1/export-jobs"),
        ("GET", f"{SNAPSHOTS}/1/export-jobs"),
        ("PUT", f"{SNAPSHOTS}/1/status"),
        ("POST", "/api/internal/jobs/1/source"),
    ):
        answer = await deployment.http.request(
            method, path, headers={"X-Component": "wrapper"}, json={}
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "PERMISSION_DENIED"), (
            path
        )
        answer = await deployment.http.request(
            method, path, headers={"Authorization": "Bearer wrong"}, json={}
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "INVALID_TOKEN"), path


async def test_a_claim_takes_1_to_100_jobs(deployment: Deployment) -> None:
    for limit in (0, 101, "ten"):
        error = await deployment.ask(
            "POST", f"{FACE}/claim", expect=422, worker_id="w1", limit=limit
        )
        assert "limit" in error["message"]


async def test_jobs_are_made_once_and_for_a_snapshot_that_is_there(deployment: Deployment) -> None:
    assert (
        await deployment.ask("POST", f"{SNAPSHOTS}/77/export-jobs", expect=404, jobs=[CUSTOMER])
    )["code"] == ("RESOURCE_NOT_FOUND")
    snapshot_id = await deployment.snapshot()
    path = f"{SNAPSHOTS}/{snapshot_id}/export-jobs"
    answers = await asyncio.gather(
        *(deployment.http.post(path, json={"jobs": [CUSTOMER, PURCHASED]}) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert refused.json()["error"]["code"] == "JOBS_ALREADY_EXIST"
    created = next(answer for answer in answers if answer.status_code == 201).json()["data"]
    assert created["created"] == 2
    assert [job["status"] for job in created["jobs"]] == ["pending", "pending"]
    assert (await deployment.graphs.snapshots.get(snapshot_id)).status is SnapshotStatus.CREATING


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"entity_name": "1Customer"}, "entity_name"),
    ({"entity_name": "../../etc"}, "entity_name"),
    ({"job_type": "vertex"}, "job_type"),
    ({"sql": None}, "sql"),
    ({"columns": [{"name": "id", "type": "NUMBER"}]}, "type"),
    ({"next_uri": NEXT_URI}, "starburst_query_id"),
    ({"from_node": "Customer"}, "from_node"),
    ({"gcs_path": "gs://elsewhere/nodes/Customer/"}, "files belong into"),
    ({"data_source_id": 12345}, "data source"),
    ({"password": "hunter2"}, "password"),
]


async def test_a_job_that_cannot_be_is_refused_with_its_field_and_nothing_is_made(
    deployment: Deployment,
) -> None:
    snapshot_id = await deployment.snapshot()
    for job, field in WRONG:
        answer = await deployment.http.post(
            f"{SNAPSHOTS}/{snapshot_id}/export-jobs", json={"jobs": [CUSTOMER | job]}
        )
        assert answer.status_code in (404, 422), job
        assert field in answer.json()["error"]["message"], job
        assert "hunter2" not in answer.text
    assert await deployment.jobs(snapshot_id) == []


async def test_an_entity_is_exported_once(deployment: Deployment) -> None:
    snapshot_id = await deployment.snapshot()
    path = f"{SNAPSHOTS}/{snapshot_id}/export-jobs"
    error = await deployment.ask("POST", path, expect=422, jobs=[CUSTOMER, CUSTOMER])
    assert error["message"].startswith("Node Customer is listed twice")
    pair = {"from_node": "Customer", "to_node": "Item"}
    other = {"from_node": "Company", "to_node": "Item"}
    created = await deployment.ask(
        "POST", path, expect=201, jobs=[PURCHASED | pair, PURCHASED | other]
    )
    assert created["created"] == 2
    assert len({job["gcs_path"] for job in created["jobs"]}) == 2


async def test_jobs_are_listed_by_status(deployment: Deployment) -> None:
    snapshot_id = await deployment.snapshot(CUSTOMER, PURCHASED)
    job = await claim_one(deployment)
    path = f"{SNAPSHOTS}/{snapshot_id}/export-jobs"
    assert [j["id"] for j in (await deployment.ask("GET", f"{path}?status=claimed"))["jobs"]] == [
        job["id"]
    ]
    assert len((await deployment.ask("GET", f"{path}?status=pending"))["jobs"]) == 1
    assert [j["id"] for j in (await deployment.ask("GET", f"{path}?status=running"))["jobs"]] == [
        job["id"]
    ]
    assert (await deployment.ask("GET", f"{path}?status=completed"))["jobs"] == []
    assert (await deployment.ask("GET", f"{path}?status=lost", expect=422))[
        "code"
    ] == "VALIDATION_FAILED"
    assert (await deployment.ask("GET", f"{SNAPSHOTS}/88/export-jobs", expect=404))[
        "code"
    ] == "RESOURCE_NOT_FOUND"


async def test_jobs_whose_query_was_submitted_before_begin_submitted(
    deployment: Deployment,
) -> None:
    query = {"starburst_query_id": "q9", "next_uri": NEXT_URI, "status": "running"}
    snapshot_id = await deployment.snapshot(
        {"job_type": "node", "entity_name": "Customer", **query}
    )
    [listed] = await deployment.jobs(snapshot_id)
    assert (listed["status"], listed["mode"], listed["starburst_query_id"]) == (
        "submitted",
        "unload",
        "q9",
    )
    assert await claim(deployment) == []
    [due] = await pollable(deployment)
    assert due["next_uri"] == NEXT_URI


async def test_a_snapshot_takes_the_steps_it_has_and_no_other(deployment: Deployment) -> None:
    snapshot_id = await deployment.snapshot()
    path = f"{SNAPSHOTS}/{snapshot_id}/status"
    error = await deployment.ask("PUT", path, expect=409, status="failed", error_message="x")
    assert error["code"] == "INVALID_STATE_TRANSITION"
    assert await deployment.ask("PUT", path, status="creating", phase="exporting_nodes") == {
        "updated": True
    }
    assert await deployment.ask("PATCH", path, status="creating") == {"updated": False}
    error = await deployment.ask(
        "PUT", path, expect=409, status="ready", node_counts={"Customer": 1}
    )
    assert error["code"] == "INVALID_STATE_TRANSITION"
    assert "manifest" in error["message"]
    assert await deployment.ask(
        "PUT", path, status="failed", error_message="boom", failed_step="Customer"
    ) == {"updated": True}
    snapshot = await deployment.graphs.snapshots.get(snapshot_id)
    assert (snapshot.error_message, snapshot.failed_step) == ("boom", "Customer")
    error = await deployment.ask("PUT", path, expect=409, status="cancelled")
    assert error["code"] == "INVALID_STATE_TRANSITION"
    error = await deployment.ask(
        "POST", f"{SNAPSHOTS}/{snapshot_id}/export-jobs", expect=409, jobs=[CUSTOMER]
    )
    assert error["code"] == "INVALID_STATE_TRANSITION"
    assert (await deployment.ask("PUT", f"{SNAPSHOTS}/99/status", expect=404, status="failed"))[
        "code"
    ] == ("RESOURCE_NOT_FOUND")


async def test_a_snapshot_that_is_cancelled_ends_its_jobs_and_their_attempts(
    deployment: Deployment,
) -> None:
    snapshot_id = await deployment.snapshot(CUSTOMER, PURCHASED)
    job = await claim_one(deployment)
    assert await deployment.ask("PUT", f"{SNAPSHOTS}/{snapshot_id}/status", status="cancelled") == {
        "updated": True
    }
    assert [j["status"] for j in await deployment.jobs(snapshot_id)] == ["failed", "failed"]
    assert (await update(deployment, job, status="completed", row_count=1, status_code=409))[
        "code"
    ] == "STALE_ATTEMPT"
    assert (await deployment.graphs.snapshots.get(snapshot_id)).status is SnapshotStatus.CANCELLED


async def test_what_opens_a_source_is_told_to_the_attempt_that_holds_the_job_and_to_nobody_else(
    deployment: Deployment, database: str
) -> None:
    secret = "a-password-for-nobody"
    config = {"database": "d", "user": "u", "host": "127.0.0.1"}
    source = await deployment.source("postgres", config, {"password": secret})
    await deployment.snapshot(CUSTOMER | {"data_source_id": source})
    job = await claim_one(deployment)
    assert secret not in str(job)
    path = f"/api/internal/jobs/{job['id']}/source"
    with capture_logs() as logs:
        answer = await deployment.http.post(path, json={"attempt_id": job["attempt_id"]})
    [event] = [event for event in logs if event["event"] == "statement"]
    facts = {
        name: event[name] for name in ("surface", "author", "job_id", "kind", "data_source_id")
    }
    assert facts == {
        "surface": "job",
        "author": "me@example.com",
        "job_id": job["id"],
        "kind": "export",
        "data_source_id": source,
    }
    assert event["statement_sha256"] == statement_digest(CUSTOMER["sql"])
    opening = answer.json()["data"]
    outbound = opening.pop("outbound")
    assert opening == {"type": "postgres", "config": config, "secrets": {"password": secret}}
    assert OutboundPolicy.from_wire(outbound) == WITH_PRIVATE
    assert answer.headers["Cache-Control"] == "no-store"
    error = await deployment.ask("POST", path, expect=409, attempt_id=str(uuid4()))
    assert error["code"] == "STALE_ATTEMPT"
    await update(deployment, job, status="failed", error_message="over")
    error = await deployment.ask("POST", path, expect=409, attempt_id=job["attempt_id"])
    assert error["code"] == "STALE_ATTEMPT"
    stored = await _everything(database)
    assert secret not in stored
    assert (
        await deployment.ask(
            "POST", "/api/internal/jobs/4711/source", expect=404, attempt_id=str(uuid4())
        )
    )["code"]


async def _everything(database: str) -> str:
    connection = await asyncpg.connect(database)
    try:
        tables = ("job", "live", "outcome", "attempt", "job_group", "audit")
        return "".join(
            [str(await connection.fetch(f"SELECT t::text FROM penstock.{t} t")) for t in tables]
        )
    finally:
        await connection.close()


async def test_every_operation_of_the_face_is_described(deployment: Deployment) -> None:
    schema = (await deployment.http.get("/api/openapi.json")).json()
    ours = {
        path: operations
        for path, operations in schema["paths"].items()
        if path.startswith((FACE, SNAPSHOTS))
    }
    assert len(ours) == 6
    for path, methods in ours.items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert {"401", "403", "422", "503"} <= set(operation["responses"]), (method, path)
            for part in ("requestBody", "responses"):
                assert part not in operation or "example" in resolved(schema, operation[part]), (
                    method,
                    path,
                    part,
                )
