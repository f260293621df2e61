from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import asyncpg
import httpx2
import pytest
from prometheus_client import CollectorRegistry

from penstock.jobs.model import Ending, Fence, Parking, Status, Succeeded
from penstock.kit.loop import LoopMetrics
from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from penstock.wiring.job_kinds import default_kinds
from penstock.wiring.maintenance import keeping
from penstock.wiring.settings import Settings
from tests.api.control_plane import ANALYST, OPERATOR, Edge, plane
from tests.maintenance.tables import LATER, SampleTable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.api.services import Maintenance, Services

COMPACT = {"name": "rewrite_data_files", "force": True}


@asynccontextmanager
async def with_tables(database: str, folder: Path) -> AsyncIterator[Services]:
    settings = Settings(
        home=folder, catalogs={"lake": {"warehouse": (folder / "warehouse").as_uri()}}
    )
    async with plane(database) as services:
        for kind in default_kinds():
            if kind.name not in services.store.kinds:
                services.store.kinds.add(kind)
        db = services.store._db
        async with keeping(
            settings, db, services.store, LoopMetrics(CollectorRegistry())
        ) as maintenance:
            yield replace(services, maintenance=maintenance)


@pytest.fixture
async def tables(database: str, tmp_path: Path) -> AsyncIterator[Services]:
    async with with_tables(database, tmp_path) as services:
        yield services


@pytest.fixture
def maintenance(tables: Services) -> Maintenance:
    assert tables.maintenance is not None
    return tables.maintenance


@pytest.fixture
async def sample(maintenance: Maintenance) -> SampleTable:
    return await asyncio.to_thread(
        lambda: SampleTable(maintenance.service.pool.get("lake")).create()
    )


@pytest.fixture
async def http(
    edge: Edge, tables: Services, sample: SampleTable
) -> AsyncIterator[httpx2.AsyncClient]:
    with edge.showing(tables) as url:
        headers = {"Authorization": f"Bearer {OPERATOR}"}
        async with httpx2.AsyncClient(
            base_url=url, timeout=30, trust_env=False, headers=headers
        ) as client:
            yield client


PATH = "/tables/shop/orders"


@pytest.mark.parametrize("prefix", ["", "/api"])
async def test_maintenance_is_taken_with_its_lock_and_a_second_one_names_the_holder(
    http: httpx2.AsyncClient, prefix: str
) -> None:
    body = {"actions": ["rewrite_manifests", "expire_snapshots"], "reason": "because"}
    taken = await http.post(f"{prefix}{PATH}/maintenance", json=body)
    job = taken.json()["data"]
    assert taken.status_code == 202
    assert (taken.headers["Location"], taken.headers["Retry-After"]) == (
        f"/api/jobs/{job['id']}",
        "30",
    )
    assert job["lock"] == {"key": "table:lake.shop.orders", "held": True}
    assert [a["name"] for a in job["payload"]["actions"]] == [
        "expire_snapshots",
        "rewrite_manifests",
    ]
    again = await http.post(f"{prefix}{PATH}/maintenance", json=body)
    error = again.json()["error"]
    assert (again.status_code, error["code"]) == (409, "RESOURCE_LOCKED")
    assert error["details"]["holder_job_id"] == job["id"]
    await http.post(f"/api/jobs/{job['id']}/cancel")
    assert (await http.post(f"{prefix}{PATH}/maintenance", json=body)).status_code == 202
    seen = (await http.get(f"{prefix}{PATH}/history")).json()
    assert [e["status"] for e in seen["data"]] == ["queued", "cancelled"]


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (PATH, {"actions": []}, 400, "UNKNOWN_ACTION"),
        (PATH, {"actions": ["vacuum"]}, 400, "UNKNOWN_ACTION"),
        (
            PATH,
            {"actions": [{"name": "rewrite_data_files", "max_files": 0}]},
            422,
            "VALIDATION_FAILED",
        ),
        (PATH, {"actions": ["expire_snapshots"], "colour": 1}, 422, "VALIDATION_FAILED"),
        (PATH, {"actions": ["expire_snapshots"], "engine": "abacus"}, 422, "MAINTENANCE_REFUSED"),
        (PATH, {"actions": ["expire_snapshots"], "catalog": "nowhere"}, 404, "RESOURCE_NOT_FOUND"),
        ("/tables/shop/nothing", {"actions": ["expire_snapshots"]}, 404, "RESOURCE_NOT_FOUND"),
        ("/tables/nowhere/orders", {"actions": ["expire_snapshots"]}, 404, "RESOURCE_NOT_FOUND"),
        ("/tables/shop/a%20b", {"actions": ["expire_snapshots"]}, 422, "VALIDATION_FAILED"),
    ],
)
async def test_what_cannot_be_is_refused_and_locks_nothing(
    http: httpx2.AsyncClient, path: str, body: dict[str, object], status: int, code: str
) -> None:
    answer = await http.post(f"{path}/maintenance", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert (await http.get("/api/jobs")).json()["meta"]["total"] == 0


async def test_while_the_system_drains_nothing_is_taken_not_even_nonsense(
    http: httpx2.AsyncClient,
) -> None:
    await http.put("/api/drain", json={"draining": True, "reason": "upgrade"})
    for actions in (["expire_snapshots"], []):
        answer = await http.post(f"{PATH}/maintenance", json={"actions": actions})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "DRAINING")


async def test_the_routes_are_described(http: httpx2.AsyncClient) -> None:
    paths = (await http.get("/api/openapi.json")).json()["paths"]
    assert {
        "/tables/{db}/{table}/maintenance",
        "/api/tables/{db}/{table}/maintenance",
    } <= paths.keys()


async def test_analysts_look_and_do_not_touch(http: httpx2.AsyncClient) -> None:
    http.headers["Authorization"] = f"Bearer {ANALYST}"
    assert (await http.get(f"{PATH}/health")).status_code == 200
    assert (
        await http.post(f"{PATH}/maintenance", json={"actions": ["expire_snapshots"]})
    ).status_code == 403


async def test_a_failing_audit_does_not_fail_the_request(
    http: httpx2.AsyncClient, database: str
) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute("DROP TABLE penstock.audit")
    await connection.close()
    assert (
        await http.post(f"{PATH}/maintenance", json={"actions": ["expire_snapshots"]})
    ).status_code == 202


async def test_tables_are_listed_by_their_health_and_filtered(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/tables")).json()["data"] == []
    assert (await http.post("/tables/refresh")).json()["data"] == {
        "seen": 1,
        "failed": 0,
        "forgotten": 0,
        "unavailable": [],
    }
    [listed] = (await http.get("/tables?catalog=lake&db=shop&enabled=true&health=healthy")).json()[
        "data"
    ]
    assert (listed["table"], listed["score"], listed["facts"]["data_files"]) == ("orders", 100, 6)
    assert (await http.get("/tables?health=critical")).json()["meta"]["total"] == 0
    [fresh] = (await http.get("/tables/cache-status")).json()["data"]["catalogs"]
    assert (fresh["catalog"], fresh["tables"], fresh["failed"]) == ("lake", 1, 0)


async def test_facts_and_health_say_which_tier_answered(http: httpx2.AsyncClient) -> None:
    facts = (await http.get(f"{PATH}/status?tier=metadata")).json()["data"]["facts"]
    assert (facts["tier"], facts["data_files"], facts["manifests"]) == ("metadata", 6, None)
    health = (await http.get(f"{PATH}/health?tier=storage")).json()["data"]
    assert (health["tier"], health["score"], health["level"]) == ("storage", 100, "healthy")


async def test_a_plan_names_files_and_bytes_and_changes_nothing(
    http: httpx2.AsyncClient, sample: SampleTable
) -> None:
    [planned] = (await http.post(f"{PATH}/plan", json={"actions": [COMPACT]})).json()["data"][
        "outcomes"
    ]
    assert (planned["status"], planned["rewritten_files"], len(planned["files"])) == (
        "planned",
        6,
        6,
    )
    assert planned["rewritten_bytes"] > 0
    assert await asyncio.to_thread(sample.operations) == ["append"] * 6


async def test_a_swap_needs_the_fence_and_the_pointer_as_it_was_seen(
    http: httpx2.AsyncClient,
    tables: Services,
    worker_headers: dict[str, str],
    sample: SampleTable,
) -> None:
    job = (await http.post(f"{PATH}/maintenance", json={"actions": ["expire_snapshots"]})).json()[
        "data"
    ]
    [claimed] = await tables.store.claim("here", ["maintenance"], 1)
    fence = {"attempt_id": str(claimed.fence.attempt_id)}
    base = f"/api/internal/maintenance/{job['id']}"
    opened = (await http.post(f"{base}/catalog", json=fence, headers=worker_headers)).json()["data"]
    assert (opened["shared"], opened["uri"]) == (True, None)
    pointer = (await http.post(f"{base}/pointer", json=fence, headers=worker_headers)).json()[
        "data"
    ]
    old = pointer["metadata_location"]
    assert old == await asyncio.to_thread(lambda: sample.table.metadata_location)

    async def swap(old: str, new: str) -> httpx2.Response:
        return await http.post(
            f"{base}/swap", json={**fence, "old": old, "new": new}, headers=worker_headers
        )

    assert (await swap("elsewhere", "x")).json()["data"] == {"moved": False}
    for _ in range(2):
        assert (await swap(old, old + "x")).json()["data"] == {"moved": True}
    assert (await swap(old + "x", old)).json()["data"] == {"moved": True}
    outcome = {"action": "expire_snapshots", "status": "completed", "deleted_files": 3}
    for _ in range(2):
        await http.post(
            f"{base}/actions", json={**fence, "outcome": outcome}, headers=worker_headers
        )
    await http.post(f"/api/jobs/{job['id']}/cancel")
    lost = await swap(old, old + "y")
    assert (lost.status_code, lost.json()["error"]["code"]) == (409, "STALE_ATTEMPT")
    assert await asyncio.to_thread(lambda: sample.table.metadata_location) == old
    [action] = (await http.get(f"/api/jobs/{job['id']}/actions")).json()["data"]
    assert (action["action"], action["status"], action["result"]["deleted_files"]) == (
        "expire_snapshots",
        "completed",
        3,
    )


@pytest.fixture
def worker_headers() -> dict[str, str]:
    from tests.api.control_plane import SERVICE

    return {"Authorization": f"Bearer {SERVICE}", "X-Component": "worker"}


async def test_policies_are_replaced_as_a_whole_and_the_planner_asks_for_what_is_due(
    http: httpx2.AsyncClient, maintenance: Maintenance, tables: Services
) -> None:
    assert (await maintenance.planner.run_once()).assessed == 0
    policies = [
        {"name": "nobody", "pattern": "lake.other.*", "health_below": 100},
        {
            "name": "all",
            "pattern": "lake.*",
            "every_seconds": 3600,
            "actions": ["expire_snapshots"],
        },
    ]
    put = await http.put("/api/maintenance/policies", json={"policies": policies})
    assert [p["name"] for p in put.json()["data"]["policies"]] == ["nobody", "all"]
    advised = (await http.get(f"{PATH}/recommendation")).json()["data"]
    assert (advised["policy"], advised["due"], advised["cadence_seconds"]) == (
        "all",
        "never maintained",
        3600,
    )
    done = await maintenance.planner.run_once()
    assert (done.assessed, done.submitted, done.healthy) == (1, 1, 0)
    assert (await maintenance.planner.run_once()).skipped == 1
    assert (await http.get(f"{PATH}/recommendation")).json()["data"]["skipped"] == "under way"
    [claimed] = await tables.store.claim("here", ["maintenance"], 1)
    fence = Fence(job_id=claimed.job_id, attempt_id=claimed.fence.attempt_id)
    await tables.store.finish([Ending(fence=fence, outcome=Succeeded())])
    assert (await maintenance.planner.run_once()).healthy == 1
    runs = (await http.get("/api/maintenance/runs")).json()["data"]
    assert [(r["submitted"], r["completed"]) for r in runs] == [(0, 0), (0, 0), (1, 1)]
    assert [e["policy"] for e in (await http.get(f"{PATH}/history")).json()["data"]] == ["all"]


async def test_the_planner_backs_off_after_failures(
    http: httpx2.AsyncClient, maintenance: Maintenance, tables: Services, move_time
) -> None:
    await http.put(
        "/api/maintenance/policies",
        json={"policies": [{"name": "all", "pattern": "*", "every_seconds": 300}]},
    )
    await maintenance.planner.run_once()
    job = (await http.get("/api/jobs")).json()["data"][0]
    await http.post(f"/api/jobs/{job['id']}/cancel")
    assert (await maintenance.planner.run_once()).skipped == 1
    assert (await http.get(f"{PATH}/recommendation")).json()["data"]["skipped"] == "backs off"
    await move_time("61 minutes")
    assert (await maintenance.planner.run_once()).submitted == 1


@dataclass(frozen=True)
class At:
    at: datetime

    def now(self) -> datetime:
        return self.at


async def test_outside_its_window_a_policy_asks_for_nothing(
    http: httpx2.AsyncClient, maintenance: Maintenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = {"from": "22:00", "to": "06:00"}
    policy = {
        "name": "nights",
        "pattern": "*",
        "every_seconds": 300,
        "window": window,
        "zone": "Europe/Vienna",
    }
    await http.put("/api/maintenance/policies", json={"policies": [policy]})
    monkeypatch.setattr(maintenance.planner, "_clock", At(datetime(2026, 7, 1, 4, 0, tzinfo=UTC)))
    done = await maintenance.planner.run_once()
    assert (done.assessed, done.skipped, done.submitted) == (1, 1, 0)
    assert (await http.get(f"{PATH}/recommendation")).json()["data"][
        "skipped"
    ] == "outside its window"
    monkeypatch.setattr(maintenance.planner, "_clock", At(datetime(2026, 7, 1, 3, 59, tzinfo=UTC)))
    assert (await maintenance.planner.run_once()).submitted == 1


async def test_commits_of_others_since_the_last_time_are_a_trigger(
    http: httpx2.AsyncClient, maintenance: Maintenance, tables: Services, sample: SampleTable
) -> None:
    def expire_and_append() -> None:
        keep_one = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
        assert sample.run(keep_one, now=lambda: LATER).expired_snapshots
        sample.append(200, 1)

    async def planned() -> int:
        return (await maintenance.planner.run_once()).submitted

    policy = {"name": "busy", "pattern": "*", "commits": 3, "actions": ["expire_snapshots"]}
    await http.put("/api/maintenance/policies", json={"policies": [policy]})
    assert await planned() == 1, "six commits, and never maintained"
    [claimed] = await tables.store.claim("here", ["maintenance"], 1)
    await tables.store.finish([Ending(fence=claimed.fence, outcome=Succeeded())])
    assert await planned() == 0
    for start in (100, 110):
        await asyncio.to_thread(sample.append, start, 1)
    await asyncio.to_thread(sample.run, COMPACT)
    assert await planned() == 0, "two of others, and one of ours"
    await asyncio.to_thread(expire_and_append)
    assert await planned() == 0, "what has expired is not counted"
    for start in (210, 220):
        await asyncio.to_thread(sample.append, start, 1)
    assert await planned() == 1


async def test_of_two_requests_at_once_one_is_taken_and_the_other_names_it(
    http: httpx2.AsyncClient,
) -> None:
    body = {"actions": ["expire_snapshots"]}
    answers = await asyncio.gather(*(http.post(f"{PATH}/maintenance", json=body) for _ in range(2)))
    taken, refused = sorted(answers, key=lambda answer: answer.status_code)
    assert (taken.status_code, refused.status_code) == (202, 409)
    assert refused.json()["error"]["details"]["holder_job_id"] == taken.json()["data"]["id"]


async def test_the_lock_of_a_worker_that_vanished_is_freed_when_its_attempts_are_used_up(
    http: httpx2.AsyncClient, tables: Services, move_time
) -> None:
    """Three times a minute and a half, not half an hour; until then the job keeps its table and is
    run again."""
    body = {"actions": ["expire_snapshots"]}
    job = (await http.post(f"{PATH}/maintenance", json=body)).json()["data"]
    for attempt in range(1, 4):
        [claimed] = await tables.store.claim("gone", ["maintenance"], 1)
        assert (claimed.job_id, claimed.attempt_no) == (job["id"], attempt)
        await move_time(f"{attempt * 100 - 20} seconds")
        await tables.store.reap()
        assert (await http.post(f"{PATH}/maintenance", json=body)).status_code == 409
        await move_time(f"{attempt * 100} seconds")
        await tables.store.reap()
    view = await tables.store.job(job["id"])
    assert (view.status, view.error["code"]) == (Status.FAILED, "ATTEMPTS_USED_UP")
    assert (await http.post(f"{PATH}/maintenance", json=body)).status_code == 202


@pytest.mark.parametrize(
    "policy",
    [
        {"name": "x", "pattern": "*", "actions": ["vacuum"]},
        {"name": "x", "pattern": "*", "zone": "Nowhere/Land"},
        {"name": "x", "pattern": "*", "every_seconds": 299},
        {"name": "x", "pattern": "*", "window": {"from": "25:00", "to": "26:00"}},
    ],
)
async def test_a_policy_that_cannot_be_is_refused(
    http: httpx2.AsyncClient, policy: dict[str, object]
) -> None:
    assert (
        await http.put("/api/maintenance/policies", json={"policies": [policy]})
    ).status_code in (400, 422)
    assert (await http.get("/api/maintenance/policies")).json()["data"]["policies"] == []


async def test_another_client_reads_writes_and_is_maintained_through_our_rest_catalog(
    http: httpx2.AsyncClient, sample: SampleTable, maintenance: Maintenance
) -> None:
    config = CatalogConfig(
        name="lake",
        type="rest",
        uri=f"{http.base_url}/api/iceberg/lake",
        properties={"token": OPERATOR},
    )

    def elsewhere() -> tuple[int, list[str]]:
        far = SampleTable(open_catalog(config), ("shop", "far"))
        assert far.catalog.list_tables("shop") == [("shop", "orders")]
        far.create(files=3, partitioned=True)
        assert far.run({**COMPACT, "min_input_files": 2}).status is Ended.COMPLETED
        return len(far.ids()), far.operations()

    assert await asyncio.to_thread(elsewhere) == (30, ["append"] * 3 + ["replace"])
    assert len(await asyncio.to_thread(SampleTable(sample.catalog, ("shop", "far")).ids)) == 30
    lost = await http.get("/api/iceberg/lake/v1/namespaces/shop/tables/nothing")
    assert (lost.status_code, lost.json()["error"]["type"]) == (404, "NoSuchTableException")
    stale = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}],
        "updates": [],
    }
    refused = await http.post("/api/iceberg/lake/v1/namespaces/shop/tables/orders", json=stale)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, 409)


async def test_a_maintenance_client_reads_the_status_in_its_own_words(
    http: httpx2.AsyncClient, tables: Services
) -> None:
    """Beside ours, in the answer to its request, at the address that this names, and in the table's
    history."""

    async def shown() -> set[tuple[str, str]]:
        job = (await http.get(location)).json()["data"]
        [entry] = (await http.get(f"{PATH}/history")).json()["data"]
        return {(one["status"], one["maintenance_status"]) for one in (job, entry)}

    asked = await http.post(f"{PATH}/maintenance", json={"actions": ["expire_snapshots"]})
    location, job = asked.headers["Location"], asked.json()["data"]
    assert (job["status"], job["maintenance_status"]) == ("queued", "pending")
    assert await shown() == {("queued", "pending")}
    [claimed] = await tables.store.claim("here", ["maintenance"], 1)
    assert await shown() == {("running", "running")}
    await tables.store.park([Parking(fence=claimed.fence, state={}, wake_in=0)])
    assert await shown() == {("parked", "running")}
    [claimed] = await tables.store.claim("here", ["maintenance"], 1)
    await tables.store.finish([Ending(fence=claimed.fence, outcome=Succeeded())])
    assert await shown() == {("succeeded", "completed")}
    for filters in ({"status": "completed"}, {"status": "succeeded"}):
        listed = (await http.get("/api/jobs", params=filters | {"kind": "maintenance"})).json()[
            "data"
        ]
        assert [one["id"] for one in listed] == [job["id"]]
