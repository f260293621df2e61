"""Plans a compaction: which data files to rewrite and how to group them. Reads manifests only."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from pyiceberg.manifest import DataFileContent, FileFormat

from penstock.kit.errors import InvalidInput
from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.layout.sizes import (
    DELETE_FILES,
    DELETED_SHARE,
    GROUP_BYTES,
    HOT_SECONDS,
    LARGE,
    LEAST_BYTES,
    LEAST_FILES,
    MIN_INPUT_FILES,
    SMALL,
    TARGET,
    whole_number,
)
from penstock.maintenance.tables.reading.content import (
    Content,
    DeleteIndex,
    duplicate_paths,
    entry_key,
    only_data_file,
    partition_key,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.table import Table
    from pyiceberg.typedef import Record

    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.tables.reading.content import PartitionKey

TARGET_PROPERTY = "write.target-file-size-bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files of one partition that are rewritten together; each of `deletes` applies to at least one
    of them."""

    key: PartitionKey
    inputs: tuple[ManifestEntry, ...]
    deletes: tuple[ManifestEntry, ...]

    @property
    def bytes(self) -> int:
        return sum(entry.data_file.file_size_in_bytes for entry in self.inputs)

    @property
    def rows(self) -> int:
        return sum(entry.data_file.record_count for entry in self.inputs)

    @property
    def partition(self) -> Record:
        """The partition values that all inputs share."""
        return self.inputs[0].data_file.partition

    def outputs(self, target: int) -> int:
        """How many files to write so that the next plan selects none of them again."""
        count = max(1, ceil(self.bytes / target))
        return count - 1 if count > 1 and self.bytes < SMALL * target * count else count


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    content: Content | None
    target: int
    groups: tuple[Group, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(entry.data_file.file_path for group in self.groups for entry in group.inputs)

    @property
    def bytes(self) -> int:
        return sum(group.bytes for group in self.groups)

    @property
    def expected_files(self) -> int:
        return sum(group.outputs(self.target) for group in self.groups)


def plan_compaction(
    table: Table, content: Content | None, action: Action, *, now_ms: int
) -> CompactionPlan:
    target = target_bytes(table, action)
    if content is None:
        return CompactionPlan(content=None, target=target)
    check_readable(content)
    forced = bool(action.options.get("force") or action.options.get("rewrite_all"))
    if not forced and (len(content.data) < LEAST_FILES or content.bytes < LEAST_BYTES):
        return CompactionPlan(
            content=content, target=target, skipped={"small_table": len(content.data)}
        )
    planning = _Planning(table, content, action, target, now_ms)
    return CompactionPlan(
        content=content, target=target, groups=planning.groups(), skipped=dict(planning.skipped)
    )


def target_bytes(table: Table, action: Action) -> int:
    """The target size: the request's option, else the table's property, else our default."""
    of_table = whole_number(table.properties.get(TARGET_PROPERTY, ""))
    return action.number("target_file_bytes", of_table or TARGET)


def check_readable(content: Content) -> None:
    if any(e.data_file.content == DataFileContent.EQUALITY_DELETES for e in content.deletes):
        raise Refused(
            "The table has equality deletes, which the embedded engine cannot read.",
            hint="Use a remote engine.",
        )
    other = {str(e.data_file.file_format) for e in content.data} - {str(FileFormat.PARQUET)}
    if other:
        raise Refused(
            f"The table has {', '.join(sorted(other))} files; the embedded engine supports only "
            "Parquet.",
            hint="Use a remote engine.",
        )


class _Planning:
    def __init__(
        self, table: Table, content: Content, action: Action, target: int, now_ms: int
    ) -> None:
        self._table = table
        self._content = content
        self._action = action
        self._target = target
        self._all = bool(action.options.get("rewrite_all"))
        self._deletes = DeleteIndex(content.deletes)
        self._young = now_ms - 1000 * action.number(
            "hot_seconds", 0 if action.options.get("force") else HOT_SECONDS
        )
        self.skipped: Counter[str] = Counter()

    def groups(self) -> tuple[Group, ...]:
        """Groups with the most files first, so that a limited budget removes as many as it can."""
        by_partition: dict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        for entry in self._wanted():
            by_partition[partition_key(entry.data_file)].append(entry)
        groups = [
            g
            for key, entries in by_partition.items()
            if not self._hot(key, entries)
            for g in self._packed(key, entries)
        ]
        return tuple(sorted(groups, key=lambda group: -len(group.inputs)))

    def _rewritable(self) -> Sequence[ManifestEntry]:
        """Leaves out files that are live more than once: deletes refer to rows by path, and the
        entries of one path may have different deletes.
        """
        twice = duplicate_paths(self._content.data)
        entries = [entry for entry in self._content.data if entry.data_file.file_path not in twice]
        if twice:
            self.skipped["duplicate_path"] += len(self._content.data) - len(entries)
        return entries

    def _wanted(self) -> Sequence[ManifestEntry]:
        where = self._action.text("where")
        entries = self._rewritable()
        if where is None:
            return entries
        try:
            tasks = self._table.scan(
                row_filter=where, snapshot_id=self._content.snapshot.snapshot_id
            ).plan_files()
        except Exception as e:
            raise InvalidInput(f"where: {str(e)[:200]}", field="where") from e
        paths = {task.file.file_path for task in tasks}
        matching = [entry for entry in entries if entry.data_file.file_path in paths]
        self.skipped["where"] += len(entries) - len(matching)
        return matching

    def _hot(self, key: PartitionKey, entries: Sequence[ManifestEntry]) -> bool:
        """Whether a partition was written to recently; a rewrite there would conflict with its
        writers. Never true of an unpartitioned table, or a busy one would never be compacted."""
        if not key[1]:
            return False
        snapshots = (
            self._table.metadata.snapshot_by_id(e.snapshot_id)
            for e in entries
            if e.snapshot_id is not None
        )
        hot = any(s is not None and s.timestamp_ms > self._young for s in snapshots)
        self.skipped["hot_partition"] += len(entries) if hot else 0
        return hot

    def _packed(self, key: PartitionKey, entries: Sequence[ManifestEntry]) -> list[Group]:
        limit = self._action.number("max_group_bytes", GROUP_BYTES)
        bins: list[list[ManifestEntry]] = []
        size = limit + 1
        for entry in entries:
            if not (self._all or self._candidate(entry)):
                self.skipped["good_size"] += 1
                continue
            if size + entry.data_file.file_size_in_bytes > limit:
                bins.append([])
                size = 0
            bins[-1].append(entry)
            size += entry.data_file.file_size_in_bytes
        return [self._group(key, packed) for packed in bins if self._worth(packed)]

    def _group(self, key: PartitionKey, inputs: list[ManifestEntry]) -> Group:
        deletes = {entry_key(d): d for entry in inputs for d in self._deletes.applying_to(entry)}
        return Group(key=key, inputs=tuple(inputs), deletes=tuple(deletes.values()))

    def _candidate(self, entry: ManifestEntry) -> bool:
        size = entry.data_file.file_size_in_bytes
        return not SMALL * self._target <= size <= LARGE * self._target or self._delete_heavy(entry)

    def _delete_heavy(self, entry: ManifestEntry) -> bool:
        applying = self._deletes.applying_to(entry)
        path = entry.data_file.file_path
        own = sum(d.data_file.record_count for d in applying if only_data_file(d.data_file) == path)
        return len(applying) >= DELETE_FILES or own >= DELETED_SHARE * max(
            1, entry.data_file.record_count
        )

    def _worth(self, entries: Sequence[ManifestEntry]) -> bool:
        size = sum(e.data_file.file_size_in_bytes for e in entries)
        enough = len(entries) >= self._action.number("min_input_files", MIN_INPUT_FILES)
        large = size > self._target and (len(entries) > 1 or size > LARGE * self._target)
        worth = self._all or enough or large or any(self._delete_heavy(entry) for entry in entries)
        self.skipped["too_few_files"] += 0 if worth else len(entries)
        return worth
