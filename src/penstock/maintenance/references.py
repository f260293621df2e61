"""Everything that a table's metadata names, in its six kinds: what is in here must not be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    PARTITION_FIELD_SUMMARY_TYPE,
    DataFile,
    ManifestEntry,
    ManifestEntryStatus,
)
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import ListType, NestedField, StringType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_LIST = Schema(
    NestedField(500, "manifest_path", StringType(), required=True),
    NestedField(507, "partitions", ListType(508, PARTITION_FIELD_SUMMARY_TYPE, element_required=True), required=False),
)
"""The path is all that is wanted; the library cannot leave a list out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    files: frozenset[str]
    """Data files and delete files."""
    manifests: frozenset[str]
    lists: frozenset[str]
    metadata: frozenset[str] = frozenset()
    """The current metadata file and those of its log, which may be gone already."""
    statistics: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        return self.files | self.manifests | self.lists | self.metadata | self.statistics


class ReferenceReader:
    """Reads only paths, and each list and manifest once."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._manifests: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._lists: dict[str, frozenset[str]] = {}

    def manifests(self, snapshots: Iterable[Snapshot]) -> frozenset[str]:
        return frozenset().union(*(self._listed(snapshot.manifest_list) for snapshot in snapshots))

    def _listed(self, path: str) -> frozenset[str]:
        if path not in self._lists:
            with AvroFile[Record](self._io.new_input(path), _LIST, {-1: Record}) as records:
                self._lists[path] = frozenset(record[0] for record in records)
        return self._lists[path]

    def live(self, manifests: Iterable[str]) -> frozenset[str]:
        return frozenset().union(*(self._read(path)[0] for path in manifests))

    def named(self, manifests: Iterable[str]) -> frozenset[str]:
        """Live or not."""
        return frozenset().union(*(self._read(path)[1] for path in manifests))

    def _read(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        if path not in self._manifests:
            with AvroFile[ManifestEntry](
                self._io.new_input(path), MANIFEST_ENTRY_SCHEMAS[2], {-1: ManifestEntry, 2: DataFile}
            ) as entries:
                rows = [(entry.status, entry.data_file.file_path) for entry in entries]
            live = frozenset(name for status, name in rows if status != ManifestEntryStatus.DELETED)
            self._manifests[path] = (live, frozenset(name for _, name in rows))
        return self._manifests[path]


def references(table: Table, reader: ReferenceReader | None = None) -> References:
    """All that every snapshot names, whatever branch or tag it is on."""
    reader = reader or ReferenceReader(table.io)
    metadata = table.metadata
    manifests = reader.manifests(metadata.snapshots)
    return References(
        files=reader.live(manifests),
        manifests=manifests,
        lists=frozenset(snapshot.manifest_list for snapshot in metadata.snapshots),
        metadata=frozenset({table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}),
        statistics=statistics_paths(table),
    )


def statistics_paths(table: Table, snapshots: frozenset[int] | None = None) -> frozenset[str]:
    kept = [*table.metadata.statistics, *table.metadata.partition_statistics]
    return frozenset(s.statistics_path for s in kept if snapshots is None or s.snapshot_id in snapshots)
