"""The live files of a snapshot, from its manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.types import StringType

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.table.snapshots import Snapshot

PartitionKey: TypeAlias = tuple[int, tuple[object, ...]]
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
        """As the files count them, rows that are marked as deleted included."""
        return sum(entry.data_file.record_count for entry in self.data)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(entry.data_file.file_path for entry in self.data)

    @property
    def delete_paths(self) -> frozenset[str]:
        return frozenset(entry.data_file.file_path for entry in self.deletes)


@dataclass(slots=True)
class ManifestReader:
    """Reads each manifest once: they never change, and consecutive snapshots share most of theirs."""

    io: FileIO
    _read: dict[str, list[ManifestEntry]] = field(default_factory=dict)

    def entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        found = self._read.get(manifest.manifest_path)
        if found is None:
            found = self._read[manifest.manifest_path] = manifest.fetch_manifest_entry(self.io, discard_deleted=True)
        return found

    def content(self, snapshot: Snapshot) -> Content:
        manifests = tuple(snapshot.manifests(self.io))
        data = [e for m in manifests if m.content == ManifestContent.DATA for e in self.entries(m)]
        deletes = [e for m in manifests if m.content != ManifestContent.DATA for e in self.entries(m)]
        return Content(snapshot=snapshot, manifests=manifests, data=tuple(data), deletes=tuple(deletes))


def partition_key(file: DataFile) -> PartitionKey:
    return file.spec_id, tuple(file.partition[i] for i in range(len(file.partition)))


def path_bounds(delete_file: DataFile) -> tuple[str, str] | None:
    """Between which paths the positions of a delete file lie; None where it does not say.

    A writer may cut bounds short, and a cut lower bound still is one; a cut upper bound is a prefix made greater.
    """
    low, high = (delete_file.lower_bounds or {}).get(PATH_FIELD), (delete_file.upper_bounds or {}).get(PATH_FIELD)
    if low is None or high is None:
        return None
    return from_bytes(StringType(), low), from_bytes(StringType(), high)


def may_touch(delete_file: DataFile, path: str) -> bool:
    if delete_file.content != DataFileContent.POSITION_DELETES:
        return True
    bounds = path_bounds(delete_file)
    return bounds is None or bounds[0] <= path <= bounds[1]


def applies(delete: ManifestEntry, data: ManifestEntry) -> bool:
    """Whether a position delete may hold rows of a data file."""
    return (
        partition_key(delete.data_file) == partition_key(data.data_file)
        and (delete.sequence_number or 0) >= (data.sequence_number or 0)
        and may_touch(delete.data_file, data.data_file.file_path)
    )
