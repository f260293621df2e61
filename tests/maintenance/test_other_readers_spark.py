"""Java's Iceberg, in a real Spark, reads what the embedded engine maintained."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.maintenance.tables.assessment.facts import look
from penstock.maintenance.tables.assessment.tier import Tier
from tests.maintenance.spark_scene import SparkScene, spark_scene
from tests.maintenance.tables import COMPACT
from tests.servers.spark import content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.maintenance.tables import SampleTable
    from tests.servers.spark import Spark

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
async def scene(database: str, tmp_path: Path, spark: Spark) -> AsyncIterator[SparkScene]:
    async with spark_scene(database, tmp_path, spark) as scene:
        yield scene


def merge_deletes(table: SampleTable) -> None:
    """Two delete files of each partition become one; they are still to be applied."""
    table.delete([3, 4, 5])
    table.delete([13, 14, 15])
    table.run("rewrite_position_delete_files")


def compact_one_partition(table: SampleTable) -> None:
    """Its deletes are applied; those of the others stay."""
    table.run({**COMPACT, "where": "day = 'd0'"})


def do_the_rest(table: SampleTable) -> None:
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


ODD = ["a b", "a/b", "50%", "c:d", "e+f", "ünï", "i#j", "k?l", "..", "a%20b", "*y", "~z"]


async def test_files_that_java_wrote_into_odd_partitions_are_known_by_their_names(
    scene: SparkScene,
) -> None:
    """Java names them `file:/…` and writes what it percent-encoded as it is; we list `/…`."""
    table = scene.table
    root = Path(table.table.location().removeprefix("file://"))
    at = "TIMESTAMP '2026-01-01 00:00:00'"
    for start in (1000, 2000):
        values = ", ".join(f"({start + n}, '{value}', 'n', {at})" for n, value in enumerate(ODD))
        await scene.spark.rows(f"INSERT INTO kept.shop.orders VALUES {values}")
    before = await asyncio.to_thread(table.all_rows)

    def tidy() -> list[str]:
        junk = root / "data" / "day=a%2Fb" / "junk.parquet"
        junk.write_bytes(b"x")
        for path in root.rglob("*"):
            os.utime(path, (0, 0))
        assert look(table.table, Tier.STORAGE, now=datetime.now(UTC)).orphan_files == 1
        planned = table.plan("remove_orphan_files")
        assert planned.files == (str(junk),)
        expiry = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
        rewrite = {**COMPACT, "min_input_files": 2}
        return [table.run(action).status for action in ("remove_orphan_files", rewrite, expiry)]

    assert await asyncio.to_thread(tidy) == ["completed"] * 3
    assert await asyncio.to_thread(table.all_rows) == before
    assert await scene.spark.content("shop.orders") == content(before)
    assert len(list((root / "data").rglob("*.parquet"))) == 3 + len(ODD)
