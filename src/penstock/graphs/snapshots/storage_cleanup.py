"""Deletes the files of snapshots that failed long ago; the rows stay, for inspection or a retry.

Only workers access the storage: the row's prefix is cleared in the transaction that enqueues the
deletion job.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.graphs.snapshots.payloads import ERASE
from penstock.graphs.snapshots.repository import SQL
from penstock.jobs.model import JobSpec
from penstock.kit.loop import Loop, LoopMetrics

if TYPE_CHECKING:
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db

KEPT = timedelta(days=7)
STILL_WRITTEN = timedelta(days=1)
"""For this long after a failure, the last attempts may still have written files."""
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    snapshots: int = 0

    @property
    def total(self) -> int:
        return self.snapshots


class StorageCleanup(Loop[Cleaned]):
    name = "storage_cleanup"

    def __init__(
        self, db: Db, jobs: PgJobStore, snapshots: Snapshots, *, every: float, metrics: LoopMetrics
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._jobs = jobs
        self._snapshots = snapshots

    async def run_once(self) -> Cleaned:
        cleaned = 0
        while spent := await self._db.fetch(SQL.snapshot_spent, kept=KEPT, limit=BATCH):
            cleaned += sum([await self._clean(row["snapshot_id"]) for row in spent])
        return Cleaned(snapshots=cleaned)

    async def _clean(self, snapshot_id: int) -> bool:
        async with self._db.transaction() as tx:
            snapshot = await self._snapshots.lock(tx, snapshot_id)
            if snapshot.status is not SnapshotStatus.FAILED or snapshot.prefix is None:
                return False
            await tx.changed(SQL.snapshot_place, snapshot_id=snapshot_id, prefix=None)
            await self._jobs.enqueue(
                [erasure(snapshot.prefix, before=snapshot.updated_at + STILL_WRITTEN)], tx=tx
            )
        return True


def erasure(prefix: str, *, before: datetime | None = None) -> JobSpec:
    """A job that deletes the files under a prefix, optionally only those written before a time."""
    moment = {} if before is None else {"before": before.isoformat()}
    return JobSpec(kind=ERASE, payload={"prefix": prefix, **moment})
