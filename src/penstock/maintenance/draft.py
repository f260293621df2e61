"""A snapshot in the making. All that we use of PyIceberg's private parts to write one is in here.

The library's own producer is not used: its conflict check misses a position delete that is followed by another commit,
its label for a rewrite is wrong, and it writes added files under the default partition spec.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

    from penstock.maintenance.lake import Requirements, Updates
    from penstock.maintenance.run import Run

CODEC = "write.avro.compression-codec"


class DeleteManifestWriter(ManifestWriterV2):
    """The library writes manifests of data files only."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class Draft:
    def __init__(self, table: Table, run: Run) -> None:
        self.table = table
        self.snapshot_id: int = table.metadata.new_snapshot_id()
        self._run = run
        self._written: list[str] = []
        self._codec: Any = table.metadata.properties.get(CODEC, "gzip")

    @property
    def parent(self) -> Snapshot:
        found = self.table.metadata.current_snapshot()
        if found is None:
            raise AssertionError("a table without snapshots is not rewritten")
        return found

    def writer(self, spec_id: int, content: ManifestContent) -> ManifestWriterV2:
        kind = ManifestWriterV2 if content == ManifestContent.DATA else DeleteManifestWriter
        metadata = self.table.metadata
        output = self.table.io.new_output(self._location("m"))
        return kind(metadata.specs()[spec_id], metadata.schema(), output, self.snapshot_id, self._codec)

    def manifest(self, spec_id: int, content: ManifestContent, entries: Iterable[ManifestEntry]) -> ManifestFile:
        """A manifest of entries as they are: added, kept or deleted by this snapshot."""
        with self.writer(spec_id, content) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def added(self, file: DataFile, sequence_number: int) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=self.snapshot_id,
            sequence_number=sequence_number,
            file_sequence_number=None,
            data_file=file,
        )

    def deleted(self, entry: ManifestEntry) -> ManifestEntry:
        """Without its statistics: nobody prunes what is gone, and every planner reads it."""
        return _as(entry, ManifestEntryStatus.DELETED, self.snapshot_id, _bare(entry.data_file))

    def finish(self, manifests: Sequence[ManifestFile], summary: Mapping[str, str]) -> tuple[Requirements, Updates]:
        """Write the manifest list; what asserts the parent, and what makes the snapshot current."""
        metadata, parent = self.table.metadata, self.parent
        location, number = self._location("snap"), metadata.next_sequence_number()
        with write_manifest_list(
            format_version=metadata.format_version,
            output_file=self.table.io.new_output(location),
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent.snapshot_id,
            sequence_number=number,
            avro_compression=self._codec,
        ) as writer:
            writer.add_manifests(list(manifests))
        snapshot = Snapshot(
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent.snapshot_id,
            manifest_list=location,
            sequence_number=number,
            summary=Summary(Operation.REPLACE, **summary),
            schema_id=metadata.current_schema_id,
        )
        kept = metadata.refs[MAIN_BRANCH]
        move = SetSnapshotRefUpdate(
            ref_name=MAIN_BRANCH,
            type=SnapshotRefType.BRANCH,
            snapshot_id=self.snapshot_id,
            max_ref_age_ms=kept.max_ref_age_ms,
            max_snapshot_age_ms=kept.max_snapshot_age_ms,
            min_snapshots_to_keep=kept.min_snapshots_to_keep,
        )
        same = AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=parent.snapshot_id)
        return (same,), (AddSnapshotUpdate(snapshot=snapshot), move)

    def discard(self) -> None:
        """Only after a definite refusal: what was written for the snapshot goes."""
        for location in self._written:
            with suppress(OSError):
                self.table.io.delete(location)

    def _location(self, kind: str) -> str:
        name = f"{self._run.name}-{kind}-{uuid4().hex[:12]}.avro"
        location: str = self.table.location_provider().new_metadata_location(name)
        self._written.append(location)
        return location


def kept(entry: ManifestEntry) -> ManifestEntry:
    """An entry that lives on in another manifest, with the numbers that it has."""
    return _as(entry, ManifestEntryStatus.EXISTING, entry.snapshot_id)


def _bare(file: DataFile) -> DataFile:
    bare = DataFile.from_args(
        content=file.content,
        file_path=file.file_path,
        file_format=file.file_format,
        partition=file.partition,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
    )
    bare.spec_id = file.spec_id
    return bare


def _as(
    entry: ManifestEntry, status: ManifestEntryStatus, snapshot_id: int | None, file: DataFile | None = None
) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=file or entry.data_file,
    )
