"""Export resync: ends what neither a worker nor a gate has ended.

The kernel's deadlines, leases and gates cover most cases. The rest: a query submitted long ago by
an attempt that is gone (its time limit counts from the submission, not from the last claim), a
parked job that nobody polls, and a snapshot whose jobs have all ended without a gate finalizing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.repository import SQL
from penstock.kit.loop import Loop, LoopMetrics

if TYPE_CHECKING:
    from penstock.graphs.runtime_config import PlatformConfig
    from penstock.graphs.snapshots.finalization import SnapshotFinalizer
    from penstock.jobs.reaper import Reaper
    from penstock.kit.db import Db

SILENCE = timedelta(minutes=30)
GRACE = timedelta(seconds=5)
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    requeued: int = 0
    failed: int = 0
    overdue: int = 0
    woken: int = 0
    finalised: int = 0

    @property
    def total(self) -> int:
        return self.requeued + self.failed + self.overdue + self.woken + self.finalised


class ExportResync(Loop[Reconciled]):
    name = "export_reconciliation"

    def __init__(
        self,
        db: Db,
        reaper: Reaper,
        finalizer: SnapshotFinalizer,
        *,
        every: float,
        metrics: LoopMetrics,
        config: PlatformConfig,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._reaper = reaper
        self._finalizer = finalizer
        self._config = config

    async def run_once(self) -> Reconciled:
        longest = (await self._config.export()).max_duration.total_seconds()
        overdue = await self._db.fetch(SQL.export_overdue, seconds=longest, limit=BATCH)
        woken = await self._db.fetch(
            SQL.export_silent, seconds=SILENCE.total_seconds(), limit=BATCH
        )
        reaped = await self._reaper.run_once()
        return Reconciled(
            requeued=reaped.requeued,
            failed=reaped.failed + reaped.expired,
            overdue=len(overdue),
            woken=len(woken),
            finalised=await self._finalize_stuck(),
        )

    async def _finalize_stuck(self) -> int:
        stuck = await self._db.fetch(SQL.snapshot_stuck, grace=GRACE.total_seconds(), limit=BATCH)
        finalised = 0
        for row in stuck:
            async with self._db.transaction() as tx:
                finalised += await self._finalizer.settle(tx, row["snapshot_id"])
        return finalised
