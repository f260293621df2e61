"""Reads manifest entries without the defects of PyIceberg's reader.

PyIceberg's compiled decoder rounds doubles to floats and does not detect truncated files. So double
partition values are read as eight bytes, and files are checked by `avro_check`. PyIceberg also
ignores `referenced_data_file`, which Java uses to match delete files to data files; here it is an
additional last field of `DataFile`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pyiceberg.avro.file import AvroFile
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    _inherit_from_manifest,
    read_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FixedType, NestedField, StringType, StructType

from penstock.maintenance.errors import Refused, TableUnreadable
from penstock.maintenance.tables.reading.avro_check import check_entries, check_length, read_avro

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table.snapshots import Snapshot

_DATA_FILE, _PARTITION = 2, 102
_EIGHT_BYTES = FixedType(8)
_REFERENCED_DATA_FILE = NestedField(143, "referenced_data_file", StringType(), required=False)
REFERENCED_DATA_FILE_AT = len(DATA_FILE_TYPE[DEFAULT_READ_VERSION].fields)
"""Its position in a `DataFile`, if present."""


def with_referenced_data_file(field: NestedField) -> NestedField:
    """A field of the manifest schema; `data_file` gets the additional field."""
    type_ = field.field_type
    if field.field_id != _DATA_FILE or not isinstance(type_, StructType):
        return field
    type_ = StructType(*type_.fields, _REFERENCED_DATA_FILE)
    return NestedField(field.field_id, field.name, type_, required=field.required, doc=field.doc)


def referenced_data_file(file: DataFile) -> str | None:
    """The data file that a delete file refers to, if its manifest says so."""
    return file[REFERENCED_DATA_FILE_AT] if len(file) > REFERENCED_DATA_FILE_AT else None


_ENTRY_SCHEMA = Schema(
    *map(with_referenced_data_file, MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION].fields)
)


class _ExactAvroFile(AvroFile[ManifestEntry]):
    def __enter__(self) -> _ExactAvroFile:
        super().__enter__()
        fields = tuple(map(_exact, self.schema.fields))
        expected = self.read_schema or self.schema
        self.reader = resolve_reader(Schema(*fields), expected, self.read_types, self.read_enums)
        return self


def live_entries(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    try:
        entries, deleted = _read(io, manifest)
    except (OSError, TableUnreadable):
        raise
    except TypeError as e:
        raise Refused(
            f"PyIceberg does not support a type in {manifest.manifest_path}: {str(e)[:200]}.",
            hint="Use a remote engine.",
        ) from e
    except Exception as e:
        raise TableUnreadable(
            f"PyIceberg cannot read {manifest.manifest_path}: {type(e).__name__}: {str(e)[:200]}"
        ) from e
    check_entries(
        manifest.manifest_path,
        live=len(entries),
        deleted=deleted,
        added=manifest.added_files_count,
        existing=manifest.existing_files_count,
        removed=manifest.deleted_files_count,
    )
    return entries


def listed_manifests(io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot. Bypasses PyIceberg's cache, which accepts truncated lists."""
    path = snapshot.manifest_list
    try:
        content = read_avro(io, path)
        return tuple(read_manifest_list(content))
    except (OSError, TableUnreadable):
        raise
    except Exception as e:
        message = f"PyIceberg cannot read {path}: {type(e).__name__}: {str(e)[:200]}"
        raise TableUnreadable(message) from e


def _read(io: FileIO, manifest: ManifestFile) -> tuple[list[ManifestEntry], int]:
    """The live entries, and the number of deleted ones."""
    content = read_avro(io, manifest.manifest_path)
    check_length(manifest.manifest_path, len(content), manifest.manifest_length)
    with _ExactAvroFile(
        content,
        _ENTRY_SCHEMA,
        read_types={-1: ManifestEntry, _DATA_FILE: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as file:
        doubles = _doubles(file.schema)
        everything = list(file)
    live = [entry for entry in everything if entry.status != ManifestEntryStatus.DELETED]
    entries = [_inherit_from_manifest(entry, manifest) for entry in live]
    for entry in entries if doubles else ():
        partition = entry.data_file.partition
        for at in doubles:
            if partition[at] is not None:
                [partition[at]] = struct.unpack("<d", partition[at])
    return entries, len(everything) - len(entries)


def _exact(field: NestedField, *, partition: bool = False) -> NestedField:
    type_ = field.field_type
    if isinstance(type_, StructType) and field.field_id in (_DATA_FILE, _PARTITION):
        inside = field.field_id == _PARTITION
        type_ = StructType(*(_exact(child, partition=inside) for child in type_.fields))
    elif partition and isinstance(type_, DoubleType):
        type_ = _EIGHT_BYTES
    return NestedField(field.field_id, field.name, type_, required=field.required)


def _doubles(schema: Schema) -> list[int]:
    partition = schema.find_type(_PARTITION)
    if not isinstance(partition, StructType):
        return []
    return [
        at for at, field in enumerate(partition.fields) if isinstance(field.field_type, DoubleType)
    ]
