"""rewrite_position_delete_files: drop dangling position deletes and merge small delete files.

A merged file gets the greatest sequence number of the files that it replaces. So it must not hold a
row that did not apply before: a path may have been removed and added again after its rows were
deleted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import ManifestContent

from penstock.kit.errors import StaleAttempt
from penstock.maintenance.actions.budget import Budget
from penstock.maintenance.actions.compaction_plan import check_readable
from penstock.maintenance.actions.group_writer import discard
from penstock.maintenance.actions.model import Action, Ended, Name, Outcome
from penstock.maintenance.errors import CommitConflict, CommitUnknown
from penstock.maintenance.tables.commit.delete_file import write_positions
from penstock.maintenance.tables.commit.replacement import Change, NewFile, Replacement
from penstock.maintenance.tables.reading.content import (
    Content,
    ManifestReader,
    applies,
    duplicate_paths,
    may_touch,
    only_data_file,
    partition_key,
)
from penstock.maintenance.tables.reading.positions import read_positions, rows_of, touches

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import TableAccess
    from penstock.maintenance.tables.reading.content import PartitionKey

MIN_INPUT_FILES = 2
Chosen: TypeAlias = "dict[PartitionKey, list[ManifestEntry]]"


class DeleteRewrite:
    def __init__(
        self,
        table_access: TableAccess,
        context: ActionContext,
        action: Action,
        reader: ManifestReader | None = None,
    ) -> None:
        self._table_access = table_access
        self._context = context
        self._budget = Budget(context, action)
        self._least = action.number("min_input_files", MIN_INPUT_FILES)
        self._table: Table = table_access.load()
        self._reader = reader or ManifestReader(self._table.io)
        self._skipped: Counter[str] = Counter()

    def plan(self) -> Outcome:
        content = self._content()
        chosen = (
            []
            if content is None
            else [e for entries in self._chosen(content).values() for e in entries]
        )
        if not chosen:
            return replace(self._nothing(), status=Ended.NOTHING_TO_DO)
        return Outcome(
            action=Name.REWRITE_POSITION_DELETE_FILES,
            status=Ended.PLANNED,
            rewritten_files=len(chosen),
            rewritten_bytes=sum(e.data_file.file_size_in_bytes for e in chosen),
            files=tuple(e.data_file.file_path for e in chosen),
            skipped=dict(self._skipped),
        )

    def execute(self) -> Outcome:
        content = self._content()
        chosen = {} if content is None else self._chosen(content)
        if content is None or not chosen:
            return self._nothing()
        added, removed = self._written(content, chosen)
        change = Change(removed=removed, added=added, content=ManifestContent.DELETES)
        files = change.added_files
        replacement = Replacement(
            table_access=self._table_access,
            context=self._context,
            action=Name.REWRITE_POSITION_DELETE_FILES,
            plan=content,
            reader=self._reader,
        )
        try:
            done = replacement.commit(
                change, self._context.summary(Name.REWRITE_POSITION_DELETE_FILES)
            )
        except (CommitUnknown, StaleAttempt):
            raise
        except CommitConflict as e:
            discard(self._table, files)
            return Outcome(
                action=Name.REWRITE_POSITION_DELETE_FILES,
                status=Ended.ABANDONED,
                skipped=dict(self._skipped),
                message=e.message,
            )
        except BaseException:
            discard(self._table, files)
            raise
        return Outcome(
            action=Name.REWRITE_POSITION_DELETE_FILES,
            status=Ended.PARTIAL if self._budget.spent else Ended.COMPLETED,
            rewritten_files=len(removed),
            rewritten_bytes=sum(e.data_file.file_size_in_bytes for e in removed),
            added_files=len(files),
            added_bytes=sum(f.file_size_in_bytes for f in files),
            rows=sum(f.record_count for f in files),
            commits=1,
            tries=done.tries,
            snapshot_ids=(done.snapshot_id,),
            skipped=dict(self._skipped),
            message=self._budget.message(done=True),
        )

    def _nothing(self) -> Outcome:
        return Outcome(
            action=Name.REWRITE_POSITION_DELETE_FILES,
            status=Ended.PARTIAL if self._budget.spent else Ended.NOTHING_TO_DO,
            skipped=dict(self._skipped),
            message=self._budget.message(done=False),
        )

    def _written(
        self, content: Content, chosen: Chosen
    ) -> tuple[tuple[NewFile, ...], tuple[ManifestEntry, ...]]:
        """The added and the removed files, partition by partition until the time is used up."""
        deletes = _Deletes(content, self._table.io)
        added: list[NewFile] = []
        removed: list[ManifestEntry] = []
        for entries in chosen.values():
            if removed and self._budget.late():
                break
            self._context.check()
            merged = self._merged(deletes, entries)
            added += [] if merged is None else [merged]
            removed += entries
        return tuple(added), tuple(removed)

    def _content(self) -> Content | None:
        snapshot = self._table.metadata.current_snapshot()
        content = None if snapshot is None else self._reader.content(snapshot)
        if content is not None:
            check_readable(content)
        return content

    def _chosen(self, content: Content) -> Chosen:
        """The delete files of each partition that has several of them or a dangling one, within the
        budget."""
        deletes = _Deletes(content, self._table.io)
        partitions: dict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        for entry in content.deletes:
            if (why := deletes.unmergeable(entry)) is not None:
                self._skipped[why] += 1
            else:
                partitions[partition_key(entry.data_file)].append(entry)
        worth = {
            k: e
            for k, e in partitions.items()
            if len(e) >= self._least or any(map(deletes.dangles, e))
        }
        return {
            key: fits for key, entries in worth.items() if (fits := self._fitting(deletes, entries))
        }

    def _fitting(self, deletes: _Deletes, entries: list[ManifestEntry]) -> list[ManifestEntry]:
        """One file out of several is not worth a commit, unless it can be dropped entirely."""
        fits = self._budget.fitting(entries, lambda entry: entry.data_file.file_size_in_bytes)
        alone = len(fits) == 1 < len(entries)
        return [] if alone and not deletes.dangles(fits[0]) else fits

    def _merged(self, deletes: _Deletes, entries: list[ManifestEntry]) -> NewFile | None:
        """One file with all deletes that still apply; None when none does."""
        table = pa.concat_tables(map(deletes.rows, entries))
        table = (
            table.group_by(["file_path", "pos"])
            .aggregate([])
            .sort_by([("file_path", "ascending"), ("pos", "ascending")])
        )
        if not table.num_rows:
            return None
        file = write_positions(self._table, self._context, entries[0].data_file, table)
        return NewFile(file=file, sequence_number=max(e.sequence_number or 0 for e in entries))


class _Deletes:
    """Relates the delete files of a snapshot to its data files."""

    def __init__(self, content: Content, io: FileIO) -> None:
        self._io = io
        self._data = {entry.data_file.file_path: entry for entry in content.data}
        self._duplicate_data = duplicate_paths(content.data)
        self._duplicate_deletes = duplicate_paths(content.deletes)

    def unmergeable(self, entry: ManifestEntry) -> str | None:
        """Why a delete file cannot be merged or dropped; None if it can."""
        file = entry.data_file
        if file.file_path in self._duplicate_deletes:
            return "duplicate_path"
        near = [path for path in self._duplicate_data if may_touch(file, path)]
        if near and touches(self._io, file, near):
            return "duplicate_path"
        data = self._data.get(only_data_file(file) or "")
        apart = data is not None and partition_key(data.data_file) != partition_key(file)
        # It applies only because it names a single data file, which a merged file would not.
        return "other_partition" if apart and not self.dangles(entry) else None

    def dangles(self, entry: ManifestEntry) -> bool:
        return not self.rows(entry).num_rows

    def rows(self, entry: ManifestEntry) -> pa.Table:
        """The rows of a delete file that apply to a live data file."""
        rows = read_positions(self._io, entry.data_file)
        paths = pc.unique(rows["file_path"]).to_pylist()
        return rows_of(rows, [path for path in paths if self._applies(entry, path)])

    def _applies(self, entry: ManifestEntry, path: str) -> bool:
        data = self._data.get(path)
        return data is not None and applies(entry, data)
