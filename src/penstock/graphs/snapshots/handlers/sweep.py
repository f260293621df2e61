"""The sweep job: deletes files left behind by attempts that no manifest names."""

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
        connect: Callable[[], SnapshotControlPlane],
        object_store: ObjectStoreProvider,
        *,
        floor: timedelta = FLOOR,
    ) -> None:
        self._connect = connect
        self._object_store = object_store
        self._floor = floor

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:  # noqa: ARG002
        return Result(
            asdict(
                await Sweeper(
                    self._object_store.open(), "", floor=self._floor, live=self._live
                ).run_once()
            )
        )

    async def _live(self) -> Collection[str]:
        async with self._connect() as control_plane:
            return await control_plane.live_attempts()
