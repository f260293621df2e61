"""A worker or control plane killed at any step of a run: others finish it, and the evidence is the
same."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.graphs.deployment import (
    TOKEN,
    Deployment,
    connected,
    postgres,
    postgres_secrets,
    running_deployment,
    settings,
    until,
)
from tests.reconcile.crashing_process import CONTROL_PLANE, QUEUES, WORKER
from tests.servers.process import free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TIMEOUT = 60
RULES = [{"name": "exact", "conditions": [{"left": "ref", "op": "eq", "right": "ref"}]}]
TABLES = {"left": "invoices", "right": "payments"}
SOURCES = {
    side: {"source": "db", "table": table, "primary_key": ["id"]} for side, table in TABLES.items()
}
ORDER = {
    "recipe": {"name": "kill", "sources": SOURCES, "rules": RULES},
    "staging": {"chunk_threshold_rows": 200},
}


class ProcessController:
    def __init__(self, process: asyncio.subprocess.Process, environment: dict[str, str]) -> None:
        self._process = process
        self._environment = environment

    async def start(self, role: str, step: str | None = None, **environment: str) -> int:
        return await self._do(
            do="start", role=role, step=step, environment=self._environment | environment
        )

    async def ended(self, pid: int) -> int:
        return await self._do(do="wait", pid=pid)

    async def stop(self, pid: int) -> int:
        return await self._do(do="stop", pid=pid)

    async def _do(self, **command: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        answer = await asyncio.wait_for(self._process.stdout.readline(), TIMEOUT)
        return int(json.loads(answer))


@pytest.fixture
async def deployment(database: str, warehouse: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with connected(warehouse) as connection:
        await connection.execute(
            "CREATE TABLE invoices AS SELECT i AS id, 'R' || i AS ref"
            " FROM generate_series(1, 500) AS i"
        )
        await connection.execute(
            "CREATE TABLE payments AS SELECT * FROM invoices WHERE id % 7 <> 0"
        )
        await connection.execute("ANALYZE invoices; ANALYZE payments")
    async with running_deployment(database, settings(tmp_path / "home", reap_seconds=0.2)) as it:
        await it.graphs.sources.add(
            name="db",
            kind="postgres",
            owner="me",
            config=postgres(warehouse),
            secrets=postgres_secrets(warehouse),
        )
        yield it


@pytest.fixture
async def processes(deployment: Deployment, database: str) -> AsyncIterator[ProcessController]:
    key = deployment.settings.secret_key
    assert key is not None
    environment = {
        "PENSTOCK_DATABASE_URL": database,
        "PENSTOCK_HOME": str(deployment.settings.home),
        "PENSTOCK_LOG_LEVEL": "ERROR",
        "PENSTOCK_OPERATOR_TOKEN": "operator",
        "PENSTOCK_REAP_SECONDS": "0.2",
        "PENSTOCK_SECRET_KEY": key.get_secret_value(),
        "PENSTOCK_SERVICE_TOKEN": TOKEN,
        "PENSTOCK_URL": str(deployment.settings.url),
        "PENSTOCK_WORKER_PORT": "0",
    }
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.reconcile.crashing_process", **pipes
    )
    yield ProcessController(process, environment)
    assert process.stdin is not None
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), TIMEOUT) == 0


@asynccontextmanager
async def connected_client(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": "Bearer operator"}
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=TIMEOUT, trust_env=False
    ) as client:
        yield client


async def wait_until_healthy(url: str) -> None:
    async with connected_client(url) as me:

        async def is_healthy() -> bool:
            try:
                return (await me.get("/health")).is_success
            except httpx2.TransportError:
                return False

        await until(is_healthy)


async def start_run(me: httpx2.AsyncClient) -> int:
    answer = await me.post("/api/runs", json=ORDER)
    assert answer.status_code == 202, answer.text
    return int(answer.json()["data"]["run_id"])


async def evidence(me: httpx2.AsyncClient, run_id: int) -> str:
    """The digest of a completed run's evidence, which is there as its manifest says."""
    run: dict[str, Any] = {}

    async def is_over() -> bool:
        run.update((await me.get(f"/api/runs/{run_id}")).json()["data"])
        return run["status"] in ("completed", "failed")

    await until(is_over)
    assert run["status"] == "completed", run["error"]
    assert run["totals"]["left"]["matched"] == 429
    manifest = (await me.get(f"/api/runs/{run_id}/manifest")).json()["data"]
    assert manifest["evidence_sha256"] == run["evidence_sha256"]
    return str(run["evidence_sha256"])


async def lapse(dsn: str) -> None:
    """What the dead worker held is free to be taken."""
    async with connected(dsn) as connection:
        await connection.execute(
            "UPDATE penstock.live SET lease_until = penstock.now() - interval '1 second'"
            " WHERE status = 1"
        )


async def test_a_worker_that_is_killed_at_any_step_leaves_the_same_evidence(
    deployment: Deployment, processes: ProcessController, database: str
) -> None:
    digests: dict[str, str] = {}
    async with connected_client(str(deployment.settings.url)) as me:
        for step in ("nothing", *WORKER):
            run_id = await start_run(me)
            if step != "nothing":
                assert (
                    await processes.ended(await processes.start("worker", step)) == -signal.SIGKILL
                ), step
                await lapse(database)
            async with deployment.working(queues=QUEUES):
                digests[step] = await evidence(me, run_id)
    assert len(set(digests.values())) == 1, digests


async def test_a_control_plane_that_is_killed_at_any_step_leaves_the_same_evidence(
    deployment: Deployment, processes: ProcessController, database: str
) -> None:
    digests: dict[str, str] = {}
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    async with (
        connected_client(str(deployment.settings.url)) as me,
        connected_client(url) as crashing,
    ):
        for step in (None, *CONTROL_PLANE):
            pid = await processes.start("plane", step, PENSTOCK_PORT=str(port))
            await wait_until_healthy(url)
            async with deployment.working(queues=QUEUES, url=url):
                try:
                    run_id = await start_run(crashing)
                except httpx2.TransportError:
                    assert step == "a run is created"
                    assert (await me.get("/api/runs")).json()["meta"]["total"] == len(digests)
                    run_id = 0
                if step is not None:
                    assert await processes.ended(pid) == -signal.SIGKILL, step
                    pid = await processes.start("plane", PENSTOCK_PORT=str(port))
                    await wait_until_healthy(url)
                digests[str(step)] = await evidence(me, run_id or await start_run(crashing))
            assert await processes.stop(pid) == 0
    assert len(set(digests.values())) == 1, digests
    async with connected(database) as connection:
        kinds = await connection.fetch(
            "SELECT kind, count(*) FROM penstock.job WHERE kind = 'match' GROUP BY kind"
        )
    assert kinds[0]["count"] == len(digests)


@pytest.mark.parametrize("step", ["a match begins", "some evidence is stored"])
async def test_a_matcher_that_is_killed_and_started_again_under_its_name_ends_the_run_at_once(
    deployment: Deployment, processes: ProcessController, tmp_path: Path, step: str
) -> None:
    """Nobody touches the lease, which is longer than the patience of this test."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    place = {"PENSTOCK_WORKER_NAME": "matcher-0", "TMPDIR": str(scratch)}
    async with connected_client(str(deployment.settings.url)) as me:
        run_id = await start_run(me)
        assert (
            await processes.ended(await processes.start("worker", step, **place)) == -signal.SIGKILL
        )
        assert [path.name.startswith("penstock-run-") for path in scratch.iterdir()] == [True]
        pid = await processes.start("worker", **place)
        await evidence(me, run_id)
        assert await processes.stop(pid) == 0
        jobs = (await me.get("/api/jobs", params={"kind": "match"})).json()["data"]
        attempts = (await me.get(f"/api/jobs/{jobs[0]['id']}")).json()["data"]["attempts"]
    assert [attempt["how"] for attempt in attempts] == ["lapsed", "succeeded"]
    assert list(scratch.iterdir()) == [], (
        "what the killed one left is swept, what the other made is removed"
    )


async def test_a_run_whose_matcher_was_lost_does_not_say_that_it_is_executing(
    deployment: Deployment, processes: ProcessController, database: str
) -> None:
    async with connected_client(str(deployment.settings.url)) as me:
        run_id = await start_run(me)
        assert (
            await processes.ended(await processes.start("worker", "some evidence is stored"))
            == -signal.SIGKILL
        )
        async with connected(database) as connection:
            await connection.execute(
                'UPDATE penstock.live SET progress = \'{"percent": 20,'
                ' "stage": "matching"}\' WHERE status = 1'
            )
        await lapse(database)
        await deployment.services.store.reap()
        shown = (await me.get(f"/api/runs/{run_id}")).json()["data"]
    assert (shown["status"], shown["progress"]["stage"], shown["progress"]["percent"]) == (
        "ready",
        "ready",
        50.0,
    )
