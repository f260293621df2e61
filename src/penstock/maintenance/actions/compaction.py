"""rewrite_data_files: compact small data files into large ones without changing any row.

Groups are rewritten one after the other and committed a few at a time. An exhausted budget or a
killed worker loses at most the groups that are not committed yet, and a conflict with another
writer affects one commit only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.kit.errors import StaleAttempt
from penstock.maintenance.actions.budget import Budget
from penstock.maintenance.actions.compaction_plan import CompactionPlan, plan_compaction
from penstock.maintenance.actions.group_writer import GroupWriter, Rewritten, discard
from penstock.maintenance.actions.model import Action, Ended, Name, Outcome
from penstock.maintenance.errors import (
    CommitConflict,
    CommitUnknown,
    ContentDiffers,
    Refused,
    UnreadableFile,
)
from penstock.maintenance.tables.commit.replacement import Change, NewFile, Replacement
from penstock.maintenance.tables.reading.content import ManifestReader

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from penstock.maintenance.actions.compaction_plan import Group
    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import TableAccess

log = logging.get(__name__)
GROUPS_A_COMMIT = 10


class Compaction:
    def __init__(
        self,
        table_access: TableAccess,
        context: ActionContext,
        action: Action,
        reader: ManifestReader | None = None,
    ) -> None:
        self._table_access = table_access
        self._context = context
        self._action = action
        self._budget = Budget(context, action)
        self._table: Table = table_access.load()
        self._reader = reader or ManifestReader(self._table.io)

    def plan(self) -> CompactionPlan:
        snapshot = self._table.metadata.current_snapshot()
        content = None if snapshot is None else self._reader.content(snapshot)
        return self._affordable(
            plan_compaction(self._table, content, self._action, now_ms=self._context.now_ms)
        )

    def _affordable(self, plan: CompactionPlan) -> CompactionPlan:
        """Cut groups that exceed the budget; a group of many files would otherwise never start."""
        groups = [self._cut(group) for group in plan.groups]
        affordable = tuple(group for group in groups if group is not None)
        out = sum(len(group.inputs) for group in plan.groups) - sum(
            len(group.inputs) for group in affordable
        )
        return replace(
            plan,
            groups=affordable,
            skipped={**plan.skipped, "budget": out} if out else plan.skipped,
        )

    def _cut(self, group: Group) -> Group | None:
        inputs = self._budget.fitting(
            group.inputs, lambda entry: entry.data_file.file_size_in_bytes
        )
        if len(inputs) == len(group.inputs):
            return group
        return replace(group, inputs=tuple(inputs)) if len(inputs) > 1 else None

    def execute(self) -> Outcome:
        plan = self.plan()
        if plan.content is None or not plan.groups:
            return Outcome(
                action=Name.REWRITE_DATA_FILES,
                status=Ended.PARTIAL if self._budget.spent else Ended.NOTHING_TO_DO,
                skipped=plan.skipped,
                message=self._budget.message(done=False),
            )
        replacement = Replacement(
            table_access=self._table_access,
            context=self._context,
            action=Name.REWRITE_DATA_FILES,
            plan=plan.content,
            reader=self._reader,
        )
        tally = _Tally(plan, self._budget)
        writer = GroupWriter(self._table, self._context, self._action, plan.target)
        try:
            self._work(plan, replacement, writer, tally)
        except (ContentDiffers, Refused, UnreadableFile) as e:
            if not tally.commits:
                raise
            tally.stop(e)
        finally:
            writer.close()
        return tally.outcome()

    def _work(
        self, plan: CompactionPlan, replacement: Replacement, writer: GroupWriter, tally: _Tally
    ) -> None:
        waiting: list[Rewritten] = []
        for group in plan.groups:
            if (tally.commits or waiting) and self._budget.late():
                break
            waiting.append(writer.write(group))
            if len(waiting) == GROUPS_A_COMMIT:
                self._commit(replacement, writer, waiting, tally)
                waiting = []
        if waiting:
            self._commit(replacement, writer, waiting, tally)

    def _commit(
        self, replacement: Replacement, writer: GroupWriter, done: list[Rewritten], tally: _Tally
    ) -> None:
        number = replacement.plan.snapshot.sequence_number or 0
        change = Change(
            removed=tuple(entry for rewritten in done for entry in rewritten.group.inputs),
            added=tuple(
                NewFile(file=file, sequence_number=number)
                for rewritten in done
                for file in rewritten.files
            ),
        )
        try:
            writer.check_independently(min(done, key=lambda rewritten: rewritten.bytes))
            self._context.step("files_verified")
            committed = replacement.commit(change, self._context.summary(Name.REWRITE_DATA_FILES))
        except (CommitUnknown, StaleAttempt):
            raise
        except CommitConflict as e:
            discard(self._table, change.added_files)
            tally.conflict(e.message, len(change.removed))
            log.info("compaction_abandoned", job_id=self._context.job_id, why=e.message)
        except BaseException:
            discard(self._table, change.added_files)
            raise
        else:
            tally.committed(done, committed.snapshot_id, committed.tries)


class _Tally:
    def __init__(self, plan: CompactionPlan, budget: Budget) -> None:
        self._budget = budget
        self._skipped = dict(plan.skipped)
        self._done: list[Rewritten] = []
        self._snapshots: list[int] = []
        self._why = ""
        self._failed = False
        self.tries = 0

    @property
    def commits(self) -> int:
        return len(self._snapshots)

    @property
    def files(self) -> int:
        return sum(len(rewritten.group.inputs) for rewritten in self._done)

    @property
    def bytes(self) -> int:
        return sum(rewritten.group.bytes for rewritten in self._done)

    def committed(self, done: list[Rewritten], snapshot_id: int, tries: int) -> None:
        self._done += done
        self._snapshots.append(snapshot_id)
        self.tries += tries

    def conflict(self, why: str, files: int) -> None:
        self._why = why
        self._skipped["conflict"] = self._skipped.get("conflict", 0) + files

    def stop(self, error: ContentDiffers | Refused | UnreadableFile) -> None:
        """Record the error that ended the work after some groups were committed."""
        self._why = error.message if error.hint is None else f"{error.message} {error.hint}"
        self._failed = not isinstance(error, Refused)

    def outcome(self) -> Outcome:
        added = [file for rewritten in self._done for file in rewritten.files]
        status = (
            Ended.PARTIAL if self._budget.spent or (self._why and self._done) else Ended.COMPLETED
        )
        if not self._done:
            status = Ended.ABANDONED if self._why else Ended.NOTHING_TO_DO
        if self._failed:
            status = Ended.FAILED
        return Outcome(
            action=Name.REWRITE_DATA_FILES,
            status=status,
            rewritten_files=self.files,
            rewritten_bytes=self.bytes,
            added_files=len(added),
            added_bytes=sum(file.file_size_in_bytes for file in added),
            rows=sum(rewritten.rows for rewritten in self._done),
            commits=self.commits,
            tries=self.tries,
            snapshot_ids=tuple(self._snapshots),
            skipped=self._skipped,
            message=self._why or self._budget.message(done=True),
        )
