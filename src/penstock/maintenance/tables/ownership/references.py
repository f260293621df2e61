"""Collects every file that a table's metadata references; none of them may be deleted."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    PARTITION_FIELD_SUMMARY_TYPE,
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StringType

from penstock.maintenance.errors import TableUnreadable
from penstock.maintenance.tables.reading.avro_check import (
    TOTAL_DATA_FILES,
    TOTAL_DELETE_FILES,
    check_entries,
    check_length,
    check_totals,
    read_avro,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

T = TypeVar("T")
_LIST = Schema(
    NestedField(500, "manifest_path", StringType(), required=True),
    NestedField(501, "manifest_length", LongType(), required=False),
    NestedField(517, "content", IntegerType(), required=False),
    NestedField(504, "added_files_count", IntegerType(), required=False),
    NestedField(505, "existing_files_count", IntegerType(), required=False),
    NestedField(506, "deleted_files_count", IntegerType(), required=False),
    NestedField(
        507,
        "partitions",
        ListType(508, PARTITION_FIELD_SUMMARY_TYPE, element_required=True),
        required=False,
    ),
)
"""`partitions` is not used, but PyIceberg cannot skip a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedManifest:
    """A manifest as described by a manifest list; None for missing values."""

    path: str
    length: int | None
    content: ManifestContent
    added: int | None
    existing: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """The paths in a manifest, and the numbers of entries."""

    length: int
    live_count: int
    deleted_count: int
    live: frozenset[str]
    named: frozenset[str]


_NO_ENTRIES = _Entries(length=0, live_count=0, deleted_count=0, live=frozenset(), named=frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    files: frozenset[str]
    """Data files and delete files."""
    manifests: frozenset[str]
    lists: frozenset[str]
    metadata: frozenset[str] = frozenset()
    """The current metadata file and those of its log, which may no longer exist."""
    statistics: frozenset[str] = frozenset()

    @property
    def required(self) -> frozenset[str]:
        """Files that must exist, or the table is damaged."""
        return self.files | self.manifests | self.lists

    @property
    def all(self) -> frozenset[str]:
        return self.files | self.manifests | self.lists | self.metadata | self.statistics


class ReferenceReader:
    """Reads the paths in manifest lists and manifests, each once; TableUnreadable if truncated."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._manifests: dict[str, _Entries] = {}
        self._lists: dict[str, tuple[ListedManifest, ...]] = {}

    def manifests(self, snapshots: Iterable[Snapshot]) -> frozenset[ListedManifest]:
        """The manifests of all snapshots, checked against the totals in the snapshot summaries."""
        listed: set[ListedManifest] = set()
        for snapshot in snapshots:
            manifests = _present(self._listed, snapshot.manifest_list)
            self._check_totals(snapshot, manifests)
            listed.update(manifests)
        return frozenset(listed)

    def manifests_left(self, lists: Iterable[str]) -> frozenset[ListedManifest]:
        """The manifests in those lists that still exist."""
        nothing: tuple[ListedManifest, ...] = ()
        return frozenset(m for path in lists for m in _or(nothing, self._listed, path))

    def live(self, manifests: Iterable[ListedManifest]) -> frozenset[str]:
        return frozenset().union(*(self._present_entries(manifest).live for manifest in manifests))

    def named_left(self, manifests: Iterable[ListedManifest]) -> frozenset[str]:
        """All paths, live or deleted, in those manifests that still exist."""
        return frozenset().union(*(self._entries_left(manifest).named for manifest in manifests))

    def _check_totals(self, snapshot: Snapshot, manifests: Iterable[ListedManifest]) -> None:
        counts = {TOTAL_DATA_FILES: 0, TOTAL_DELETE_FILES: 0}
        for manifest in manifests:
            is_data = manifest.content == ManifestContent.DATA
            name = TOTAL_DATA_FILES if is_data else TOTAL_DELETE_FILES
            counts[name] += self._present_entries(manifest).live_count
        check_totals(snapshot, counts)

    def _listed(self, path: str) -> tuple[ListedManifest, ...]:
        if path not in self._lists:
            with _avro_errors(path):
                content = read_avro(self._io, path)
                with AvroFile[Record](content, _LIST, {-1: Record}) as records:
                    self._lists[path] = tuple(_listed_manifest(record) for record in records)
        return self._lists[path]

    def _present_entries(self, manifest: ListedManifest) -> _Entries:
        return _checked(manifest, _present(self._read, manifest.path))

    def _entries_left(self, manifest: ListedManifest) -> _Entries:
        entries = _or(_NO_ENTRIES, self._read, manifest.path)
        return entries if entries is _NO_ENTRIES else _checked(manifest, entries)

    def _read(self, path: str) -> _Entries:
        if path not in self._manifests:
            with _avro_errors(path):
                content = read_avro(self._io, path)
                with AvroFile[ManifestEntry](
                    content, MANIFEST_ENTRY_SCHEMAS[2], {-1: ManifestEntry, 2: DataFile}
                ) as entries:
                    rows = [(entry.status, entry.data_file.file_path) for entry in entries]
            live = [name for status, name in rows if status != ManifestEntryStatus.DELETED]
            self._manifests[path] = _Entries(
                length=len(content),
                live_count=len(live),
                deleted_count=len(rows) - len(live),
                live=frozenset(live),
                named=frozenset(name for _, name in rows),
            )
        return self._manifests[path]


def _listed_manifest(record: Record) -> ListedManifest:
    content = record[2]
    return ListedManifest(
        path=record[0],
        length=record[1],
        content=ManifestContent.DATA if content is None else ManifestContent(content),
        added=record[3],
        existing=record[4],
        deleted=record[5],
    )


def _checked(manifest: ListedManifest, entries: _Entries) -> _Entries:
    check_length(manifest.path, entries.length, manifest.length)
    check_entries(
        manifest.path,
        live=entries.live_count,
        deleted=entries.deleted_count,
        added=manifest.added,
        existing=manifest.existing,
        removed=manifest.deleted,
    )
    return entries


@contextmanager
def _avro_errors(path: str) -> Iterator[None]:
    """Turns decoding errors into TableUnreadable with the file's path; storage errors pass."""
    try:
        yield
    except (OSError, TableUnreadable):
        raise
    except Exception as e:
        raise TableUnreadable(f"{path} cannot be read: {type(e).__name__}.") from e


def _present(read: Callable[[str], T], path: str) -> T:
    try:
        return read(path)
    except FileNotFoundError as e:
        raise TableUnreadable(f"The table references {path}, which does not exist.") from e


def _or(nothing: T, read: Callable[[str], T], path: str) -> T:
    try:
        return read(path)
    except FileNotFoundError:
        return nothing


def references(
    table: Table, reader: ReferenceReader | None = None, *, without: frozenset[int] = frozenset()
) -> References:
    """All files referenced by any snapshot, except the snapshots in `without`."""
    reader = reader or ReferenceReader(table.io)
    metadata = table.metadata
    snapshots = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in without]
    manifests = reader.manifests(snapshots)
    return References(
        files=reader.live(manifests),
        manifests=frozenset(manifest.path for manifest in manifests),
        lists=frozenset(snapshot.manifest_list for snapshot in snapshots),
        metadata=frozenset(
            {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
        ),
        statistics=frozenset(path for owner, path in _statistics(table) if owner not in without),
    )


def statistics_paths(table: Table, snapshots: frozenset[int]) -> frozenset[str]:
    return frozenset(path for snapshot_id, path in _statistics(table) if snapshot_id in snapshots)


def _statistics(table: Table) -> list[tuple[int, str]]:
    files = [*table.metadata.statistics, *table.metadata.partition_statistics]
    return [(file.snapshot_id, file.statistics_path) for file in files]
