"""The erase job removes what it is told, and nothing beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.storage_cleanup import erasure
from tests.graphs.deployment import Deployment, running_deployment, settings, until

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.jobs.model import JobSpec


async def done(deployment: Deployment, spec: JobSpec) -> object:
    [added] = await deployment.services.store.enqueue([spec])

    async def over() -> bool:
        return (await deployment.services.store.job(added.job_id)).status.over

    async with deployment.working():
        await until(over)
    return (await deployment.services.store.job(added.job_id)).result


async def test_files_go_with_their_prefix_and_those_of_a_newer_try_stay(
    database: str, tmp_path: Path
) -> None:
    async with running_deployment(database, settings(tmp_path)) as deployment:
        names = [
            f"me/1/v1/{number}/{name}"
            for number in (1, 10)
            for name in ("nodes/A/part-1.parquet", "manifest.json")
        ]
        for name in names:
            await deployment.store.create(name, b"12345")
        yesterday = datetime.now(UTC) - timedelta(days=1)
        assert await done(deployment, erasure("me/1/v1/1/", before=yesterday)) == {
            "objects": 0,
            "bytes": 0,
        }
        assert await done(deployment, erasure("me/1/v1/1/")) == {"objects": 2, "bytes": 10}
        assert await deployment.files() == sorted(names[2:])


async def test_the_whole_storage_is_never_erased(database: str, tmp_path: Path) -> None:
    async with running_deployment(database, settings(tmp_path)) as deployment:
        await deployment.store.create("me/file", b"1")
        assert await done(deployment, erasure("")) is None
        assert await deployment.files() == ["me/file"]
