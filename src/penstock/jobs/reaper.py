"""The reaper: what a vanished worker held goes back to the queue, and what ran out of time or attempts fails.

Any number of reapers may run; each statement re-checks the lease under the row's lock, so a renewal in flight wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.jobs.model import Reaped
from penstock.kit.loop import Loop, LoopMetrics

if TYPE_CHECKING:
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db


class Reaper(Loop[Reaped]):
    name = "reaper"
    exclusive = False

    def __init__(self, db: Db, store: PgJobStore, *, every: float, metrics: LoopMetrics, batch: int = 500) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._store = store
        self._batch = batch

    async def run_once(self) -> Reaped:
        """Batch after batch until one is not full: what a whole fleet held is taken back in one pass."""
        reaped = last = await self._store.reap(limit=self._batch)
        while max(last.requeued + last.failed, last.expired) >= self._batch:
            last = await self._store.reap(limit=self._batch)
            reaped += last
        return reaped
