"""Position deletes as a merge-on-read writer leaves them, written without the code under test."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DEFAULT_READ_VERSION,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate
from pyiceberg.types import LongType, NestedField, StringType, StructType

from tests.maintenance.differential.manifests import live_data_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.typedef import Record, TableVersion

PATH_ID, POSITION_ID = 2147483546, 2147483545
REFERENCED = NestedField(143, "referenced_data_file", StringType(), required=False)
SCHEMA = pa.schema(
    [
        pa.field(
            "file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(PATH_ID)}
        ),
        pa.field(
            "pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(POSITION_ID)}
        ),
    ]
)


class _DeleteManifestWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}

    def _with_partition(self, format_version: TableVersion) -> Schema:
        """With `referenced_data_file`, which the library does not write."""
        fields = super()._with_partition(format_version).fields
        [at] = [at for at, field in enumerate(fields) if field.name == "data_file"]
        extended = StructType(*fields[at].field_type.fields, REFERENCED)
        data_file = NestedField(fields[at].field_id, "data_file", extended, required=True)
        return Schema(*fields[:at], data_file, *fields[at + 1 :])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The partition that a delete file is recorded under."""

    spec_id: int
    partition: Record

    @classmethod
    def of(cls, file: DataFile) -> _Place:
        return cls(spec_id=file.spec_id, partition=file.partition)


def delete_positions(
    table: Table, positions: Mapping[str, Sequence[int]], *, by_partition: bool
) -> None:
    """Commit a delete of these rows of these files: a delete file for each data file, or for all
    data files of a partition."""
    groups: dict[object, list[DataFile]] = defaultdict(list)
    for file in live_data_files(table, table.metadata.current_snapshot()):
        if positions.get(file.file_path):
            key = (file.spec_id, repr(file.partition)) if by_partition else file.file_path
            groups[key].append(file)
    if groups:
        written = [
            _write(table, files, positions, _Place.of(files[0]), referenced=False)
            for files in groups.values()
        ]
        _commit(table, written)


def delete_positions_elsewhere(
    table: Table, positions: Mapping[str, Sequence[int]], *, referenced: bool
) -> int:
    """Commit a delete file for each data file of which there are rows to delete, under the
    partition of a data file of another partition. Returns how many there were.

    That a delete file is for one data file only is told by the bounds of its paths, or by its
    `referenced_data_file`, without bounds.
    """
    live = {f.file_path: f for f in live_data_files(table, table.metadata.current_snapshot())}
    written = []
    for path, file in live.items():
        others = [o for o in map(_Place.of, live.values()) if repr(o) != repr(_Place.of(file))]
        if positions.get(path) and others:
            written.append(_write(table, [file], positions, others[0], referenced=referenced))
    if written:
        _commit(table, written)
    return len(written)


def _write(
    table: Table,
    files: Sequence[DataFile],
    positions: Mapping[str, Sequence[int]],
    place: _Place,
    *,
    referenced: bool,
) -> DataFile:
    pairs = sorted({(file.file_path, at) for file in files for at in positions[file.file_path]})
    paths, places = [path for path, _ in pairs], [at for _, at in pairs]
    location = f"{table.location()}/data/{uuid4().hex}-deletes.parquet"
    output = table.io.new_output(location)
    with output.create() as sink:
        columns = [pa.array(paths), pa.array(places, pa.int64())]
        pq.write_table(pa.table(columns, schema=SCHEMA), sink)
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=place.partition,
        record_count=len(pairs),
        file_size_in_bytes=len(output),
        lower_bounds={} if referenced else _bounds(paths[0], min(places)),
        upper_bounds={} if referenced else _bounds(paths[-1], max(places)),
    )
    fields = (file[at] for at in range(len(DATA_FILE_TYPE[DEFAULT_READ_VERSION].fields)))
    extended = DataFile(*fields, paths[0] if referenced else None)
    extended.spec_id = place.spec_id
    return extended


def _bounds(path: str, place: int) -> dict[int, bytes]:
    return {PATH_ID: to_bytes(StringType(), path), POSITION_ID: to_bytes(LongType(), place)}


def _commit(table: Table, files: Sequence[DataFile]) -> None:
    metadata, parent = table.metadata, table.metadata.current_snapshot()
    snapshot_id, number = metadata.new_snapshot_id(), metadata.next_sequence_number()
    added = [
        _manifest(table, [file for file in files if file.spec_id == spec], spec, snapshot_id)
        for spec in sorted({file.spec_id for file in files})
    ]
    location = f"{table.location()}/metadata/snap-{snapshot_id}-{uuid4().hex}.avro"
    with write_manifest_list(
        format_version=2,
        output_file=table.io.new_output(location),
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent.snapshot_id,
        sequence_number=number,
        avro_compression="gzip",
    ) as writer:
        writer.add_manifests([*added, *parent.manifests(table.io)])
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent.snapshot_id,
        manifest_list=location,
        sequence_number=number,
        summary=Summary(Operation.DELETE),
        schema_id=metadata.current_schema_id,
    )
    move = SetSnapshotRefUpdate(
        ref_name=MAIN_BRANCH, type=SnapshotRefType.BRANCH, snapshot_id=snapshot_id
    )
    same = AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=parent.snapshot_id)
    table.catalog.commit_table(table, (same,), (AddSnapshotUpdate(snapshot=snapshot), move))


def _manifest(
    table: Table, files: Sequence[DataFile], spec_id: int, snapshot_id: int
) -> ManifestFile:
    output = table.io.new_output(f"{table.location()}/metadata/{uuid4().hex}-m0.avro")
    spec = table.metadata.specs()[spec_id]
    with _DeleteManifestWriter(spec, table.schema(), output, snapshot_id, "gzip") as writer:
        for file in files:
            writer.add_entry(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=snapshot_id,
                    sequence_number=None,
                    file_sequence_number=None,
                    data_file=file,
                )
            )
    return writer.to_manifest_file()
