"""Deletes snapshots: cancels the jobs, deletes the row, and enqueues the deletion of the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphs.snapshots.repository import SQL
from penstock.graphs.snapshots.storage_cleanup import erasure
from penstock.kit import logging
from penstock.kit.errors import Conflict, DependencyExists

if TYPE_CHECKING:
    from penstock.graphs.snapshots.export_jobs import Exports
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db, Tx

MAX_LISTED = 20
log = logging.get(__name__)


class SnapshotRemoval:
    def __init__(self, db: Db, jobs: PgJobStore, snapshots: Snapshots, exports: Exports) -> None:
        self._db = db
        self._jobs = jobs
        self._snapshots = snapshots
        self._exports = exports

    async def drop(self, snapshot_id: int, *, actor: str) -> None:
        """Delete a snapshot, cancelling it first if in progress; DependencyExists while in use."""
        async with self._db.transaction() as tx:
            snapshot = await self._snapshots.get(snapshot_id, tx=tx)
            await _refuse_in_use(tx, snapshot_id)
        if snapshot.status.open:
            await self._exports.cancel(snapshot_id, actor=actor, reason="Its snapshot is deleted.")
        async with self._db.transaction() as tx:
            snapshot = await self._snapshots.hold(tx, snapshot_id)
            await _refuse_in_use(tx, snapshot_id)
            if snapshot.status.open:
                raise Conflict(
                    f"Snapshot {snapshot_id} was restarted concurrently.", hint="Try again."
                )
            if snapshot.prefix is not None:
                await self._jobs.enqueue([erasure(snapshot.prefix)], tx=tx)
            await tx.changed(SQL.snapshot_drop, snapshot_id=snapshot_id)
            tx.after_commit(
                lambda: log.info("snapshot_dropped", snapshot_id=snapshot_id, actor=actor)
            )


async def _refuse_in_use(tx: Tx, snapshot_id: int) -> None:
    needing = await tx.fetch(SQL.snapshot_dependants, snapshot_id=snapshot_id, limit=MAX_LISTED)
    if needing:
        total = needing[0]["total"]
        raise DependencyExists(
            f"{total} instances use snapshot {snapshot_id}.",
            hint="Terminate them first.",
            instance_count=total,
            instances=[
                {"id": row["instance_id"], "name": row["name"], "status": row["status"]}
                for row in needing
            ],
        )
