"""The reaper: what a vanished worker held goes back to the queue, and what ran out of time or
attempts fails.

Any number of reapers may run; each statement re-checks the lease under the row's lock, so a renewal
in flight wins.

Leases also lapse when workers are well and nobody hears their heartbeats: while the only control
plane restarts, or the database is away. So a reaper that starts, or comes back from an outage, and
finds that no worker was heard of lately, lets them renew before it takes anything from them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.jobs.model import Reaped
from penstock.kit import logging
from penstock.kit.loop import Loop, LoopMetrics
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db

SQL = load("penstock.jobs.sql")
log = logging.get(__name__)


class Reaper(Loop[Reaped]):
    name = "reaper"
    exclusive = False

    def __init__(
        self,
        db: Db,
        store: PgJobStore,
        *,
        every: float,
        metrics: LoopMetrics,
        batch: int = 500,
        grace: float = 0.0,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._store = store
        self._batch = batch
        self._grace = grace
        self._ticks = ticks
        self._passed_at = float("-inf")
        self._listening_since = float("-inf")

    async def run_once(self) -> Reaped:
        """Batch after batch until one is not full: what a whole fleet held is taken back in one
        pass."""
        vanished = await self._workers_could_renew()
        reaped = last = await self._store.reap(limit=self._batch, vanished=vanished)
        while max(last.requeued + last.failed, last.expired) >= self._batch:
            last = await self._store.reap(limit=self._batch, vanished=vanished)
            reaped += last
        self._passed_at = self._ticks()
        return reaped

    async def _workers_could_renew(self) -> bool:
        """Whether heartbeats could be written for so long that a lease which lapsed is its worker's
        fault.

        An outage that is shorter than the grace lapses no lease that was renewed before it.
        """
        now = self._ticks()
        if now - self._passed_at > self._grace and await self._db.value(
            SQL.workers_unheard, seconds=self._grace
        ):
            self._listening_since = now
            log.info("reaper_waits_for_heartbeats", seconds=self._grace)
        return now >= self._listening_since + self._grace
