"""The sweep job: removes what attempts left behind and no manifest names."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.storage.sweeper import Sweeper
from penstock.worker.handlers import Answer, Result

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.worker.context import JobContext
    from penstock.worker.depot import Depot
    from penstock.worker.handlers import Job
    from penstock.worker.plane import PlaneFactory

FLOOR = timedelta(hours=48)


class StorageSweeper:
    def __init__(self, planes: PlaneFactory, depot: Depot, *, floor: timedelta = FLOOR) -> None:
        self._planes = planes
        self._depot = depot
        self._floor = floor

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:  # noqa: ARG002
        return Result(asdict(await Sweeper(self._depot.open(), "", floor=self._floor, live=self._live).run_once()))

    async def _live(self) -> Collection[str]:
        async with self._planes() as plane:
            return await plane.live_attempts()
