"""rewrite_position_delete_files: deletes of files that are gone are dropped, small delete files are merged."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import ManifestContent

from penstock.maintenance.action import Action, Ended, Name, Outcome
from penstock.maintenance.budget import Budget
from penstock.maintenance.compaction_plan import check_readable
from penstock.maintenance.content import Content, ManifestReader, partition_key
from penstock.maintenance.delete_file import write_positions
from penstock.maintenance.errors import CommitConflict, CommitUnknown
from penstock.maintenance.positions import read_positions
from penstock.maintenance.replacement import Change, Replacement
from penstock.maintenance.rewriting import discard

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.table import Table

    from penstock.maintenance.content import PartitionKey
    from penstock.maintenance.lake import Lake
    from penstock.maintenance.run import Run

MIN_INPUT_FILES = 2
Chosen: TypeAlias = "dict[PartitionKey, list[ManifestEntry]]"


class DeleteRewrite:
    def __init__(self, lake: Lake, run: Run, action: Action, reader: ManifestReader | None = None) -> None:
        self._lake = lake
        self._run = run
        self._budget = Budget(run, action)
        self._least = action.number("min_input_files", MIN_INPUT_FILES)
        self._table: Table = lake.load()
        self._reader = reader or ManifestReader(self._table.io)

    def plan(self) -> Outcome:
        content = self._content()
        chosen = [] if content is None else [e for entries in self._chosen(content).values() for e in entries]
        if not chosen:
            return replace(self._nothing(), status=Ended.NOTHING_TO_DO)
        return Outcome(
            action=Name.REWRITE_POSITION_DELETE_FILES,
            status=Ended.PLANNED,
            rewritten_files=len(chosen),
            rewritten_bytes=sum(e.data_file.file_size_in_bytes for e in chosen),
            files=tuple(e.data_file.file_path for e in chosen),
        )

    def execute(self) -> Outcome:
        content = self._content()
        chosen = {} if content is None else self._chosen(content)
        if content is None or not chosen:
            return self._nothing()
        added, removed = self._written(content, chosen)
        change = Change(
            removed=removed,
            added=added,
            sequence_number=max(e.sequence_number or 0 for e in removed),
            content=ManifestContent.DELETES,
        )
        replacement = Replacement(lake=self._lake, run=self._run, plan=content, reader=self._reader)
        try:
            done = replacement.commit(change, self._run.summary(Name.REWRITE_POSITION_DELETE_FILES))
        except CommitUnknown:
            raise
        except CommitConflict as e:
            discard(self._table, added)
            return Outcome(action=Name.REWRITE_POSITION_DELETE_FILES, status=Ended.ABANDONED, message=e.message)
        except BaseException:
            discard(self._table, added)
            raise
        return Outcome(
            action=Name.REWRITE_POSITION_DELETE_FILES,
            status=Ended.PARTIAL if self._budget.spent else Ended.COMPLETED,
            rewritten_files=len(removed),
            rewritten_bytes=sum(e.data_file.file_size_in_bytes for e in removed),
            added_files=len(added),
            added_bytes=sum(f.file_size_in_bytes for f in added),
            rows=sum(f.record_count for f in added),
            commits=1,
            tries=done.tries,
            snapshot_ids=(done.snapshot_id,),
            message=self._budget.message(done=True),
        )

    def _nothing(self) -> Outcome:
        return Outcome(
            action=Name.REWRITE_POSITION_DELETE_FILES,
            status=Ended.PARTIAL if self._budget.spent else Ended.NOTHING_TO_DO,
            message=self._budget.message(done=False),
        )

    def _written(self, content: Content, chosen: Chosen) -> tuple[tuple[DataFile, ...], tuple[ManifestEntry, ...]]:
        """What comes and what goes, partition by partition as long as there is time."""
        added: list[DataFile] = []
        removed: list[ManifestEntry] = []
        for key, entries in chosen.items():
            if removed and self._budget.late():
                break
            self._run.check()
            merged = self._merged(content, key, entries)
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
        """All of a partition with several delete files, and those that hold a dangling one; as the budget allows."""
        live = pa.array(list(content.paths), pa.string())
        partitions: dict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        for entry in content.deletes:
            partitions[partition_key(entry.data_file)].append(entry)
        worth = {k: e for k, e in partitions.items() if len(e) >= self._least or any(self._dangles(x, live) for x in e)}
        return {key: fits for key, entries in worth.items() if (fits := self._fitting(entries, live))}

    def _fitting(self, entries: list[ManifestEntry], live: pa.Array) -> list[ManifestEntry]:
        """One file alone of several is not worth a commit, unless it goes altogether."""
        fits = self._budget.fitting(entries, lambda entry: entry.data_file.file_size_in_bytes)
        alone = len(fits) == 1 < len(entries)
        return [] if alone and not self._dangles(fits[0], live) else fits

    def _dangles(self, entry: ManifestEntry, live: pa.Array) -> bool:
        found = read_positions(self._table.io, entry.data_file)["file_path"]
        return not pc.any(pc.is_in(found, value_set=live)).as_py()

    def _merged(self, content: Content, key: PartitionKey, entries: list[ManifestEntry]) -> DataFile | None:
        """One file for all that is still of use; None when nothing is. The greatest sequence number of its inputs
        will do for it: a path names one file, which is older than any delete of its rows."""
        live = pa.array(list(content.paths), pa.string())
        table = pa.concat_tables(read_positions(self._table.io, e.data_file) for e in entries)
        table = table.filter(pc.is_in(table["file_path"], value_set=live))
        table = (
            table.group_by(["file_path", "pos"])
            .aggregate([])
            .sort_by([("file_path", "ascending"), ("pos", "ascending")])
        )
        return write_positions(self._table, self._run, key, table) if table.num_rows else None
