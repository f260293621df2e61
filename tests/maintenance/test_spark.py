"""Every action on a real Spark, over both of its wires."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.model import Status
from tests.maintenance.spark_scene import COMPACT, SparkScene, spark_scene
from tests.servers.spark import content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.maintenance.tables import SampleTable
    from tests.servers.spark import Spark

pytestmark = pytest.mark.xdist_group("spark")

ALL = [
    {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1},
    COMPACT | {"sort_order": "zorder(id, at)", "where": "day = 'd0' or day = 'd1'"},
    {"name": "rewrite_position_delete_files", "min_input_files": 2},
    "rewrite_manifests",
    {"name": "remove_orphan_files", "older_than_seconds": 86_400},
]


@pytest.fixture
async def scene(database: str, tmp_path: Path, spark: Spark) -> AsyncIterator[SparkScene]:
    async with spark_scene(database, tmp_path, spark) as scene:
        yield scene


def litter(table: SampleTable) -> Path:
    """Deleted rows in every partition, and a file that nobody names."""
    table.delete([3, 14])
    table.delete([22, 31])
    junk = Path(table.table.location().removeprefix("file://")) / "data/junk.parquet"
    junk.write_bytes(b"x")
    at = (datetime.now(UTC) - timedelta(days=4)).timestamp()
    os.utime(junk, (at, at))
    return junk


@pytest.mark.parametrize("engine", ["hive", "connect"])
async def test_spark_does_every_action_and_the_table_reads_the_same(
    scene: SparkScene, engine: str
) -> None:
    junk = await asyncio.to_thread(litter, scene.table)
    before = await asyncio.to_thread(scene.table.all_rows)
    job_id = await scene.ask(engine, *ALL)
    async with scene.working():
        view = await scene.over(job_id)
    assert view.status is Status.SUCCEEDED, view.error
    results = await scene.told(job_id)
    assert {name: result["status"] for name, result in results.items()} == {
        "expire_snapshots": "completed",
        "rewrite_data_files": "completed",
        "rewrite_position_delete_files": "completed",
        "rewrite_manifests": "completed",
        "remove_orphan_files": "completed",
    }
    assert {result["engine"] for result in results.values()} == {"spark"}
    rewritten = results["rewrite_data_files"]
    assert (rewritten["before"]["files"], rewritten["after"]["files"]) == (18, 8)
    assert (rewritten["rewritten_files"], rewritten["added_files"], rewritten["commits"]) == (
        12,
        2,
        1,
    )
    assert results["expire_snapshots"]["expired_snapshots"] == 7
    assert (
        results["rewrite_manifests"]["after"]["manifests"]
        < results["rewrite_manifests"]["before"]["manifests"]
    )
    assert (results["remove_orphan_files"]["deleted_files"], junk.exists()) == (1, False)
    assert await asyncio.to_thread(scene.table.all_rows) == before
    assert await scene.spark.content("shop.orders") == content(before)


@pytest.mark.parametrize("engine", ["hive", "connect"])
async def test_a_dry_run_names_the_orphans_and_changes_nothing(
    scene: SparkScene, engine: str
) -> None:
    junk = await asyncio.to_thread(litter, scene.table)
    snapshot = scene.table.table.metadata.current_snapshot_id
    job_id = await scene.ask(engine, *ALL, dry_run=True)
    async with scene.working():
        assert (await scene.over(job_id)).status is Status.SUCCEEDED
    results = await scene.told(job_id)
    assert {result["status"] for result in results.values()} == {"planned"}
    assert [path.removeprefix("file:") for path in results["remove_orphan_files"]["files"]] == [
        str(junk)
    ]
    assert "CALL `kept`.system.rewrite_data_files" in results["rewrite_data_files"]["message"]
    assert junk.exists()
    assert scene.table.table.metadata.current_snapshot_id == snapshot
