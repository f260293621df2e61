"""Reads the live data and delete files of a snapshot from its manifests.

The actions, `assessment` and `commit` use it. It reads manifests only, never data files.
"""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.types import StringType

from penstock.maintenance.tables.reading.avro_check import (
    TOTAL_DATA_FILES,
    TOTAL_DELETE_FILES,
    check_totals,
)
from penstock.maintenance.tables.reading.manifest_entries import (
    listed_manifests,
    live_entries,
    referenced_data_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.table.snapshots import Snapshot

PartitionKey: TypeAlias = tuple[int, tuple[object, ...]]
EntryKey: TypeAlias = tuple[str, int, int | None]
PATH_FIELD = 2147483546


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    snapshot: Snapshot
    manifests: tuple[ManifestFile, ...]
    data: tuple[ManifestEntry, ...]
    deletes: tuple[ManifestEntry, ...]

    @property
    def bytes(self) -> int:
        return sum(entry.data_file.file_size_in_bytes for entry in self.data)

    @property
    def rows(self) -> int:
        """The row count of the data files, including rows deleted by delete files."""
        return sum(entry.data_file.record_count for entry in self.data)


def duplicate_paths(entries: Iterable[ManifestEntry]) -> frozenset[str]:
    """Paths that are live more than once; readers read such a file once per entry."""
    counts = Counter(entry.data_file.file_path for entry in entries)
    return frozenset(path for path, count in counts.items() if count > 1)


def entry_key(entry: ManifestEntry) -> EntryKey:
    """Identifies an entry across snapshots. The path alone is not enough: a file that was removed
    and added again has another sequence number, so other deletes apply to it.
    """
    return entry.data_file.file_path, entry.sequence_number or 0, entry.snapshot_id


@dataclass(slots=True)
class ManifestReader:
    """Reads each manifest once; manifests never change, and snapshots share most of them."""

    io: FileIO
    _read: dict[str, list[ManifestEntry]] = field(default_factory=dict)
    _lists: dict[str, tuple[ManifestFile, ...]] = field(default_factory=dict)

    def entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        entries = self._read.get(manifest.manifest_path)
        if entries is None:
            entries = self._read[manifest.manifest_path] = live_entries(self.io, manifest)
        return entries

    def content(self, snapshot: Snapshot) -> Content:
        manifests = self._lists.get(snapshot.manifest_list)
        if manifests is None:
            manifests = self._lists[snapshot.manifest_list] = listed_manifests(self.io, snapshot)
        data = [e for m in manifests if m.content == ManifestContent.DATA for e in self.entries(m)]
        deletes = [
            e for m in manifests if m.content != ManifestContent.DATA for e in self.entries(m)
        ]
        check_totals(snapshot, {TOTAL_DATA_FILES: len(data), TOTAL_DELETE_FILES: len(deletes)})
        return Content(
            snapshot=snapshot, manifests=manifests, data=tuple(data), deletes=tuple(deletes)
        )


def partition_key(file: DataFile) -> PartitionKey:
    """Equal for files of the same partition only: NaN equals NaN, and 0.0 differs from -0.0."""
    return file.spec_id, tuple(_canonical(value) for value in partition_values(file))


def partition_values(file: DataFile) -> tuple[object, ...]:
    return tuple(file.partition[at] for at in range(len(file.partition)))


def _canonical(value: object) -> object:
    if isinstance(value, float):
        return ("double", b"NaN" if math.isnan(value) else struct.pack(">d", value))
    return value


def path_bounds(delete_file: DataFile) -> tuple[str, str] | None:
    """The lower and upper bound of the data file paths in a delete file; None if it has none.

    Writers may truncate bounds; truncated ones are still valid bounds.
    """
    low, high = (
        (delete_file.lower_bounds or {}).get(PATH_FIELD),
        (delete_file.upper_bounds or {}).get(PATH_FIELD),
    )
    if low is None or high is None:
        return None
    return from_bytes(StringType(), low), from_bytes(StringType(), high)


def may_touch(delete_file: DataFile, path: str) -> bool:
    if delete_file.content != DataFileContent.POSITION_DELETES:
        return True
    bounds = path_bounds(delete_file)
    return bounds is None or bounds[0] <= path <= bounds[1]


def only_data_file(delete_file: DataFile) -> str | None:
    """The path of the only data file that a delete file refers to; None if there may be several."""
    if delete_file.content != DataFileContent.POSITION_DELETES:
        return None
    if (path := referenced_data_file(delete_file)) is not None:
        return path
    bounds = path_bounds(delete_file)
    return bounds[0] if bounds is not None and bounds[0] == bounds[1] else None


def applies(delete: ManifestEntry, data: ManifestEntry) -> bool:
    """Whether readers apply a position delete file to a data file.

    A delete file for a single data file applies to it whatever partition either is recorded under.
    """
    if (delete.sequence_number or 0) < (data.sequence_number or 0):
        return False
    path = only_data_file(delete.data_file)
    if path is not None:
        return path == data.data_file.file_path
    return partition_key(delete.data_file) == partition_key(data.data_file) and may_touch(
        delete.data_file, data.data_file.file_path
    )


class DeleteIndex:
    """Finds the delete files that apply to a data file."""

    def __init__(self, deletes: Iterable[ManifestEntry]) -> None:
        self._by_path: dict[str, list[ManifestEntry]] = defaultdict(list)
        self._by_partition: dict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        for entry in deletes:
            path = only_data_file(entry.data_file)
            if path is not None:
                self._by_path[path].append(entry)
            else:
                self._by_partition[partition_key(entry.data_file)].append(entry)

    def applying_to(self, data: ManifestEntry) -> list[ManifestEntry]:
        file = data.data_file
        near = (
            *self._by_path.get(file.file_path, ()),
            *self._by_partition.get(partition_key(file), ()),
        )
        return [delete for delete in near if applies(delete, data)]
