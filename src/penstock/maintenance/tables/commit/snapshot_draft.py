"""Writes the manifests and manifest list of a new snapshot. Private PyIceberg APIs are used here.

PyIceberg's own snapshot producer is not used: its conflict check misses a position delete that is
followed by another commit, its operation for a rewrite is wrong, and it writes added files under
the default partition spec.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate
from pyiceberg.types import DoubleType, FloatType, IntegerType, ListType, NestedField, StructType

from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.catalog.table_access import SequenceNumberFree
from penstock.maintenance.tables.commit.file_statistics import stored_value
from penstock.maintenance.tables.ownership.locations import locations
from penstock.maintenance.tables.reading.manifest_entries import (
    REFERENCED_DATA_FILE_AT,
    referenced_data_file,
    with_referenced_data_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyiceberg.io import OutputFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.typedef import TableVersion
    from pyiceberg.types import PrimitiveType

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import Requirements, Updates

CODEC = "write.avro.compression-codec"
_DATA_FILE, _EQUALITY_IDS, _EQUALITY_ID = 2, 135, 136
"""Field ids of a manifest."""
_CODECS = {"gzip": "gzip", "zstd": "zstd", "uncompressed": "null"}
_COUNTS = {
    7: (ManifestEntryStatus.ADDED, "files"),
    8: (ManifestEntryStatus.EXISTING, "files"),
    9: (ManifestEntryStatus.DELETED, "files"),
    10: (ManifestEntryStatus.ADDED, "rows"),
    11: (ManifestEntryStatus.EXISTING, "rows"),
    12: (ManifestEntryStatus.DELETED, "rows"),
}
"""Places of the counts in an entry of a manifest list."""
_LOWER, _UPPER = 2, 3
"""Places of the bounds in a partition summary."""


class _OptionalSpec(PartitionSpec):
    """Makes all partition values optional: `void` of a required column is null."""

    def partition_type(self, schema: Schema) -> StructType:
        fields = super().partition_type(schema).fields
        return StructType(
            *(NestedField(f.field_id, f.name, f.field_type, required=False) for f in fields)
        )


class DataManifestWriter(ManifestWriterV2):
    """Keeps the types of partition values whose source column was dropped, which PyIceberg would
    lose."""

    def __init__(
        self,
        metadata: TableMetadata,
        spec_id: int,
        output: OutputFile,
        snapshot_id: int,
        codec: Any,
    ) -> None:
        spec = metadata.specs()[spec_id]
        written = _OptionalSpec(*spec.fields, spec_id=spec.spec_id)
        super().__init__(written, _with_sources(metadata, spec), output, snapshot_id, codec)
        self._current = metadata.schema()

    def _with_partition(self, format_version: TableVersion) -> Schema:
        schema = super()._with_partition(format_version)
        return Schema(*map(_with_int_equality_ids, schema.fields), schema_id=schema.schema_id)

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "schema": self._current.model_dump_json()}

    def to_manifest_file(self) -> ManifestFile:
        manifest = super().to_manifest_file()
        types = [field.field_type for field in self._spec.partition_type(self._schema).fields]
        for type_, summary in zip(types, manifest.partitions or (), strict=False):
            if isinstance(type_, FloatType | DoubleType):
                summary[_LOWER] = _signed_zero(type_, summary.lower_bound, -0.0)
                summary[_UPPER] = _signed_zero(type_, summary.upper_bound, 0.0)
        return manifest


class DeleteManifestWriter(DataManifestWriter):
    """Writes manifests of delete files, which PyIceberg cannot."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    def _with_partition(self, format_version: TableVersion) -> Schema:
        schema = super()._with_partition(format_version)
        return Schema(*map(with_referenced_data_file, schema.fields), schema_id=schema.schema_id)

    def prepare_entry(self, entry: ManifestEntry) -> ManifestEntry:
        prepared = super().prepare_entry(entry)
        file = prepared.data_file
        fields = (file[at] for at in range(REFERENCED_DATA_FILE_AT))
        return _as(
            prepared,
            prepared.status,
            prepared.snapshot_id,
            DataFile(*fields, referenced_data_file(file)),
        )

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def _codec(metadata: TableMetadata) -> Any:
    """The table's manifest compression if supported, else gzip."""
    return _CODECS.get(str(metadata.properties.get(CODEC, "")).lower(), "gzip")


def _with_int_equality_ids(field: NestedField) -> NestedField:
    """Declares equality ids as ints, as in the specification. PyIceberg declares longs, which Java
    cannot read.
    """
    type_ = field.field_type
    if field.field_id == _EQUALITY_IDS:
        type_ = ListType(_EQUALITY_ID, IntegerType(), element_required=True)
    elif field.field_id == _DATA_FILE and isinstance(type_, StructType):
        type_ = StructType(*map(_with_int_equality_ids, type_.fields))
    else:
        return field
    return NestedField(field.field_id, field.name, type_, required=field.required, doc=field.doc)


def _signed_zero(type_: PrimitiveType, bound: bytes | None, zero: float) -> bytes | None:
    """Widen a zero bound to include both -0.0 and 0.0, which some readers order differently."""
    return to_bytes(type_, zero) if bound is not None and stored_value(type_, bound) == 0 else bound


def _with_sources(metadata: TableMetadata, spec: PartitionSpec) -> Schema:
    """The table's schema plus the dropped source columns of the partition spec."""
    schema = metadata.schema()
    missing = {field.source_id for field in spec.fields} - schema.field_ids
    fields = list(schema.fields)
    for older in reversed(metadata.schemas):
        for source in sorted(missing & older.field_ids):
            dropped = older.find_field(source)
            fields.append(
                NestedField(source, f"dropped_{source}", dropped.field_type, required=False)
            )
            missing.remove(source)
    if missing:
        raise Refused(
            f"Partition spec {spec.spec_id} uses a column that is in no schema of the table.",
            hint="Rewrite those partitions with the engine that wrote them.",
        )
    return Schema(*fields, schema_id=schema.schema_id)


class Draft:
    def __init__(self, table: Table, context: ActionContext) -> None:
        self.table = table
        self.snapshot_id: int = table.metadata.new_snapshot_id()
        self._context = context
        self._written: list[str] = []
        self._codec = _codec(table.metadata)

    @property
    def parent(self) -> Snapshot:
        snapshot = self.table.metadata.current_snapshot()
        if snapshot is None:
            raise AssertionError("a table without snapshots is not rewritten")
        return snapshot

    def writer(self, spec_id: int, content: ManifestContent) -> ManifestWriterV2:
        kind = DataManifestWriter if content == ManifestContent.DATA else DeleteManifestWriter
        output = self.table.io.new_output(self._location("m"))
        return kind(self.table.metadata, spec_id, output, self.snapshot_id, self._codec)

    def manifest(
        self, spec_id: int, content: ManifestContent, entries: Iterable[ManifestEntry]
    ) -> ManifestFile:
        """Write a manifest of the given entries: added, existing or deleted."""
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
        """The entry as deleted, without statistics: planners read the entry but never prune it."""
        return _as(entry, ManifestEntryStatus.DELETED, self.snapshot_id, _bare(entry.data_file))

    def finish(
        self, manifests: Sequence[ManifestFile], summary: Mapping[str, str]
    ) -> tuple[Requirements, Updates]:
        """Write the manifest list; returns the requirements and updates that commit the
        snapshot."""
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
            writer.add_manifests([self._counted(manifest) for manifest in manifests])
        snapshot = Snapshot(
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent.snapshot_id,
            manifest_list=location,
            sequence_number=number,
            summary=Summary(Operation.REPLACE, **summary),
            schema_id=metadata.current_schema_id,
        )
        main_ref = metadata.refs[MAIN_BRANCH]
        move = SetSnapshotRefUpdate(
            ref_name=MAIN_BRANCH,
            type=SnapshotRefType.BRANCH,
            snapshot_id=self.snapshot_id,
            max_ref_age_ms=main_ref.max_ref_age_ms,
            max_snapshot_age_ms=main_ref.max_snapshot_age_ms,
            min_snapshots_to_keep=main_ref.min_snapshots_to_keep,
        )
        same = AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=parent.snapshot_id)
        return (same, SequenceNumberFree(sequence_number=number)), (
            AddSnapshotUpdate(snapshot=snapshot),
            move,
        )

    def _counted(self, manifest: ManifestFile) -> ManifestFile:
        """Fill in the counts that are optional in format version 1 and required in version 2."""
        if None not in (manifest[at] for at in _COUNTS):
            return manifest
        entries = manifest.fetch_manifest_entry(self.table.io, discard_deleted=False)
        counted = ManifestFile(*(manifest[at] for at in range(len(manifest))))
        for at, (status, what) in _COUNTS.items():
            those = [entry.data_file.record_count for entry in entries if entry.status == status]
            counted[at] = len(those) if what == "files" else sum(those)
        return counted

    def discard(self) -> None:
        """Delete the written files; only after a definite refusal."""
        for location in self._written:
            with suppress(OSError):
                self.table.io.delete(location)

    def _location(self, kind: str) -> str:
        name = f"{self._context.name}-{kind}-{uuid4().hex[:12]}.avro"
        location = locations(self.table.metadata).new_metadata_location(name)
        self._written.append(location)
        return location


def existing_entry(entry: ManifestEntry) -> ManifestEntry:
    """The entry as existing in another manifest, with its sequence numbers."""
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
    entry: ManifestEntry,
    status: ManifestEntryStatus,
    snapshot_id: int | None,
    file: DataFile | None = None,
) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=file or entry.data_file,
    )
