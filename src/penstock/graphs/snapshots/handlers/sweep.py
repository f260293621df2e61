"""The sweep job: removes what attempts left behind and no manifest names."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.jobs.handler import Answer, Result
from penstock.storage.sweeper import Sweeper

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from penstock.graphs.snapshots.control_plane import SnapshotControlPlane
    from penstock.jobs.handler import Job, JobContext
    from penstock.storage.provider import ObjectStoreProvider

FLOOR = timedelta(hours=48)


class StorageSweeper:
    def __init__(
        self,
        planes: Callable[[], SnapshotControlPlane],
        depot: ObjectStoreProvider,
        *,
        floor: timedelta = FLOOR,
    ) -> None:
        self._planes = planes
        self._depot = depot
        self._floor = floor

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:  # noqa: ARG002
        return Result(
            asdict(
                await Sweeper(self._depot.open(), "", floor=self._floor, live=self._live).run_once()
            )
        )

    async def _live(self) -> Collection[str]:
        async with self._planes() as plane:
            return await plane.live_attempts()
