"""expire_snapshots: remove old snapshots and delete the files that only they reference.

The commit asserts that no branch or tag has changed since planning and that `gc.enabled` is still
not false. The files to delete are computed after the commit, from the current metadata. Data files
are deleted before the manifests that reference them, and manifests before the manifest lists, so a
crash leaves orphan files and never a dangling reference. A record of the pending deletion is
written before the commit; the table's next job finishes what a crash left (see `pending_deletion`).
A location shared with another table is refused before the commit, and files that may belong to
another table are left (see `table_folders`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotRefUpdate,
)

from penstock.kit import logging
from penstock.kit.errors import PenstockError, Unavailable
from penstock.maintenance.actions.budget import Budget
from penstock.maintenance.actions.model import Action, Ended, Name, Outcome
from penstock.maintenance.actions.pending_deletion import (
    Deleted,
    DeletionPlanner,
    PendingDeletion,
    Unreferenced,
    delete_files,
    write_record,
)
from penstock.maintenance.actions.retention import Verdict, expired, rule_for
from penstock.maintenance.errors import (
    CommitConflict,
    CommitUnknown,
    Refused,
    TableUnreadable,
)
from penstock.maintenance.tables.catalog.table_access import SameRefs, refs_of
from penstock.maintenance.tables.commit.protection import Allowed, check_table
from penstock.maintenance.tables.commit.snapshot_log import RemoveSnapshots
from penstock.maintenance.tables.ownership.garbage_collection import Collectable, check_collectable
from penstock.maintenance.tables.ownership.references import (
    ReferenceReader,
    references,
    statistics_paths,
)
from penstock.maintenance.tables.ownership.storage import delete_file, file_size
from penstock.maintenance.tables.ownership.table_folders import Foreign, TableFolders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableUpdate

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import Requirements, TableAccess
    from penstock.maintenance.tables.ownership.neighbors import Neighbor

log = logging.get(__name__)
TRIES = 5
ROUND = 50
"""Snapshots per commit when the action has a time limit."""
FILES_WAIT = "The snapshots are expired; the next job deletes their remaining files."
FILES_LEFT = (
    "gc.enabled was set to false during the action; files of expired snapshots were not deleted."
)


@dataclass(frozen=True, slots=True)
class HasSnapshots:
    """Commit requirement: the snapshots have not been expired by another writer."""

    snapshot_ids: frozenset[int]

    def validate(self, base_metadata: TableMetadata | None) -> None:
        snapshots = () if base_metadata is None else base_metadata.snapshots
        if not self.snapshot_ids <= {snapshot.snapshot_id for snapshot in snapshots}:
            raise CommitFailedException("Another writer expired snapshots concurrently.")


class Expiry:
    def __init__(self, table_access: TableAccess, context: ActionContext, action: Action) -> None:
        self._table_access = table_access
        self._context = context
        self._action = action
        self._budget = Budget(context, action)
        self._sizes: dict[str, int] = {}
        self._neighbors: list[Neighbor] | None = None

    def plan(self) -> Outcome:
        """What `execute` would remove if no other writer committed in between."""
        table = self._table_access.load()
        whole = self._verdict(table)
        planner = self._planner(table, whole)
        verdict = self._affordable(table, planner, whole)
        if verdict.nothing:
            message = self._budget.message(done=False)
            return Outcome(
                action=Name.EXPIRE_SNAPSHOTS,
                status=Ended.NOTHING_TO_DO,
                message=message,
            )
        unreferenced = _unreferenced(table, planner, verdict.snapshots)
        return Outcome(
            action=Name.EXPIRE_SNAPSHOTS,
            status=Ended.PLANNED,
            expired_snapshots=len(verdict.snapshots),
            deleted_files=len(unreferenced.all),
            deleted_bytes=self._size(table, unreferenced.all),
            files=unreferenced.all,
            skipped=unreferenced.foreign,
            message=_foreign_files_message(unreferenced.foreign),
        )

    def execute(self) -> Outcome:
        """Expire in one commit, or in rounds when the action has a time limit."""
        done = Outcome(action=Name.EXPIRE_SNAPSHOTS, status=Ended.NOTHING_TO_DO)
        conflicts = 0
        conflict = ""
        while conflicts < TRIES and not (done.commits and self._budget.late()):
            table = self._table_access.load()
            try:
                whole = self._verdict(table)
                planner = self._planner(table, whole)
            except Refused as e:
                if not done.commits:
                    raise
                return replace(done, status=Ended.PARTIAL, message=e.message)
            verdict = self._affordable(table, planner, whole)
            if self._budget.timed:
                verdict = replace(verdict, snapshots=frozenset(_oldest(table, verdict)[:ROUND]))
            if verdict.nothing:
                return self._ended(done)
            try:
                done = _added(done, self._round(table, planner, verdict))
            except CommitConflict as e:
                conflicts += 1
                conflict = e.message
                continue
            if done.message or verdict.snapshots == whole.snapshots:
                return self._ended(done)
        if conflicts == TRIES:
            status = Ended.PARTIAL if done.commits else Ended.ABANDONED
            message = f"Gave up after {TRIES} commit conflicts with other writers: {conflict}"
            return replace(done, status=status, message=message)
        return self._ended(done)

    def _ended(self, done: Outcome) -> Outcome:
        foreign = _foreign_files_message(done.skipped)
        if done.message:
            return replace(done, status=Ended.PARTIAL, message=f"{done.message} {foreign}".strip())
        status = (
            Ended.PARTIAL
            if self._budget.spent
            else Ended.COMPLETED
            if done.commits
            else Ended.NOTHING_TO_DO
        )
        message = f"{self._budget.message(done=bool(done.commits))} {foreign}".strip()
        return replace(done, status=status, message=message)

    def _round(self, table: Table, planner: DeletionPlanner, verdict: Verdict) -> Outcome:
        pending = _pending(table, verdict.snapshots)
        _unreferenced(table, planner, verdict.snapshots)  # raises before anything is committed
        self._context.step("expiry_planned")
        record = write_record(table, self._context, pending)
        self._context.step("deletion_recorded")
        try:
            self._commit(table, verdict)
        except (CommitConflict, Refused):
            delete_file(table.io, record)
            raise
        self._context.step("expiry_committed")
        deleted, message = self._delete(planner.reader, pending)
        if not deleted.stopped:
            delete_file(table.io, record)
            self._context.step("record_removed")
        self._budget.take(deleted.files, deleted.bytes)
        log.info(
            "snapshots_expired",
            job_id=self._context.job_id,
            snapshots=len(verdict.snapshots),
            files=deleted.files,
            **deleted.foreign,
        )
        return Outcome(
            action=Name.EXPIRE_SNAPSHOTS,
            status=Ended.COMPLETED,
            expired_snapshots=len(verdict.snapshots),
            deleted_files=deleted.files,
            deleted_bytes=deleted.bytes,
            skipped=deleted.foreign,
            commits=1,
            message=message,
        )

    def _delete(self, reader: ReferenceReader, pending: PendingDeletion) -> tuple[Deleted, str]:
        """Runs after the commit. If files remain, the record also stays for the next job."""
        try:
            deleted = delete_files(
                self._table_access, self._context, reader, self._neighbors or (), pending
            )
        except (OSError, Refused, TableUnreadable, Unavailable) as e:
            log.warning("expiry_not_finished", job_id=self._context.job_id, error=str(e))
            return Deleted(stopped=True), f"{FILES_WAIT} {e}"
        return deleted, FILES_LEFT if deleted.stopped else ""

    def _planner(self, table: Table, verdict: Verdict) -> DeletionPlanner:
        """Refused when another table shares the location. Other tables are listed once, and only
        if there are snapshots to expire.
        """
        if self._neighbors is None and verdict.snapshots:
            self._neighbors = self._table_access.neighbors()
        folders = TableFolders(table, self._neighbors or ())
        folders.check_own()
        return DeletionPlanner(table, ReferenceReader(table.io), folders)

    def _verdict(self, table: Table) -> Verdict:
        check_table(table, Name.EXPIRE_SNAPSHOTS)
        check_collectable(table)
        return expired(
            table.metadata, rule_for(table.metadata, self._action), now_ms=self._context.now_ms
        )

    def _affordable(self, table: Table, planner: DeletionPlanner, verdict: Verdict) -> Verdict:
        """As many of the oldest snapshots as the budget allows for their files. The number of files
        grows with the number of snapshots, so a binary search finds the limit."""
        if not self._budget.sized or not verdict.snapshots:
            return verdict
        oldest = _oldest(table, verdict)

        def is_too_much(count: int) -> bool:
            unreferenced = _unreferenced(table, planner, frozenset(oldest[:count])).all
            return not self._budget.holds(len(unreferenced), self._size(table, unreferenced))

        count = bisect_left(range(1, len(oldest) + 1), True, key=is_too_much)
        self._budget.spent = self._budget.spent or count < len(oldest)
        return replace(verdict, snapshots=frozenset(oldest[:count]))

    def _size(self, table: Table, paths: Sequence[str]) -> int:
        for path in paths:
            if path not in self._sizes:
                self._sizes[path] = file_size(table.io, path) or 0
        return sum(self._sizes[path] for path in paths)

    def _commit(self, table: Table, verdict: Verdict) -> None:
        refs = refs_of(table.metadata)
        asserts: Requirements = (
            *(AssertRefSnapshotId(ref=name, snapshot_id=head) for name, head in refs.items()),
            SameRefs(refs=refs),
            HasSnapshots(verdict.snapshots),
            Collectable(),
            Allowed(Name.EXPIRE_SNAPSHOTS),
        )
        updates: list[TableUpdate] = [
            RemoveSnapshotRefUpdate(ref_name=name) for name in sorted(verdict.refs)
        ]
        updates += [
            RemovePartitionStatisticsUpdate(snapshot_id=s.snapshot_id)
            for s in table.metadata.partition_statistics
            if s.snapshot_id in verdict.snapshots
        ]
        updates.append(RemoveSnapshots(snapshot_ids=sorted(verdict.snapshots)))
        try:
            self._table_access.commit(table, asserts, tuple(updates))
        except CommitUnknown:
            if not self._landed(table, verdict):
                raise

    def _landed(self, table: Table, verdict: Verdict) -> bool:
        """Whether a commit with unknown outcome is in the table."""
        try:
            metadata = self._table_access.load().metadata
        except PenstockError as e:
            log.warning("commit_not_looked_up", job_id=self._context.job_id, error=e.message)
            return False
        present = {s.snapshot_id for s in metadata.snapshots}
        left = verdict.snapshots & present or verdict.refs & metadata.refs.keys()
        return not left and metadata.table_uuid == table.metadata.table_uuid


def _pending(table: Table, snapshots: frozenset[int]) -> PendingDeletion:
    expired_ones = [s for s in table.metadata.snapshots if s.snapshot_id in snapshots]
    return PendingDeletion(
        table_uuid=str(table.metadata.table_uuid),
        snapshot_ids=snapshots,
        manifest_lists=frozenset(snapshot.manifest_list for snapshot in expired_ones),
        statistics=statistics_paths(table, snapshots),
    )


def _unreferenced(
    table: Table, planner: DeletionPlanner, snapshots: frozenset[int]
) -> Unreferenced:
    """The files that only these snapshots reference, in the order of deletion."""
    live = references(table, planner.reader, without=snapshots)
    return planner.unreferenced(_pending(table, snapshots), live)


def _foreign_files_message(foreign: Mapping[str, int]) -> str:
    """Reports the files that no later action will delete either."""
    parts = {
        Foreign.OUTSIDE: "outside the table's location and write paths",
        Foreign.SHARED: "in a folder of another table",
    }
    counts = [f"{foreign[reason]} {where}" for reason, where in parts.items() if reason in foreign]
    return f"Files of expired snapshots were not deleted: {', '.join(counts)}." if counts else ""


def _added(one: Outcome, other: Outcome) -> Outcome:
    return replace(
        one,
        expired_snapshots=one.expired_snapshots + other.expired_snapshots,
        deleted_files=one.deleted_files + other.deleted_files,
        deleted_bytes=one.deleted_bytes + other.deleted_bytes,
        commits=one.commits + other.commits,
        skipped=dict(Counter(one.skipped) + Counter(other.skipped)),
        message=other.message,
    )


def _oldest(table: Table, verdict: Verdict) -> list[int]:
    return sorted(verdict.snapshots, key=lambda snapshot_id: _when(table, snapshot_id))


def _when(table: Table, snapshot_id: int) -> int:
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    return 0 if snapshot is None else snapshot.timestamp_ms
