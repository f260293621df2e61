"""expire_snapshots: old snapshots leave the history, and the files that only they named leave the storage.

The commit asserts every branch and tag as it was looked at. What may be deleted is found after it, from the metadata
of that moment; data goes before the manifests that name it and these before the lists, so a crash leaves orphans and
never a name without a file.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

from pyiceberg.table.update import (
    AssertRefSnapshotId,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
)

from penstock.kit import logging
from penstock.maintenance.action import Action, Ended, Name, Outcome
from penstock.maintenance.budget import Budget
from penstock.maintenance.errors import CommitConflict, CommitUnknown, Refused
from penstock.maintenance.lake import SameRefs, refs_of
from penstock.maintenance.references import ReferenceReader, references, statistics_paths
from penstock.maintenance.retention import Verdict, expired, rule_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table import Table
    from pyiceberg.table.update import TableUpdate

    from penstock.maintenance.lake import Lake, Requirements
    from penstock.maintenance.run import Run

log = logging.get(__name__)
TRIES = 5
ROUND = 50
"""So many snapshots a commit where there is a limit of time."""


class Expiry:
    def __init__(self, lake: Lake, run: Run, action: Action) -> None:
        self._lake = lake
        self._run = run
        self._action = action
        self._budget = Budget(run, action)
        self._sizes: dict[str, int] = {}

    def plan(self) -> Outcome:
        """Exactly what would go, if nobody committed in between."""
        table = self._lake.load()
        reader = ReferenceReader(table.io)
        verdict = self._affordable(table, reader, self._verdict(table))
        if verdict.nothing:
            said = self._budget.message(done=False)
            return Outcome(action=Name.EXPIRE_SNAPSHOTS, status=Ended.NOTHING_TO_DO, message=said)
        doomed = _doomed(table, reader, verdict.snapshots)
        return Outcome(
            action=Name.EXPIRE_SNAPSHOTS,
            status=Ended.PLANNED,
            expired_snapshots=len(verdict.snapshots),
            deleted_files=len(doomed),
            deleted_bytes=self._size(table, doomed),
            files=tuple(doomed),
        )

    def execute(self) -> Outcome:
        """In rounds where there is a limit of time; else in one."""
        done = Outcome(action=Name.EXPIRE_SNAPSHOTS, status=Ended.NOTHING_TO_DO)
        conflicts = 0
        while conflicts < TRIES and not (done.commits and self._budget.late()):
            table = self._lake.load()
            whole, reader = self._verdict(table), ReferenceReader(table.io)
            verdict = self._affordable(table, reader, whole)
            if self._budget.timed:
                verdict = replace(verdict, snapshots=frozenset(_oldest(table, verdict)[:ROUND]))
            if verdict.nothing:
                return self._ended(done)
            try:
                done = _added(done, self._round(table, reader, verdict))
            except CommitConflict:
                conflicts += 1
                continue
            if verdict.snapshots == whole.snapshots:
                return self._ended(done)
        if conflicts == TRIES and not done.commits:
            return replace(done, status=Ended.ABANDONED, message="Branches or tags moved all the while.")
        return self._ended(done)

    def _ended(self, done: Outcome) -> Outcome:
        status = Ended.PARTIAL if self._budget.spent else Ended.COMPLETED if done.commits else Ended.NOTHING_TO_DO
        return replace(done, status=status, message=self._budget.message(done=bool(done.commits)))

    def _round(self, table: Table, reader: ReferenceReader, verdict: Verdict) -> Outcome:
        removed = [s for s in table.metadata.snapshots if s.snapshot_id in verdict.snapshots]
        manifests = reader.manifests(removed)
        self._run.step("expiry_planned")
        self._commit(table, verdict)
        self._run.step("expiry_committed")
        lists = frozenset(s.manifest_list for s in removed)
        done = self._delete(reader, manifests, lists, statistics_paths(table, verdict.snapshots), verdict)
        self._budget.take(done.deleted_files, done.deleted_bytes)
        return done

    def _verdict(self, table: Table) -> Verdict:
        check_collectable(table)
        return expired(table.metadata, rule_for(table.metadata, self._action), now_ms=self._run.now_ms)

    def _affordable(self, table: Table, reader: ReferenceReader, verdict: Verdict) -> Verdict:
        """As many of the oldest snapshots as the files that go with them fit; more snapshots never free fewer files."""
        if not self._budget.sized or not verdict.snapshots:
            return verdict
        oldest = _oldest(table, verdict)

        def is_too_much(count: int) -> bool:
            doomed = _doomed(table, reader, frozenset(oldest[:count]))
            return not self._budget.holds(len(doomed), self._size(table, doomed))

        count = bisect_left(range(1, len(oldest) + 1), True, key=is_too_much)
        self._budget.spent = self._budget.spent or count < len(oldest)
        return replace(verdict, snapshots=frozenset(oldest[:count]))

    def _size(self, table: Table, paths: Sequence[str]) -> int:
        for path in paths:
            if path not in self._sizes:
                self._sizes[path] = _size(table, path)
        return sum(self._sizes[path] for path in paths)

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
                freed = _remove(table, path)
                count, size = count + (freed is not None), size + (freed or 0)
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


def _doomed(table: Table, reader: ReferenceReader, snapshots: frozenset[int]) -> list[str]:
    """What only these snapshots name, in the order in which it goes."""
    removed = [s for s in table.metadata.snapshots if s.snapshot_id in snapshots]
    stays = [s for s in table.metadata.snapshots if s.snapshot_id not in snapshots]
    kept = reader.manifests(stays)
    gone = reader.manifests(removed) - kept
    lists = {s.manifest_list for s in removed} - {s.manifest_list for s in stays}
    return [
        *sorted(reader.named(gone) - reader.live(kept)),
        *sorted(statistics_paths(table, snapshots)),
        *sorted(gone),
        *sorted(lists),
    ]


def _added(one: Outcome, other: Outcome) -> Outcome:
    return replace(
        one,
        expired_snapshots=one.expired_snapshots + other.expired_snapshots,
        deleted_files=one.deleted_files + other.deleted_files,
        deleted_bytes=one.deleted_bytes + other.deleted_bytes,
        commits=one.commits + other.commits,
    )


def _oldest(table: Table, verdict: Verdict) -> list[int]:
    return sorted(verdict.snapshots, key=lambda snapshot_id: _when(table, snapshot_id))


def check_collectable(table: Table) -> None:
    if str(table.properties.get("gc.enabled", "true")).lower() == "false":
        raise Refused(
            "gc.enabled is false: somebody else may own files of this table.", hint="Nothing is deleted here."
        )


def _remove(table: Table, path: str) -> int | None:
    """Delete a file, and say how large it was; one that is gone already is no fault."""
    try:
        size = len(table.io.new_input(path))
        table.io.delete(path)
    except FileNotFoundError:
        return None
    return size


def _size(table: Table, path: str) -> int:
    try:
        return len(table.io.new_input(path))
    except FileNotFoundError:
        return 0


def _when(table: Table, snapshot_id: int) -> int:
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    return 0 if snapshot is None else snapshot.timestamp_ms
