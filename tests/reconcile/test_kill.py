"""A worker that is killed at any step of a run: another one ends it, and the evidence is the same."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from penstock.kit import config
from penstock.worker import matching as worker_matching
from penstock.worker.process import run_worker
from penstock.worker.staging import ChunkStager
from tests.graphs.stand import TOKEN, Stand, connected, postgres, settings, standing, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

QUEUES = ("stage", "match", "publish")
STEPS = {
    "a chunk is read": (ChunkStager, "_stage"),
    "evidence is stored": (worker_matching, "_store_file"),
    "the manifest is written": (worker_matching, "_threshold"),
}
RULES = [{"name": "exact", "conditions": [{"left": "ref", "op": "eq", "right": "ref"}]}]


def main(step: str) -> None:
    """In a process of its own: a worker that dies by SIGKILL at its step."""
    owner, name = STEPS[step]
    setattr(owner, name, lambda *_args, **_options: os.kill(os.getpid(), signal.SIGKILL))
    sys.exit(run_worker(config.load(), queues=list(QUEUES)))


@pytest.fixture
async def stand(database: str, tmp_path: Path) -> AsyncIterator[Stand]:
    async with standing(database, settings(tmp_path / "home", reap_seconds=0.2)) as it:
        yield it


async def killed(stand: Stand, step: str) -> None:
    environment = {
        **os.environ,
        "PENSTOCK_URL": str(stand.settings.url),
        "PENSTOCK_SERVICE_TOKEN": TOKEN,
        "PENSTOCK_HOME": str(stand.settings.home),
        "PENSTOCK_WORKER_PORT": "0",
        "PENSTOCK_LOG_LEVEL": "ERROR",
    }
    program = "import sys; from tests.reconcile.test_kill import main; main(sys.argv[1])"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, step, env=environment)
    assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGKILL


async def over(me: httpx2.AsyncClient, run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_it() -> bool:
        found.update((await me.get(f"/api/runs/{run['run_id']}")).json()["data"])
        return found["status"] in ("completed", "failed")

    await until(is_it)
    return found


async def lapse(dsn: str) -> None:
    """What the dead worker held is free to be taken."""
    async with connected(dsn) as connection:
        await connection.execute(
            "UPDATE penstock.live SET lease_until = penstock.now() - interval '1 second' WHERE status = 1"
        )


async def test_a_kill_at_any_step_ends_in_the_same_evidence(stand: Stand, database: str) -> None:
    async with connected(database) as connection:
        await connection.execute(
            "CREATE TABLE invoices AS SELECT i AS id, 'R' || i AS ref FROM generate_series(1, 500) AS i"
        )
        await connection.execute("CREATE TABLE payments AS SELECT * FROM invoices WHERE id % 7 <> 0")
    await stand.graphs.sources.add(name="db", kind="postgres", owner="me", config=postgres(database), secrets={})
    tables = {"left": "invoices", "right": "payments"}
    sources = {side: {"source": "db", "table": table, "primary_key": ["id"]} for side, table in tables.items()}
    recipe = {"name": "kill", "sources": sources, "rules": RULES}
    headers = {"Authorization": "Bearer operator"}
    digests: dict[str, Any] = {}
    async with httpx2.AsyncClient(base_url=stand.http.base_url, headers=headers, timeout=60) as me:
        for step in ("nothing", *STEPS):
            run = (await me.post("/api/runs", json={"recipe": recipe})).json()["data"]
            if step != "nothing":
                await killed(stand, step)
                await lapse(database)
            async with stand.working(queues=QUEUES):
                found = await over(me, run)
            assert found["status"] == "completed", (step, found["error"])
            digests[step] = found["evidence_sha256"]
    assert len(set(digests.values())) == 1, digests
