"""Exports among storages that refuse and sources that hang or reset: a clear error, no half object,
history intact."""

from __future__ import annotations

import asyncio
import subprocess
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock.jobs.handler import Answer, Handlers, Job
from penstock.storage.manifest import NAME
from penstock.wiring.default_handlers import default_handlers
from tests.graphs.deployment import (
    CUSTOMER,
    Deployment,
    fill,
    postgres,
    postgres_secrets,
    running_deployment,
    settings,
    shop,
    until,
)
from tests.sources.proxy import Proxy, proxied
from tests.worker.places import in_s3, s3

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from penstock.jobs.handler import JobContext
    from penstock.jobs.model import JobView
    from penstock.storage.object_store import StoreOptions

__all__ = ["s3"]
WIDE = {"sql": "SELECT id, md5(name) || md5(id::VARCHAR) AS name, age FROM customers"}


@pytest.fixture
async def deployment(database: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with running_deployment(database, settings(tmp_path / "home")) as it:
        yield it


@pytest.fixture
async def duck(deployment: Deployment, tmp_path: Path) -> int:
    return await deployment.source("duckdb", shop(tmp_path, customers=100_000))


async def ended(deployment: Deployment, snapshot_id: int, **worker: Any) -> JobView:
    """The export job, once its snapshot has failed."""
    async with deployment.working(**worker):
        await deployment.failed(snapshot_id)
    [job] = await deployment.jobs(snapshot_id)
    return await deployment.services.store.job(job["id"])


def error_code(view: JobView) -> str:
    assert view.error["message"].startswith("Node Customer: ")
    return str(view.error["code"])


async def test_a_bucket_or_folder_that_is_not_there_fails_the_job_at_once(
    deployment: Deployment, duck: int, tmp_path: Path, s3: StoreOptions
) -> None:
    wrong = in_s3(s3, "x", bucket="no-such-bucket")
    for place in (wrong, {"storage_url": f"file://{tmp_path}/nowhere"}):
        view = await ended(
            deployment, await deployment.snapshot(CUSTOMER | {"data_source_id": duck}), **place
        )
        assert (error_code(view), view.attempt_no) == ("STORAGE_BUCKET_MISSING", 1)


async def test_a_storage_that_refuses_our_key_fails_the_job_and_shows_no_secret(
    deployment: Deployment, duck: int, s3: StoreOptions
) -> None:
    wrong = in_s3(s3, "x") | {"storage_secret_access_key": "hunter2-is-wrong"}
    view = await ended(
        deployment, await deployment.snapshot(CUSTOMER | {"data_source_id": duck}), **wrong
    )
    assert error_code(view) == "STORAGE_REFUSED"
    assert "hunter2" not in str(view.error)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "small"
    root.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(root)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.decode().strip()}")
    yield root
    subprocess.run(["umount", "-l", str(root)], check=True)


async def test_a_disk_that_fills_half_way_shows_nothing_and_says_so(
    deployment: Deployment, duck: int, small_disk: Path
) -> None:
    snapshot_id = await deployment.snapshot(CUSTOMER | WIDE | {"data_source_id": duck})
    view = await ended(deployment, snapshot_id, storage_url=f"file://{small_disk}")
    assert (error_code(view), view.attempt_no) == ("STORAGE_FULL", 1)
    assert [path for path in small_disk.rglob("*") if path.is_file()] == []


async def test_an_object_that_is_there_already_is_not_touched(
    deployment: Deployment, duck: int
) -> None:
    handlers = default_handlers(deployment.settings)
    export = handlers.get("export")
    assert export is not None
    taken: list[str] = []

    async def late(job: Job, ctx: JobContext) -> Answer:
        taken.append(f"{job.payload['prefix']}part-00000-{ctx.fence.attempt_id}.parquet")
        await deployment.store.create(taken[-1], b"somebody else's")
        return await export(job, ctx)

    snapshot_id = await deployment.snapshot(CUSTOMER | {"data_source_id": duck})
    view = await ended(deployment, snapshot_id, handlers=Handlers({"export": late}))
    assert error_code(view) == "OBJECT_EXISTS"
    assert await deployment.files() == taken
    assert await deployment.store.get(taken[0]) == b"somebody else's"


async def test_a_manifest_that_is_there_already_is_not_touched_and_fails_the_snapshot(
    deployment: Deployment, duck: int
) -> None:
    snapshot_id = await deployment.snapshot(CUSTOMER | {"data_source_id": duck})
    key = f"{(await deployment.graphs.snapshots.get(snapshot_id)).prefix}{NAME}"
    await deployment.store.create(key, b"{}")
    async with deployment.working():
        snapshot = await deployment.failed(snapshot_id)
    assert snapshot.failed_step == "publish"
    assert "exists already" in (snapshot.error_message or "")
    assert await deployment.store.get(key) == b"{}"


@pytest.fixture
async def door(database: str) -> AsyncIterator[Proxy]:
    """A TCP door before the test's PostgreSQL."""
    where = parse_qs(urlsplit(database).query)
    socket = f"{where['host'][0]}/.s.PGSQL.{where['port'][0]}"
    async with proxied(lambda: asyncio.open_unix_connection(socket)) as proxy:
        yield proxy


@pytest.mark.parametrize("strike", ["freeze", "reset", "cut"])
async def test_a_source_that_hangs_or_resets_costs_an_attempt_and_no_row(
    deployment: Deployment, warehouse: str, door: Proxy, strike: str
) -> None:
    await fill(warehouse, 200_000)
    by_door = {"host": "127.0.0.1", "port": door.port, "sslmode": "disable", "silence_seconds": 1.0}
    source = await deployment.source(
        "postgres", postgres(warehouse) | by_door, postgres_secrets(warehouse)
    )
    snapshot_id = await deployment.snapshot(CUSTOMER | {"data_source_id": source})
    door.after(2_000_000, getattr(door, strike))
    [job] = await deployment.jobs(snapshot_id)
    async with deployment.working():
        await door.struck()

        async def tried_again() -> bool:
            return bool((await deployment.services.store.job(job["id"])).attempts[:-1])

        await until(tried_again)
        door.thaw()
        snapshot = await deployment.ready(snapshot_id)
    view = await deployment.services.store.job(job["id"])
    first = view.attempts[0]
    assert (first.how, first.detail["code"]) == ("retried", "SOURCE_UNAVAILABLE")
    assert first.detail["message"].startswith("Node Customer: ")
    assert view.attempt_no > 1
    table = await deployment.table(snapshot, "nodes/Customer")
    assert sorted(table["id"].to_pylist()) == list(range(200_000))
    assert len(await deployment.files()) == 2


async def test_a_source_that_does_not_know_us_fails_the_job_at_once_and_no_log_has_our_password(
    deployment: Deployment, warehouse: str, capfd: pytest.CaptureFixture[str]
) -> None:
    stranger = postgres(warehouse) | {"database": f"nowhere_{time.monotonic_ns()}"}
    source = await deployment.source("postgres", stranger, {"password": "hunter2-is-wrong"})
    view = await ended(deployment, await deployment.snapshot(CUSTOMER | {"data_source_id": source}))
    assert error_code(view) == "SOURCE_REFUSED"
    assert "hunter2" not in str(view)
    assert "hunter2" not in "".join(capfd.readouterr())
