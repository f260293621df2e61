"""expire_snapshots: old snapshots leave the history, and the files that only they named leave the storage.

The commit asserts every branch and tag as it was looked at. What may be deleted is found after it, from the metadata
of that moment; data goes before the manifests that name it and these before the lists, so a crash leaves orphans and
never a name without a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table.update import (
    AssertRefSnapshotId,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
)

from penstock.kit import logging
from penstock.maintenance.action import Action, Ended, Name, Outcome
from penstock.maintenance.errors import CommitConflict, CommitUnknown, Refused
from penstock.maintenance.lake import SameRefs, refs_of
from penstock.maintenance.references import ReferenceReader, references, statistics_paths
from penstock.maintenance.retention import Verdict, expired, rule_for

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableUpdate

    from penstock.maintenance.lake import Lake, Requirements
    from penstock.maintenance.run import Run

log = logging.get(__name__)
TRIES = 5


class Expiry:
    def __init__(self, lake: Lake, run: Run, action: Action) -> None:
        self._lake = lake
        self._run = run
        self._action = action

    def plan(self) -> Outcome:
        """Exactly what would go, if nobody committed in between."""
        table = self._lake.load()
        verdict = self._verdict(table)
        if not verdict.snapshots and not verdict.refs:
            return Outcome(action=Name.EXPIRE_SNAPSHOTS, status=Ended.NOTHING_TO_DO)
        removed = [s for s in table.metadata.snapshots if s.snapshot_id in verdict.snapshots]
        stays = [s for s in table.metadata.snapshots if s.snapshot_id not in verdict.snapshots]
        reader = ReferenceReader(table.io)
        kept = reader.manifests(stays)
        gone = reader.manifests(removed) - kept
        lists = {s.manifest_list for s in removed} - {s.manifest_list for s in stays}
        doomed = [
            *sorted(reader.named(gone) - reader.live(kept)),
            *sorted(statistics_paths(table, verdict.snapshots)),
            *sorted(gone),
            *sorted(lists),
        ]
        return Outcome(
            action=Name.EXPIRE_SNAPSHOTS,
            status=Ended.PLANNED,
            expired_snapshots=len(verdict.snapshots),
            deleted_files=len(doomed),
            deleted_bytes=sum(_size(table, path) for path in doomed),
            files=tuple(doomed),
        )

    def execute(self) -> Outcome:
        for _ in range(TRIES):
            table = self._lake.load()
            verdict = self._verdict(table)
            if not verdict.snapshots and not verdict.refs:
                return Outcome(action=Name.EXPIRE_SNAPSHOTS, status=Ended.NOTHING_TO_DO)
            reader = ReferenceReader(table.io)
            removed = [s for s in table.metadata.snapshots if s.snapshot_id in verdict.snapshots]
            manifests = reader.manifests(removed)
            self._run.step("expiry_planned")
            try:
                self._commit(table, verdict)
            except CommitConflict:
                continue
            self._run.step("expiry_committed")
            lists = frozenset(s.manifest_list for s in removed)
            return self._delete(reader, manifests, lists, statistics_paths(table, verdict.snapshots), verdict)
        return Outcome(
            action=Name.EXPIRE_SNAPSHOTS, status=Ended.ABANDONED, message="Branches or tags moved all the while."
        )

    def _verdict(self, table: Table) -> Verdict:
        check_collectable(table)
        verdict = expired(table.metadata, rule_for(table.metadata, self._action), now_ms=self._run.now_ms)
        limit = self._action.number("max_files", len(verdict.snapshots) or 1)
        oldest = sorted(verdict.snapshots, key=lambda i: _when(table, i))[:limit]
        return Verdict(snapshots=frozenset(oldest), refs=verdict.refs)

    def _commit(self, table: Table, verdict: Verdict) -> None:
        refs = refs_of(table.metadata)
        each = (AssertRefSnapshotId(ref=name, snapshot_id=snapshot_id) for name, snapshot_id in refs.items())
        asserts: Requirements = (*each, SameRefs(refs=refs))
        updates: list[TableUpdate] = [RemoveSnapshotRefUpdate(ref_name=name) for name in sorted(verdict.refs)]
        updates += [
            RemovePartitionStatisticsUpdate(snapshot_id=s.snapshot_id)
            for s in table.metadata.partition_statistics
            if s.snapshot_id in verdict.snapshots
        ]
        updates.append(RemoveSnapshotsUpdate(snapshot_ids=sorted(verdict.snapshots)))
        try:
            self._lake.commit(table, asserts, tuple(updates))
        except CommitUnknown:
            if verdict.snapshots & {s.snapshot_id for s in self._lake.load().metadata.snapshots}:
                raise

    def _delete(
        self,
        reader: ReferenceReader,
        manifests: frozenset[str],
        lists: frozenset[str],
        statistics: frozenset[str],
        verdict: Verdict,
    ) -> Outcome:
        table = self._lake.load()
        kept = references(table, reader)
        files = reader.named(manifests - kept.manifests) - kept.all
        count = size = 0
        for step, paths in (
            ("data_deleted", (files | statistics) - kept.all),
            ("manifests_deleted", manifests - kept.all),
            ("lists_deleted", lists - kept.all),
        ):
            for path in sorted(paths):
                size += remove(table, path)
                count += 1
                if count % 100 == 0:
                    self._run.check()
            self._run.step(step)
        log.info("snapshots_expired", job_id=self._run.job_id, snapshots=len(verdict.snapshots), files=count)
        return Outcome(
            action=Name.EXPIRE_SNAPSHOTS,
            status=Ended.COMPLETED,
            expired_snapshots=len(verdict.snapshots),
            deleted_files=count,
            deleted_bytes=size,
            commits=1,
        )


def check_collectable(table: Table) -> None:
    if str(table.properties.get("gc.enabled", "true")).lower() == "false":
        raise Refused(
            "gc.enabled is false: somebody else may own files of this table.", hint="Nothing is deleted here."
        )


def remove(table: Table, path: str) -> int:
    """Delete a file, and say how large it was; one that is gone already is no fault."""
    try:
        size = len(table.io.new_input(path))
        table.io.delete(path)
    except FileNotFoundError:
        return 0
    return size


def _size(table: Table, path: str) -> int:
    try:
        return len(table.io.new_input(path))
    except FileNotFoundError:
        return 0


def _when(table: Table, snapshot_id: int) -> int:
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    return 0 if snapshot is None else snapshot.timestamp_ms
