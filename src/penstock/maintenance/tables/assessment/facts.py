"""Facts about a table: sizes, counts and expected effects of the actions, by tier.

The tiers are the metadata (one small file), the manifests and the storage. Facts that a tier does
not read are None, never 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from pyiceberg.manifest import DataFileContent

from penstock.maintenance.actions.compaction_plan import target_bytes
from penstock.maintenance.actions.model import Name
from penstock.maintenance.actions.orphans import DEFAULT_AGE, TRASH, without_hidden
from penstock.maintenance.actions.pending_deletion import is_pending_deletion
from penstock.maintenance.tables.assessment import expectation
from penstock.maintenance.tables.assessment.expectation import Compaction, Judged
from penstock.maintenance.tables.assessment.tier import Tier
from penstock.maintenance.tables.layout.sizes import SMALL, whole_number
from penstock.maintenance.tables.ownership.neighbors import foreign_metadata
from penstock.maintenance.tables.ownership.references import references
from penstock.maintenance.tables.ownership.storage import TableLocation
from penstock.maintenance.tables.ownership.version_hint import version_hint_files
from penstock.maintenance.tables.reading.content import ManifestReader, partition_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pyiceberg.table import Table

    from penstock.kit.json_value import JsonObject
    from penstock.maintenance.actions.model import OptionValue
    from penstock.maintenance.tables.assessment.expectation import CompactionFacts
    from penstock.maintenance.tables.reading.content import Content


class StoredFacts(TypedDict, total=False):
    """What `Facts.to_json` gave at the last refresh, with the fields that are read by name; empty
    for a table that cannot be read."""

    snapshot_id: int | None
    compaction: CompactionFacts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    tier: Tier
    table_uuid: str
    location: str
    format_version: int
    snapshot_id: int | None
    last_updated_ms: int
    snapshots: int
    oldest_snapshot_ms: int | None
    refs: int
    metadata_log: int
    target_bytes: int
    data_files: int | None
    rows: int | None
    bytes: int | None
    delete_files: int | None
    position_deletes: int | None
    equality_deletes: int | None
    manifests: int | None = None
    manifest_bytes: int | None = None
    small_files: int | None = None
    small_bytes: int | None = None
    partitions: int | None = None
    largest_partition_share: float | None = None
    deleted_share: float | None = None
    orphan_files: int | None = None
    orphan_bytes: int | None = None
    judged_with: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    """Options of the actions that the facts below were computed with; empty for defaults."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Actions that the table's metadata forbids, with the reason."""
    expirable_snapshots: int | None = None
    compaction: Compaction | None = None
    manifests_after: int | None = None

    def to_json(self) -> JsonObject:
        return asdict(self)


DEFAULTS = Judged()
_OF_MANIFESTS = (
    "data_files",
    "rows",
    "bytes",
    "delete_files",
    "position_deletes",
    "equality_deletes",
    "manifests",
    "manifest_bytes",
    "small_files",
    "small_bytes",
    "partitions",
    "largest_partition_share",
    "deleted_share",
    "manifests_after",
)
"""Facts that are valid as long as the snapshot and the action options are the same."""


def look(table: Table, tier: Tier, *, now: datetime, judged: Judged = DEFAULTS) -> Facts:
    facts = _from_metadata(table, judged, now)
    if tier is not Tier.METADATA:
        facts |= _from_manifests(table, judged, now)
    if tier is Tier.STORAGE:
        facts |= _from_storage(table, now)
    return Facts(tier=tier, **facts)


def look_again(
    table: Table, stored: StoredFacts, *, now: datetime, judged: Judged = DEFAULTS
) -> Facts | None:
    """Facts with the stored manifest facts, without reading a manifest; None if they are
    outdated."""
    fresh = _from_metadata(table, judged, now)
    decisive = ("table_uuid", "snapshot_id", "target_bytes", "judged_with", "refused")
    earlier: Mapping[str, object] = stored
    same = all(earlier.get(name) == fresh[name] for name in decisive)
    compaction = stored.get("compaction")
    if not same or compaction is None:
        return None
    unchanged = {name: earlier.get(name) for name in _OF_MANIFESTS}
    return Facts(tier=Tier.MANIFESTS, **fresh | unchanged, compaction=Compaction.read(compaction))


def _from_metadata(table: Table, judged: Judged, now: datetime) -> dict[str, Any]:
    metadata, snapshot = table.metadata, table.metadata.current_snapshot()
    summary = (
        snapshot.summary.additional_properties
        if snapshot is not None and snapshot.summary is not None
        else {}
    )

    def total(name: str) -> int | None:
        return 0 if snapshot is None else whole_number(summary.get(name, ""))

    return {
        "table_uuid": str(metadata.table_uuid),
        "location": metadata.location,
        "format_version": metadata.format_version,
        "snapshot_id": None if snapshot is None else snapshot.snapshot_id,
        "last_updated_ms": metadata.last_updated_ms,
        "snapshots": len(metadata.snapshots),
        "oldest_snapshot_ms": min((s.timestamp_ms for s in metadata.snapshots), default=None),
        "refs": len(metadata.refs),
        "metadata_log": len(metadata.metadata_log),
        "target_bytes": target_bytes(table, judged[Name.REWRITE_DATA_FILES]),
        "judged_with": judged.options,
        "refused": expectation.refusals(table),
        "expirable_snapshots": expectation.expirable_snapshots(table, judged, now=now),
        "data_files": total("total-data-files"),
        "rows": total("total-records"),
        "bytes": total("total-files-size"),
        "delete_files": total("total-delete-files"),
        "position_deletes": total("total-position-deletes"),
        "equality_deletes": total("total-equality-deletes"),
    }


def _from_manifests(table: Table, judged: Judged, now: datetime) -> dict[str, Any]:
    snapshot = table.metadata.current_snapshot()
    if snapshot is None:
        nothing = (
            "manifests",
            "manifest_bytes",
            "small_files",
            "small_bytes",
            "partitions",
            "manifests_after",
        )
        return dict.fromkeys(nothing, 0) | {"compaction": Compaction()}
    content = ManifestReader(table.io).content(snapshot)
    small = [
        e.data_file.file_size_in_bytes
        for e in content.data
        if e.data_file.file_size_in_bytes
        < SMALL * target_bytes(table, judged[Name.REWRITE_DATA_FILES])
    ]
    by_partition: Counter[object] = Counter()
    for entry in content.data:
        by_partition[partition_key(entry.data_file)] += entry.data_file.file_size_in_bytes
    return _deletes(content) | {
        "data_files": len(content.data),
        "rows": content.rows,
        "bytes": content.bytes,
        "manifests": len(content.manifests),
        "manifest_bytes": sum(m.manifest_length for m in content.manifests),
        "small_files": len(small),
        "small_bytes": sum(small),
        "partitions": len(by_partition),
        "largest_partition_share": max(by_partition.values(), default=0) / max(1, content.bytes),
        "compaction": expectation.compaction(table, content, judged, now=now),
        "manifests_after": expectation.manifests_after(table, content, judged),
    }


def _deletes(content: Content) -> dict[str, Any]:
    kinds: Counter[DataFileContent] = Counter()
    for entry in content.deletes:
        kinds[entry.data_file.content] += entry.data_file.record_count
    return {
        "delete_files": len(content.deletes),
        "position_deletes": kinds[DataFileContent.POSITION_DELETES],
        "equality_deletes": kinds[DataFileContent.EQUALITY_DELETES],
        "deleted_share": kinds[DataFileContent.POSITION_DELETES] / max(1, content.rows),
    }


def _from_storage(table: Table, now: datetime) -> dict[str, int | None]:
    """Orphans are not counted if files of another table may be among them."""
    location = TableLocation(table)
    trash = f"{location.path}/{TRASH}/"
    listed = [file for file in location.files() if not file.path.startswith(trash)]
    names = references(table).all | version_hint_files(table, location)
    named = location.protected(names)
    if location.in_another_store(names) or foreign_metadata(table, location, listed, named):
        return {"orphan_files": None, "orphan_bytes": None}
    old = now - timedelta(seconds=DEFAULT_AGE)
    orphans = [
        file
        for file in without_hidden(table, location, listed)
        if file.path not in named and file.modified < old
        if not is_pending_deletion(table, location, file)
    ]
    return {"orphan_files": len(orphans), "orphan_bytes": sum(file.size for file in orphans)}
