"""What becomes of Spark's statement when workers go, die or are told to stop."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.model import Status
from penstock.kit.errors import ResourceLocked
from penstock.maintenance.engines.registry import open_engine
from penstock.maintenance.engines.spark import connect
from tests.graphs.deployment import TOKEN, until
from tests.maintenance.spark_scene import COMPACT, SparkScene, spark_scene
from tests.maintenance.test_lifecycle import zygote

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.servers.spark import Spark

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.parametrize("engine", ["hive", "connect"]),
]


@pytest.fixture
async def scene(database: str, tmp_path: Path, spark: Spark) -> AsyncIterator[SparkScene]:
    async with spark_scene(database, tmp_path, spark) as scene:
        yield scene


def replaced(scene: SparkScene) -> int:
    return scene.table.operations().count("replace")


async def test_a_cancelled_job_ends_its_statement_and_commits_nothing(
    scene: SparkScene, engine: str
) -> None:
    gate = scene.hold_commit()
    job_id = await scene.ask(engine, COMPACT)
    async with scene.working():
        query = await scene.under_way(job_id, gate)
        with pytest.raises(ResourceLocked, match=str(job_id)):
            await scene.ask(engine, COMPACT)
        await scene.store.cancel(job_id, actor="me")
        await scene.gone(engine, query)
        gate.refuse()
    assert (await scene.store.job(job_id)).status is Status.CANCELLED
    assert await asyncio.to_thread(replaced, scene) == 0
    assert await scene.told(job_id) == {}


async def test_whoever_is_told_to_go_in_a_look_ends_the_statement_first(
    scene: SparkScene, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "LISTEN_SECONDS", 30.0)
    gate = scene.hold_commit()
    job_id = await scene.ask(engine, COMPACT)
    async with scene.working() as worker:
        await asyncio.wait_for(gate.reached.wait(), 240)
        await scene.looked_at(job_id)
        query = await scene.stored_query(job_id)
        worker.stop(grace=0)
        await until(lambda: scene.is_over(job_id), within=5)
    await scene.gone(engine, query)
    gate.refuse()
    view = await scene.store.job(job_id)
    assert (view.status, view.error["message"]) == (Status.FAILED, "Worker received SIGTERM")
    assert await asyncio.to_thread(replaced, scene) == 0


@pytest.mark.parametrize("step", ["statement_begun", "statement_looked_at"])
async def test_a_worker_that_is_killed_loses_no_statement_and_doubles_none(
    scene: SparkScene, engine: str, step: str
) -> None:
    """The worker dies right after the step, before it is stored; its statement commits anyway."""
    gate = scene.hold_commit()
    before = await asyncio.to_thread(scene.table.all_rows)
    job_id = await scene.ask(engine, COMPACT)
    async with zygote() as victims:
        if step == "statement_looked_at":
            await victims.say(url=scene.url, token=TOKEN)
            assert await victims.hear("code") == 0
        await victims.say(url=scene.url, token=TOKEN, die=step)
        assert await victims.hear("code") == -signal.SIGKILL
    if step == "statement_looked_at":
        await asyncio.wait_for(gate.reached.wait(), 240)
    gate.open()
    await scene.lapse()
    async with scene.working():
        view = await scene.over(job_id)
    assert view.status is Status.SUCCEEDED, view.error
    assert (await scene.told(job_id))["rewrite_data_files"]["status"] == "completed"
    assert await asyncio.to_thread(replaced, scene) == 1
    assert await asyncio.to_thread(scene.table.all_rows) == before


@pytest.mark.parametrize("landed", [True, False])
async def test_what_a_lost_statement_committed_counts_and_else_a_new_one_begins(
    scene: SparkScene, engine: str, landed: bool
) -> None:
    gate = scene.hold_commit()
    job_id = await scene.ask(engine, COMPACT)
    async with zygote() as workers:
        for _ in ("begun", "started"):
            await workers.say(url=scene.url, token=TOKEN)
            assert await workers.hear("code") == 0
    query = await scene.under_way(job_id, gate)
    async with open_engine(scene.spark.engines[engine], "test") as there:
        await there.cancel(query)
    if landed:
        gate.open()
        await until(lambda: asyncio.to_thread(replaced, scene))
    else:
        gate.refuse()
    async with scene.working():
        view = await scene.over(job_id)
    assert view.status is Status.SUCCEEDED, view.error
    result = (await scene.told(job_id))["rewrite_data_files"]
    assert (result["status"], result["rewritten_files"], result["added_files"]) == (
        "completed",
        18,
        3,
    )
    assert await asyncio.to_thread(replaced, scene) == 1


async def test_a_server_that_is_gone_is_tried_again_and_then_named(
    scene: SparkScene, engine: str
) -> None:
    nowhere = scene.spark.engines[engine]["url"].rpartition(":")[0] + ":1"
    scene.kept.service.pool.catalogs.engines[engine] = scene.spark.engines[engine] | {
        "url": nowhere
    }
    job_id = await scene.ask(engine, COMPACT)
    async with scene.working():
        view = await scene.over(job_id)
    assert (view.status, view.error["code"], view.attempt_no) == (
        Status.FAILED,
        "ENGINE_UNAVAILABLE",
        3,
    )
    assert nowhere in view.error["message"]


async def test_a_table_that_spark_does_not_find_fails_the_action_with_its_words(
    scene: SparkScene, engine: str
) -> None:
    scene.spark.door.hold("GET", r"/tables/orders$", once=False).refuse(404, "NoSuchTableException")
    job_id = await scene.ask(engine, COMPACT)
    async with scene.working():
        view = await scene.over(job_id)
    assert (view.status, view.error["code"]) == (Status.FAILED, "MAINTENANCE_FAILED")
    assert "Couldn't load table" in (await scene.told(job_id))["rewrite_data_files"]["message"]


async def test_a_delete_that_came_meanwhile_wins_and_the_rewrite_is_abandoned(
    scene: SparkScene, engine: str
) -> None:
    gate = scene.hold_commit()
    job_id = await scene.ask(engine, COMPACT)
    async with scene.working():
        await scene.under_way(job_id, gate)
        await asyncio.to_thread(scene.table.table.delete, "id = 3")
        gate.open()
        view = await scene.over(job_id)
    result = (await scene.told(job_id))["rewrite_data_files"]
    assert (view.status, result["status"]) == (Status.SUCCEEDED, "abandoned"), result
    assert await asyncio.to_thread(replaced, scene) == 0
    assert 3 not in await asyncio.to_thread(scene.table.ids)
