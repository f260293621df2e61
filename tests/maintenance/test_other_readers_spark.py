"""Java's Iceberg, in a real Spark, reads what the embedded engine maintained."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.maintenance.spark_scene import SparkScene, spark_scene
from tests.maintenance.tables import COMPACT
from tests.servers.spark import content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.maintenance.tables import Stand
    from tests.servers.spark import Spark

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
async def scene(database: str, tmp_path: Path, spark: Spark) -> AsyncIterator[SparkScene]:
    async with spark_scene(database, tmp_path, spark) as made:
        yield made


def merge_deletes(table: Stand) -> None:
    """Two delete files of each partition become one; they are still to be applied."""
    table.delete([3, 4, 5])
    table.delete([13, 14, 15])
    table.run("rewrite_position_delete_files")


def compact_one_partition(table: Stand) -> None:
    """Its deletes are applied; those of the others stay."""
    table.run({**COMPACT, "where": "day = 'd0'"})


def do_the_rest(table: Stand) -> None:
    table.append(1000, 20)
    table.delete([1001])
    table.run("rewrite_manifests")
    table.run({**COMPACT, "sort_order": "at desc, id", "rewrite_all": True})
    table.run({"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1})


async def test_java_reads_the_same_rows_after_every_embedded_action(scene: SparkScene) -> None:
    for step in (merge_deletes, compact_one_partition, do_the_rest):
        await asyncio.to_thread(step, scene.table)
        rows = await asyncio.to_thread(scene.table.all_rows)
        assert await scene.spark.content("shop.orders") == content(rows), step.__name__
    assert len(rows) == 60 - 6 + 20 - 1


async def test_java_deletes_rows_and_both_engines_go_on_from_there(scene: SparkScene) -> None:
    """Position deletes that Spark wrote, applied by us; then Spark's readers again."""
    table = scene.table
    properties = "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'file'"
    await scene.spark.rows(f"ALTER TABLE kept.shop.orders SET TBLPROPERTIES ({properties})")
    await scene.spark.rows("DELETE FROM kept.shop.orders WHERE id IN (7, 8, 9)")
    assert (await asyncio.to_thread(table.run, "rewrite_manifests")).before["delete_files"] > 0
    outcome = await asyncio.to_thread(table.run, {**COMPACT, "rewrite_all": True})
    assert (outcome.status, outcome.after["files"]) == ("completed", 3)
    rows = await asyncio.to_thread(table.all_rows)
    assert [row["id"] for row in rows] == [i for i in range(60) if i not in (7, 8, 9)]
    assert await scene.spark.content("shop.orders") == content(rows)
