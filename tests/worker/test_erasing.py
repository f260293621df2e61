"""The erase job removes what it is told, and nothing beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.storage_cleanup import erasure
from tests.graphs.stand import Stand, settings, standing, until

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.jobs.model import JobSpec


async def done(stand: Stand, spec: JobSpec) -> object:
    [added] = await stand.parts.store.enqueue([spec])

    async def over() -> bool:
        return (await stand.parts.store.job(added.job_id)).status.over

    async with stand.working():
        await until(over)
    return (await stand.parts.store.job(added.job_id)).result


async def test_files_go_with_their_prefix_and_those_of_a_newer_try_stay(
    database: str, tmp_path: Path
) -> None:
    async with standing(database, settings(tmp_path)) as stand:
        names = [
            f"me/1/v1/{number}/{name}"
            for number in (1, 10)
            for name in ("nodes/A/part-1.parquet", "manifest.json")
        ]
        for name in names:
            await stand.store.create(name, b"12345")
        yesterday = datetime.now(UTC) - timedelta(days=1)
        assert await done(stand, erasure("me/1/v1/1/", before=yesterday)) == {
            "objects": 0,
            "bytes": 0,
        }
        assert await done(stand, erasure("me/1/v1/1/")) == {"objects": 2, "bytes": 10}
        assert await stand.files() == sorted(names[2:])


async def test_the_whole_storage_is_never_erased(database: str, tmp_path: Path) -> None:
    async with standing(database, settings(tmp_path)) as stand:
        await stand.store.create("me/file", b"1")
        assert await done(stand, erasure("")) is None
        assert await stand.files() == ["me/file"]
