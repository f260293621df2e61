"""What a table is like, as far as one was willing to look.

Three tiers: its metadata (one small file), its manifests, its storage. What a tier did not look at is None, never 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyiceberg.manifest import DataFileContent

from penstock.maintenance.action import Action, Name
from penstock.maintenance.compaction_plan import target_bytes
from penstock.maintenance.content import ManifestReader, partition_key
from penstock.maintenance.orphans import DEFAULT_AGE, TRASH, Place
from penstock.maintenance.references import references
from penstock.maintenance.sizes import SMALL
from penstock.maintenance.tier import Tier

if TYPE_CHECKING:
    from datetime import datetime

    from pyiceberg.table import Table

    from penstock.maintenance.content import Content

_COMPACT = Action(name=Name.REWRITE_DATA_FILES)


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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def look(table: Table, tier: Tier, *, now: datetime) -> Facts:
    found = _from_metadata(table)
    if tier is not Tier.METADATA:
        found |= _from_manifests(table)
    if tier is Tier.STORAGE:
        found |= _from_storage(table, now)
    return Facts(tier=tier, **found)


def _from_metadata(table: Table) -> dict[str, Any]:
    metadata, snapshot = table.metadata, table.metadata.current_snapshot()
    summary = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary is not None else {}

    def total(name: str) -> int | None:
        return 0 if snapshot is None else int(summary[name]) if name in summary else None

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
        "target_bytes": target_bytes(table, _COMPACT),
        "data_files": total("total-data-files"),
        "rows": total("total-records"),
        "bytes": total("total-files-size"),
        "delete_files": total("total-delete-files"),
        "position_deletes": total("total-position-deletes"),
        "equality_deletes": total("total-equality-deletes"),
    }


def _from_manifests(table: Table) -> dict[str, Any]:
    snapshot = table.metadata.current_snapshot()
    if snapshot is None:
        return {"manifests": 0, "manifest_bytes": 0, "small_files": 0, "small_bytes": 0, "partitions": 0}
    content = ManifestReader(table.io).content(snapshot)
    small = [
        e.data_file.file_size_in_bytes
        for e in content.data
        if e.data_file.file_size_in_bytes < SMALL * target_bytes(table, _COMPACT)
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


def _from_storage(table: Table, now: datetime) -> dict[str, Any]:
    place = Place(table)
    listed = [f for f in place.listed() if not f.path.startswith(f"{place.path}/{TRASH}/")]
    named = {place.inside(location) for location in references(table).all}
    old = now - timedelta(seconds=DEFAULT_AGE)
    orphans = [f for f in listed if f.path not in named and f.modified < old]
    return {"orphan_files": len(orphans), "orphan_bytes": sum(f.size for f in orphans)}
