"""Progress of snapshots."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.graphs.snapshots.export_job import WORDS, ExportJob, Word
from penstock.graphs.snapshots.model import Snapshot, SnapshotStatus
from penstock.graphs.snapshots.repository import SQL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.graphs.snapshots.export_jobs import Exports
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.kit.db import Db

Phase: TypeAlias = Literal["pending", "exporting", "publishing", "ready", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The short form, for lists."""

    phase: Phase
    jobs: int
    done: int

    @property
    def percent(self) -> int:
        """99 when all exports are done: the manifest is still missing."""
        if self.phase == "ready":
            return 100
        return 99 * self.done // self.jobs if self.jobs else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotProgress:
    tally: Tally
    counts: Mapping[Word, int]
    jobs: Sequence[ExportJob]


class ProgressReport:
    def __init__(self, db: Db, snapshots: Snapshots, exports: Exports) -> None:
        self._db = db
        self._snapshots = snapshots
        self._exports = exports

    async def of(self, snapshot_id: int) -> SnapshotProgress:
        snapshot = await self._snapshots.get(snapshot_id)
        jobs = await self._exports.of_snapshot(snapshot_id)
        counts = Counter(job.status for job in jobs)
        return SnapshotProgress(
            tally=_tally(snapshot, len(jobs), counts["completed"]),
            counts={word: counts[word] for word in WORDS},
            jobs=jobs,
        )

    async def tallies(self, snapshots: Iterable[Snapshot]) -> dict[int, Tally]:
        """Tallies of many snapshots, in one query."""
        listed = list(snapshots)
        rows = await self._db.fetch(
            SQL.snapshot_tally, snapshot_ids=[snapshot.snapshot_id for snapshot in listed]
        )
        counts = {row["snapshot_id"]: (row["jobs"], row["done"]) for row in rows}
        return {
            snapshot.snapshot_id: _tally(snapshot, *counts.get(snapshot.snapshot_id, (0, 0)))
            for snapshot in listed
        }


def _tally(snapshot: Snapshot, jobs: int, done: int) -> Tally:
    return Tally(phase=_phase(snapshot), jobs=jobs, done=done)


def _phase(snapshot: Snapshot) -> Phase:
    match snapshot.status:
        case SnapshotStatus.CREATING:
            return "exporting" if snapshot.publish_job is None else "publishing"
        case SnapshotStatus.PENDING:
            return "pending"
        case SnapshotStatus.READY:
            return "ready"
        case SnapshotStatus.FAILED:
            return "failed"
        case SnapshotStatus.CANCELLED:
            return "cancelled"
