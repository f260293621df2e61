"""Enqueues the daily sweep job, which deletes files left behind by attempts; a worker runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.payloads import SWEEP
from penstock.jobs.model import JobSpec
from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.loop import Loop, LoopMetrics

if TYPE_CHECKING:
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`total` is 1 if today's sweep was enqueued now."""

    total: int = 0


class StorageSweep(Loop[Asked]):
    name = "storage_sweep"

    def __init__(
        self, db: Db, jobs: PgJobStore, *, every: float, metrics: LoopMetrics, clock: Clock = SYSTEM
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._jobs = jobs
        self._clock = clock

    async def run_once(self) -> Asked:
        if SWEEP not in self._jobs.kinds:
            return Asked()
        today = self._clock.now().date().isoformat()
        [added] = await self._jobs.enqueue([JobSpec(kind=SWEEP, unique_key=f"{SWEEP}:{today}")])
        return Asked(total=int(added.created))
