"""Predicts what the actions would do to a table, using their own planners.

The health score uses it: a problem that no action would fix does not lower the score.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, TypedDict

from penstock.kit.errors import InvalidInput
from penstock.maintenance.actions.compaction_plan import plan_compaction
from penstock.maintenance.actions.manifest_rewrite import TARGET as MANIFEST_TARGET
from penstock.maintenance.actions.model import Action, Name
from penstock.maintenance.actions.retention import expired, rule_for
from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.commit.protection import check_table
from penstock.maintenance.tables.layout.sizes import HOT_SECONDS
from penstock.maintenance.tables.ownership.garbage_collection import check_collectable
from penstock.maintenance.tables.reading.content import partition_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pyiceberg.manifest import ManifestContent
    from pyiceberg.table import Table

    from penstock.maintenance.actions.compaction_plan import Group
    from penstock.maintenance.actions.model import OptionValue
    from penstock.maintenance.tables.reading.content import Content, PartitionKey

_FAR_FUTURE = 2**62
"""A time at which no partition counts as recently written."""


class RewriteFacts(TypedDict):
    """`Rewrite` in the stored facts of a table."""

    files: int
    bytes: int
    outputs: int
    delete_files: int
    deleted_rows: int
    hot_until_ms: int | None


class CompactionFacts(TypedDict):
    """`Compaction` in the stored facts of a table."""

    rewrites: list[RewriteFacts]
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Data files that a compaction would rewrite, how many it would write, and the deletes that it
    would apply.

    `hot_until_ms` is when their recently written partitions become eligible; None if they are now.
    """

    files: int = 0
    bytes: int = 0
    outputs: int = 0
    delete_files: int = 0
    deleted_rows: int = 0
    hot_until_ms: int | None = None

    def __add__(self, other: Rewrite) -> Rewrite:
        return Rewrite(
            files=self.files + other.files,
            bytes=self.bytes + other.bytes,
            outputs=self.outputs + other.outputs,
            delete_files=self.delete_files + other.delete_files,
            deleted_rows=self.deleted_rows + other.deleted_rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What rewrite_data_files would do; `refused` is the reason if it would refuse."""

    rewrites: tuple[Rewrite, ...] = ()
    refused: str | None = None

    def at(self, now_ms: int) -> Rewrite:
        return sum((r for r in self.rewrites if not _hot(r, now_ms)), Rewrite())

    def hot_at(self, now_ms: int) -> Rewrite:
        return sum((r for r in self.rewrites if _hot(r, now_ms)), Rewrite())

    @classmethod
    def read(cls, document: CompactionFacts) -> Compaction:
        rewrites = tuple(Rewrite(**rewrite) for rewrite in document["rewrites"])
        return cls(rewrites=rewrites, refused=document["refused"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The actions a table is assessed with: those of its policy, and defaults for the others."""

    actions: Mapping[Name, Action] = field(default_factory=dict)

    @classmethod
    def by(cls, actions: Iterable[Action]) -> Judged:
        return cls(actions={action.name: action for action in actions})

    def __getitem__(self, name: Name) -> Action:
        return self.actions.get(name, Action(name=name))

    @property
    def options(self) -> dict[str, dict[str, OptionValue]]:
        """The options that must be unchanged for stored facts to be valid."""
        return {str(name): dict(self[name].options) for name in Name if self[name].options}


def refusals(table: Table) -> dict[str, str]:
    """Actions that the table's metadata forbids, with the reason."""
    refused: dict[str, str] = {}
    for name in Name:
        try:
            check_table(table, name)
        except Refused as e:
            refused[str(name)] = e.message
    try:
        check_collectable(table)
    except Refused as e:
        refused[str(Name.EXPIRE_SNAPSHOTS)] = e.message
    return refused


def expirable_snapshots(table: Table, judged: Judged, *, now: datetime) -> int:
    """How many snapshots expire_snapshots would remove now."""
    action = judged[Name.EXPIRE_SNAPSHOTS]
    if Name.EXPIRE_SNAPSHOTS in refusals(table):
        return 0
    rule = rule_for(table.metadata, action)
    return len(expired(table.metadata, rule, now_ms=int(now.timestamp() * 1000)).snapshots)


def compaction(table: Table, content: Content, judged: Judged, *, now: datetime) -> Compaction:
    """Includes recently written partitions, which become eligible a few minutes later."""
    action = judged[Name.REWRITE_DATA_FILES]
    if (refused := refusals(table).get(Name.REWRITE_DATA_FILES)) is not None:
        return Compaction(refused=refused)
    patient = Action(name=action.name, options={**action.options, "hot_seconds": 0})
    try:
        plan = plan_compaction(table, content, patient, now_ms=_FAR_FUTURE)
    except (Refused, InvalidInput) as e:
        return Compaction(refused=e.message)
    hot_ms = 1000 * action.number("hot_seconds", 0 if action.options.get("force") else HOT_SECONDS)
    hot = _hot_partitions(table, content, hot_ms, now_ms=int(now.timestamp() * 1000))
    by_time: dict[int | None, list[Group]] = defaultdict(list)
    for group in plan.groups:
        by_time[hot.get(group.key)].append(group)
    return Compaction(
        rewrites=tuple(_rewrite(groups, plan.target, until) for until, groups in by_time.items())
    )


def manifests_after(table: Table, content: Content, judged: Judged) -> int:
    """The number of manifests after rewrite_manifests; unchanged if it would do nothing."""
    target = judged[Name.REWRITE_MANIFESTS].number("target_bytes", MANIFEST_TARGET)
    kinds: dict[tuple[int, ManifestContent], list[int]] = defaultdict(list)
    for manifest in content.manifests:
        kinds[manifest.partition_spec_id, manifest.content].append(manifest.manifest_length)
    worth = any(len(sizes) > 1 and len(sizes) > 2 * sum(sizes) / target for sizes in kinds.values())
    idle = any(not (m.has_added_files() or m.has_existing_files()) for m in content.manifests)
    if Name.REWRITE_MANIFESTS in refusals(table) or not (worth or idle):
        return len(content.manifests)
    return sum(ceil(sum(sizes) / target) for sizes in kinds.values())


def _hot_partitions(
    table: Table, content: Content, hot_ms: int, *, now_ms: int
) -> dict[PartitionKey, int]:
    """Until when recently written partitions are skipped; empty for an unpartitioned table."""
    times = {
        s.snapshot_id: s.timestamp_ms
        for s in table.metadata.snapshots
        if s.timestamp_ms > now_ms - hot_ms
    }
    hot: dict[PartitionKey, int] = {}
    for entry in content.data:
        if entry.snapshot_id in times and len(entry.data_file.partition):
            key = partition_key(entry.data_file)
            hot[key] = max(times[entry.snapshot_id] + hot_ms, hot.get(key, 0))
    return hot


def _rewrite(groups: Sequence[Group], target: int, hot_until_ms: int | None) -> Rewrite:
    deletes = {
        d.data_file.file_path: d.data_file.record_count for group in groups for d in group.deletes
    }
    return Rewrite(
        files=sum(len(group.inputs) for group in groups),
        bytes=sum(group.bytes for group in groups),
        outputs=sum(group.outputs(target) for group in groups),
        delete_files=len(deletes),
        deleted_rows=sum(deletes.values()),
        hot_until_ms=hot_until_ms,
    )


def _hot(rewrite: Rewrite, now_ms: int) -> bool:
    return rewrite.hot_until_ms is not None and now_ms < rewrite.hot_until_ms
