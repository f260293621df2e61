from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from penstock.jobs.control_plane import client_factory
from penstock.jobs.model import Status
from penstock.maintenance.actions.model import ORDER
from penstock.maintenance.control_plane import MaintenanceControlPlane
from penstock.maintenance.handlers import Maintainer, RemoteCanceller
from penstock.maintenance.payloads import CANCEL_REMOTE, MAINTENANCE, REMOTE
from penstock.maintenance.tables.ownership.references import references
from penstock.worker import Handlers
from tests.graphs.deployment import TOKEN, Deployment, running_deployment, settings, until
from tests.jobs.conformance import Clock
from tests.maintenance.killed_process import EXPIRY_STEPS, STEPS
from tests.maintenance.tables import SampleTable, once

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ALL = [
    {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1},
    {"name": "rewrite_data_files", "force": True, "min_input_files": 2},
    "rewrite_position_delete_files",
    "rewrite_manifests",
    {"name": "remove_orphan_files", "older_than_seconds": 86_400},
]
COMPACT = [{"name": "rewrite_data_files", "force": True}]


class Scene:
    """A control plane as it is deployed, with one table in the catalog of its own database."""

    def __init__(self, plane: Deployment) -> None:
        self.plane = plane
        assert plane.services.maintenance is not None
        self.kept = plane.services.maintenance
        self.table = SampleTable(self.kept.service.pool.get("lake"))
        self.url = str(plane.settings.url)

    async def submit(self, actions: list[Any] = ALL) -> int:
        from penstock.maintenance.actions.model import parse
        from penstock.maintenance.payloads import Order

        order = Order(name=self.kept.service.name(None, "shop", "orders"), actions=parse(actions))
        return await self.kept.service.submit(order, actor="me")

    async def over(self, job_id: int) -> Any:
        async def is_it() -> bool:
            return (await self.plane.services.store.job(job_id)).status.over

        await until(is_it)
        return await self.plane.services.store.job(job_id)

    def working(self, step: Callable[[str], None] = lambda _: None):
        planes = client_factory(self.plane.settings, MaintenanceControlPlane)
        maintainer = Maintainer(planes, step=step)
        handlers = Handlers(
            {MAINTENANCE: maintainer, REMOTE: maintainer, CANCEL_REMOTE: RemoteCanceller(planes)}
        )
        return self.plane.working(handlers=handlers, queues=(MAINTENANCE,))


@pytest.fixture
async def clock(database: str) -> AsyncIterator[Clock]:
    connection = await asyncpg.connect(database)
    yield Clock(connection)
    await connection.close()


@pytest.fixture
async def scene(database: str, tmp_path: Path) -> AsyncIterator[Scene]:
    config = settings(tmp_path, catalogs={"lake": {"warehouse": (tmp_path / "warehouse").as_uri()}})
    async with running_deployment(database, config) as plane:
        scene = Scene(plane)
        await asyncio.to_thread(scene.table.create)
        yield scene


class Zygote:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def say(self, **order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()

    async def hear(self, word: str) -> Any:
        assert self._process.stdout is not None
        while True:
            line = await asyncio.wait_for(self._process.stdout.readline(), 60)
            assert line, f"the victim's parent is gone before it said {word}"
            if line.startswith(b"{") and word in (message := json.loads(line)):
                return message[word]


@asynccontextmanager
async def zygote() -> AsyncIterator[Zygote]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.maintenance.killed_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Zygote(process)
    finally:
        process.kill()
        await process.wait()


def litter(table: SampleTable) -> None:
    """Give each action work: small files, a deleted row, old snapshots and an old orphan."""
    start = max(table.ids()) + 1
    for n in range(2):
        table.append(start + n * 10, 10)
    table.delete([start + 3])
    old = Path(table.table.location().removeprefix("file://")) / f"data/junk-{start}"
    old.write_bytes(b"x")
    at = (datetime.now(UTC) - timedelta(days=4)).timestamp()
    os.utime(old, (at, at))


async def test_a_worker_does_all_actions_in_their_order_and_tells_of_each(scene: Scene) -> None:
    await asyncio.to_thread(litter, scene.table)
    before = await asyncio.to_thread(scene.table.all_rows)
    job_id = await scene.submit(list(reversed(ALL)))
    async with scene.working():
        view = await scene.over(job_id)
    assert view.status is Status.SUCCEEDED
    actions = await scene.kept.service.store.actions(job_id)
    assert [(a["action"], a["status"]) for a in actions] == [
        ("expire_snapshots", "completed"),
        ("rewrite_data_files", "completed"),
        ("rewrite_position_delete_files", "completed"),
        ("rewrite_manifests", "completed"),
        ("remove_orphan_files", "completed"),
    ]
    after = actions[-1]["result"]["after"]
    assert (after["files"], after["delete_files"], after["manifests"]) == (1, 0, 1)
    assert await asyncio.to_thread(scene.table.all_rows) == before
    assert await scene.submit()


async def test_a_dry_run_is_a_job_that_changes_nothing(scene: Scene) -> None:
    from penstock.maintenance.actions.model import parse
    from penstock.maintenance.payloads import Order

    order = Order(
        name=scene.kept.service.name(None, "shop", "orders"), actions=parse(COMPACT), dry_run=True
    )
    job_id = await scene.kept.service.submit(order, actor="me")
    async with scene.working():
        await scene.over(job_id)
    [action] = await scene.kept.service.store.actions(job_id)
    assert (action["status"], len(action["result"]["files"])) == ("planned", 6)
    assert await asyncio.to_thread(scene.table.operations) == ["append"] * 6


async def test_a_job_fails_when_the_table_refuses_all_of_it(scene: Scene) -> None:
    def give_away() -> None:
        with scene.table.table.transaction() as change:
            change.set_properties({"penstock.maintenance.enabled": "false"})

    await asyncio.to_thread(give_away)
    job_id = await scene.submit(COMPACT)
    async with scene.working():
        view = await scene.over(job_id)
    assert (view.status, view.error["code"]) == (Status.FAILED, "MAINTENANCE_REFUSED")
    assert [a["status"] for a in await scene.kept.service.store.actions(job_id)] == ["refused"]


@pytest.mark.parametrize("step", ["files_written", "manifests_written"])
async def test_a_cancelled_job_commits_nothing_and_frees_the_table_at_once(
    scene: Scene, step: str
) -> None:
    job_id = await scene.submit(COMPACT)
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def cancel() -> None:
        asyncio.run_coroutine_threadsafe(
            scene.plane.services.store.cancel(job_id, actor="me"), loop
        ).result()
        loop.call_soon_threadsafe(done.set)

    async with scene.working(once(step, cancel)):
        await asyncio.wait_for(done.wait(), 30)
        again = await scene.submit(["expire_snapshots"])
        assert (await scene.over(again)).status is Status.SUCCEEDED
    assert (await scene.over(job_id)).status is Status.CANCELLED
    assert await asyncio.to_thread(scene.table.operations) == ["append"] * 6
    assert await scene.kept.service.store.actions(job_id) == []


async def test_killed_at_every_step_the_table_is_unchanged_and_the_next_attempt_ends_the_job(
    scene: Scene,
) -> None:
    """Under the same name: nobody waits for a lease. What had ended is not done again."""
    table, store = scene.table, scene.plane.services.store
    await asyncio.to_thread(keep_all_metadata, table)
    async with zygote() as victims:
        for step in STEPS:
            await asyncio.to_thread(litter, table)
            before = await asyncio.to_thread(table.all_rows)
            job_id = await scene.submit()
            await victims.say(url=scene.url, token=TOKEN, name="maintainer-0", die=step)
            assert await victims.hear("code") == -signal.SIGKILL, step
            assert await asyncio.to_thread(table.all_rows) == before, step
            ended = await scene.kept.service.store.actions(job_id)
            await victims.say(url=scene.url, token=TOKEN, name="maintainer-0")
            assert await victims.hear("code") == 0, step
            view = await store.job(job_id)
            assert [a.how for a in view.attempts] == ["lapsed", "succeeded"], step
            assert view.result["ended_by_earlier_attempts"] == [a["action"] for a in ended], step
            assert set(view.result["actions"].values()) <= {"completed", "nothing_to_do"}, step
            actions = await scene.kept.service.store.actions(job_id)
            assert [a["action"] for a in actions] == list(ORDER), f"{step}: each is done once"
            assert await asyncio.to_thread(table.all_rows) == before, step
            assert await asyncio.to_thread(unnamed_files_of_ours, table) == [], step


async def test_a_job_whose_worker_does_not_come_back_is_run_again_when_its_lease_is_over(
    scene: Scene, clock: Clock
) -> None:
    store = scene.plane.services.store
    job_id = await scene.submit()
    async with zygote() as victims:
        await victims.say(url=scene.url, token=TOKEN, name="gone", die="files_written")
        assert await victims.hear("code") == -signal.SIGKILL
        await clock.advance(91)
        await store.reap()
        await victims.say(url=scene.url, token=TOKEN, name="another")
        assert await victims.hear("code") == 0
    view = await store.job(job_id)
    assert (view.status, view.attempt_no, view.worker) == (Status.SUCCEEDED, 2, "another")


async def test_a_job_that_kills_every_worker_fails_after_three_and_frees_its_table(
    scene: Scene,
) -> None:
    store = scene.plane.services.store
    job_id = await scene.submit()
    async with zygote() as victims:
        for _ in range(3):
            await victims.say(url=scene.url, token=TOKEN, name="maintainer-0", die="files_written")
            assert await victims.hear("code") == -signal.SIGKILL
        await victims.say(url=scene.url, token=TOKEN, name="maintainer-0", wait="0.1")
        assert await victims.hear("code") == 0, "there was no job left"
    view = await store.job(job_id)
    assert (view.status, view.error["code"], view.attempt_no) == (
        Status.FAILED,
        "ATTEMPTS_USED_UP",
        3,
    )
    assert await scene.submit()


def keep_all_metadata(table: SampleTable) -> None:
    """Metadata that fell off the table's log is left alone for a day, for a reader may be about to
    open it."""
    with table.table.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "10000"})


def unnamed_files_of_ours(table: SampleTable) -> list[str]:
    """Files that attempts wrote and no snapshot names; every file that one names is there."""
    root = Path(table.table.location().removeprefix("file://"))
    named = references(table.table)
    there = {p.as_uri() for p in root.rglob("*") if p.is_file() and ".trash" not in p.parts}
    assert named.files | named.manifests | named.lists <= there
    return sorted(u for u in there - named.all if "penstock" in u.removeprefix(root.as_uri()))


async def test_killed_at_every_step_of_an_expiry_the_next_job_deletes_what_is_left(
    scene: Scene,
) -> None:
    """Whatever that job is asked for: here it has nothing to do with snapshots."""
    table, store = scene.table, scene.plane.services.store
    async with zygote() as victims:
        for step in (*EXPIRY_STEPS, "metadata_written"):
            await asyncio.to_thread(litter, table)
            before = await asyncio.to_thread(table.all_rows)
            expiry = await scene.submit(ALL[:1])
            await victims.say(url=scene.url, token=TOKEN, die=step)
            assert await victims.hear("code") == -signal.SIGKILL, step
            await store.cancel(expiry, actor="me")
            next_job = await scene.submit(["rewrite_manifests"])
            await victims.say(url=scene.url, token=TOKEN)
            assert await victims.hear("code") == 0, step
            assert (await store.job(next_job)).status is Status.SUCCEEDED
            assert await asyncio.to_thread(table.all_rows) == before, step
            assert await asyncio.to_thread(unnamed_files, table) == [], step


async def test_a_dry_run_after_a_kill_deletes_nothing(scene: Scene) -> None:
    from penstock.maintenance.actions.model import parse
    from penstock.maintenance.payloads import Order

    expiry = await scene.submit(ALL[:1])
    async with zygote() as victims:
        await victims.say(url=scene.url, token=TOKEN, die="expiry_committed")
        assert await victims.hear("code") == -signal.SIGKILL
        await scene.plane.services.store.cancel(expiry, actor="me")
        left = await asyncio.to_thread(unnamed_files, scene.table)
        name = scene.kept.service.name(None, "shop", "orders")
        order = Order(name=name, actions=parse(COMPACT), dry_run=True)
        await scene.kept.service.submit(order, actor="me")
        await victims.say(url=scene.url, token=TOKEN)
        assert await victims.hear("code") == 0
    assert left
    assert await asyncio.to_thread(unnamed_files, scene.table) == left


def unnamed_files(table: SampleTable) -> list[str]:
    """Data files, manifests, lists and records that no snapshot names."""
    root = Path(table.table.location().removeprefix("file://"))
    named = references(table.table).all
    files = [*root.rglob("*.parquet"), *root.rglob("*.avro"), *root.rglob("*-expired-*")]
    return sorted({file.as_uri() for file in files} - named)


async def test_one_job_decides_the_exit_code(scene: Scene) -> None:
    async with zygote() as victims:
        await victims.say(url=scene.url, token=TOKEN, wait="0.1")
        assert await victims.hear("code") == 0, "there was no job"
        await scene.submit(COMPACT)
        await victims.say(url=scene.url, token=TOKEN)
        assert await victims.hear("code") == 0
        await scene.submit(
            [{"name": "rewrite_data_files", "rewrite_all": True, "sort_order": "nothing"}]
        )
        await victims.say(url=scene.url, token=TOKEN)
        assert await victims.hear("code") == 1


async def test_sigterm_ends_it_though_the_engine_hangs(scene: Scene) -> None:
    job_id = await scene.submit(COMPACT)
    async with zygote() as victims:
        await victims.say(url=scene.url, token=TOKEN, hang="files_written")
        pid = await victims.hear("pid")
        await victims.hear("hangs")
        os.kill(pid, signal.SIGTERM)
        assert await victims.hear("code") == 1
    view = await scene.plane.services.store.job(job_id)
    assert (view.status, view.error["message"]) == (Status.FAILED, "Worker received SIGTERM")
    assert await scene.submit(COMPACT)
    assert await asyncio.to_thread(scene.table.operations) == ["append"] * 6
