"""A worker killed at every step of an export: readers see nothing, another worker finishes, the
counts are exact."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.graphs.snapshots.control_plane import SnapshotControlPlane
from penstock.graphs.snapshots.handlers.sweep import StorageSweeper
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.jobs.control_plane import client_factory
from penstock.jobs.handler import Handlers
from penstock.jobs.model import JobSpec
from penstock.storage.errors import ObjectMissing
from penstock.storage.manifest import read_manifest
from penstock.storage.provider import ObjectStoreProvider
from tests.graphs.deployment import (
    CUSTOMER,
    TOKEN,
    Deployment,
    connected,
    running_deployment,
    settings,
    shop,
    until,
)
from tests.jobs.conformance import Clock
from tests.worker.killed_process import EXPORT_STEPS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ROWS = 20_000
LEASE = 601


class Victims:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    async def run(self, **order: Any) -> int:
        return await asyncio.to_thread(self._run, json.dumps(order))

    def _run(self, order: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    command = [sys.executable, "-m", "tests.worker.killed_process"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Victims(process)


@pytest.fixture
async def deployment(database: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with running_deployment(database, settings(tmp_path / "home")) as it:
        yield it


def environment(deployment: Deployment) -> dict[str, str]:
    return {
        "PENSTOCK_URL": str(deployment.settings.url),
        "PENSTOCK_SERVICE_TOKEN": TOKEN,
        "PENSTOCK_HOME": str(deployment.settings.home),
        "PENSTOCK_WORKER_PORT": "0",
    }


async def test_a_kill_at_any_step_shows_nothing_half_done_and_another_worker_finishes(
    deployment: Deployment, database: str, victims: Victims, tmp_path: Path
) -> None:
    source = await deployment.source("duckdb", shop(tmp_path, customers=ROWS))
    customer = CUSTOMER | {"data_source_id": source}
    async with deployment.working():
        await deployment.ready(await deployment.snapshot(customer))
        await until(lambda: nothing_live(database))
    async with connected(database) as connection:
        clock = Clock(connection)
        for step in EXPORT_STEPS:
            snapshot_id = await deployment.snapshot(customer)
            assert (
                await victims.run(step=step, environment=environment(deployment)) == -signal.SIGKILL
            ), step
            await assert_nothing_is_shown(deployment, snapshot_id, step)
            await clock.advance(LEASE)
            await deployment.services.store.reap()
            async with deployment.working():
                snapshot = await deployment.ready(snapshot_id)
            table = await deployment.table(snapshot, "nodes/Customer")
            assert sorted(table["id"].to_pylist()) == list(range(ROWS)), step
            assert snapshot.node_counts == {"Customer": ROWS}, step
            await assert_history(deployment, snapshot_id, step)
    await assert_one_sweep_leaves_what_manifests_name(deployment)


async def nothing_live(database: str) -> bool:
    async with connected(database) as connection:
        return not await connection.fetchval("SELECT count(*) FROM penstock.live")


async def assert_nothing_is_shown(deployment: Deployment, snapshot_id: int, step: str) -> None:
    """No manifest, so no reader; but for the last step, after which only nobody has heard of it
    yet."""
    snapshot = await deployment.graphs.snapshots.get(snapshot_id)
    assert snapshot.status is SnapshotStatus.CREATING, step
    if step == EXPORT_STEPS[-1]:
        return
    with pytest.raises(ObjectMissing):
        await read_manifest(deployment.store, snapshot.prefix or "")


async def assert_history(deployment: Deployment, snapshot_id: int, step: str) -> None:
    snapshot = await deployment.graphs.snapshots.get(snapshot_id)
    [job] = await deployment.jobs(snapshot_id)
    killed = (
        job["id"]
        if EXPORT_STEPS.index(step) <= EXPORT_STEPS.index("its end is written")
        else snapshot.publish_job
    )
    ends = [attempt.how for attempt in (await deployment.services.store.job(killed or 0)).attempts]
    assert ends == (["succeeded"] if step == "its end is written" else ["lapsed", "succeeded"]), (
        step
    )


async def assert_one_sweep_leaves_what_manifests_name(deployment: Deployment) -> None:
    left = len(await deployment.files())
    sweeper = StorageSweeper(
        client_factory(deployment.settings, SnapshotControlPlane),
        ObjectStoreProvider(deployment.settings),
        floor=timedelta(0),
    )
    [added] = await deployment.services.store.enqueue([JobSpec(kind="sweep")])
    async with deployment.working(handlers=Handlers({"sweep": sweeper})):

        async def swept() -> bool:
            return (await deployment.services.store.job(added.job_id)).status.over

        await until(swept)
    assert left > len(await deployment.files()) == 2 * (len(EXPORT_STEPS) + 1)
