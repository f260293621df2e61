"""Finds other tables whose files may be in a table's location, and refuses shared locations.

Other tables come from three sources: the table's own catalog, over all namespaces; other catalogs,
as far as the control plane has listed them; and the storage, where a table outside our catalogs is
recognized by the names of its metadata files. If a table's metadata cannot be read, it blocks only
the tables that share the folder of that metadata.
"""

from __future__ import annotations

import gzip
import zlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field
from pyiceberg.io import load_file_io

from penstock.kit import logging
from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.ownership.locations import locations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.payloads import OtherTable
    from penstock.maintenance.tables.catalog.table_access import TableAccess
    from penstock.maintenance.tables.ownership.storage import (
        Listed,
        Locator,
        StoragePath,
        TableLocation,
    )

log = logging.get(__name__)
METADATA_FOLDER = "metadata"
METADATA_FILES = (".metadata.json", ".metadata.json.gz")
VERSION_HINT = "version-hint.text"
FOLDER_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
SAMPLE = 5
_GZIP = b"\x1f\x8b"
SHARED_HINT = "Give each table its own location. Nothing was changed."


class _Snapshot(BaseModel):
    manifest_list: str | None = Field(default=None, alias="manifest-list")


class _LogEntry(BaseModel):
    metadata_file: str = Field(alias="metadata-file")


class MetadataFile(BaseModel):
    """The fields of a metadata file that locate a table; equal in all format versions and for
    views.
    """

    model_config = ConfigDict(extra="ignore")

    location: str
    table_uuid: str | None = Field(default=None, alias="table-uuid")
    properties: dict[str, object] | None = None
    snapshots: list[_Snapshot] | None = None
    metadata_log: list[_LogEntry] | None = Field(default=None, alias="metadata-log")


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePointer:
    """Another table, as listed by a catalog or by the last refresh."""

    name: str
    metadata_location: str | None = None
    location: str | None = None

    @classmethod
    def read(cls, table: OtherTable) -> TablePointer:
        return cls(
            name=f"{table.catalog}.{table.db}.{table.table}",
            metadata_location=table.metadata_location,
            location=table.location,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """Another table's folders and files; without either, the table could not be located."""

    name: str
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def located(self) -> bool:
        return bool(self.folders or self.files)


def folders_of(table: Table) -> tuple[str, ...]:
    """The folders of a table: its location, and those in its properties."""
    provider = locations(table.metadata)
    own = (table.location(), provider.data_path, provider.metadata_path)
    return (*own, *_folders(table.properties))


def neighbor_of(name: str, table: Table) -> Neighbor:
    metadata = table.metadata
    return Neighbor(
        name=name,
        folders=(metadata.location, *_folders(metadata.properties)),
        files=(
            table.metadata_location,
            *(entry.metadata_file for entry in metadata.metadata_log),
            *(snapshot.manifest_list for snapshot in metadata.snapshots),
        ),
    )


def read_neighbor(properties: Mapping[str, str], pointer: TablePointer) -> Neighbor:
    """Read a neighbor from its metadata file; if that is unreadable, assume the usual layout."""
    seen = () if pointer.location is None else (pointer.location,)
    path = pointer.metadata_location
    if path is None:
        return Neighbor(name=pointer.name, folders=seen)
    try:
        with load_file_io(dict(properties), path).new_input(path).open() as stream:
            metadata = parse_metadata(stream.read())
    except Exception as e:
        log.warning("neighbour_not_readable", table=pointer.name, error=type(e).__name__)
        return Neighbor(name=pointer.name, folders=(_usual_location(path), *seen), files=(path,))
    lists = [s.manifest_list for s in metadata.snapshots or () if s.manifest_list]
    older = [entry.metadata_file for entry in metadata.metadata_log or ()]
    folders = (metadata.location, *_folders(metadata.properties or {}))
    return Neighbor(name=pointer.name, folders=folders, files=(path, *lists, *older))


def parse_metadata(content: bytes) -> MetadataFile:
    """Parse a metadata file; ValueError if it is not one."""
    try:
        text = gzip.decompress(content) if content.startswith(_GZIP) else content
        return MetadataFile.model_validate_json(text)
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise ValueError("not a table metadata file") from e


def check_alone(
    table_access: TableAccess,
    table: Table,
    location: TableLocation,
    listed: Sequence[Listed],
    named: Collection[str],
) -> None:
    """Refused if the listed files of the table's location may include files of another table.

    `named` are the paths of the files that the table references.
    """
    neighbors = table_access.neighbors()
    check_neighbors(location.locator, location.root, neighbors)
    check_storage(table, location, listed, named)
    lost = [neighbor.name for neighbor in neighbors if not neighbor.located]
    if lost and (foreign := _other_metadata(table, location, listed, named)) is not None:
        raise Refused(
            f"{lost[0]} cannot be read, and {foreign} may be its metadata.",
            hint="Repair that table, or remove it from its catalog. Nothing was changed.",
        )


def check_neighbors(
    locator: Locator,
    folder: StoragePath,
    neighbors: Iterable[Neighbor],
) -> None:
    """Refused if a neighbor may have files in the folder."""
    for neighbor in neighbors:
        around = any(folder.overlaps(locator.resolve(other)) for other in neighbor.folders)
        if around or any(folder.contains(locator.resolve(file)) for file in neighbor.files):
            raise Refused(f"The location is shared with {neighbor.name}.", hint=SHARED_HINT)


def check_storage(
    table: Table,
    location: TableLocation,
    listed: Sequence[Listed],
    named: Collection[str],
) -> None:
    """Refused if the storage contains metadata of another table inside or above the location."""
    if (folder := foreign_metadata(table, location, listed, named)) is not None:
        raise Refused(f"{folder} holds the metadata of another table.", hint=SHARED_HINT)
    own = {location.locator.resolve(folder) for folder in metadata_folders(table)}
    for parent in location.root.parents():
        above = location.files_above(parent, METADATA_FOLDER)
        files = [file for file in above if _is_metadata(file.name)]
        folder_above = parent._replace(path=f"{parent.path}/{METADATA_FOLDER}")
        if files and folder_above not in own and not _any_own(table, location, files):
            raise Refused(
                f"The location is inside that of another table, with metadata {files[0].path}.",
                hint=SHARED_HINT,
            )


def foreign_metadata(
    table: Table, location: TableLocation, listed: Sequence[Listed], named: Collection[str]
) -> str | None:
    """A folder below the location with metadata of another table, or None."""
    own = {location.inside(f"{folder}/x") for folder in metadata_folders(table)}
    folders: dict[str, list[Listed]] = defaultdict(list)
    for file in listed:
        is_manifest = file.name.endswith(".avro") and _ends_in(file.folder, METADATA_FOLDER)
        if is_manifest or _is_metadata(file.name):
            folders[file.folder].append(file)
    for folder, files in sorted(folders.items()):
        if f"{folder}/x" in own or any(file.path in named for file in files):
            continue
        if not _any_own(table, location, files):
            return folder
    return None


def _other_metadata(
    table: Table, location: TableLocation, listed: Sequence[Listed], named: Collection[str]
) -> str | None:
    """A metadata file of another table in this table's folder; usually after drop and create."""
    own = {location.inside(f"{folder}/x") for folder in metadata_folders(table)}
    for file in listed:
        if f"{file.folder}/x" not in own or file.path in named:
            continue
        if file.name.endswith(METADATA_FILES) and not _is_own(table, location, file):
            return file.path
    return None


def _folders(properties: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(properties[name]) for name in FOLDER_PROPERTIES if properties.get(name))


def _usual_location(metadata_location: str) -> str:
    folder = metadata_location.rpartition("/")[0]
    return folder.rpartition("/")[0] if _ends_in(folder, METADATA_FOLDER) else folder


def metadata_folders(table: Table) -> set[str]:
    return {
        f"{table.location().rstrip('/')}/{METADATA_FOLDER}",
        locations(table.metadata).metadata_path,
    }


def _is_metadata(name: str) -> bool:
    return name.endswith(METADATA_FILES) or name == VERSION_HINT


def _any_own(table: Table, location: TableLocation, files: Sequence[Listed]) -> bool:
    """Whether one of the newest metadata files of a folder belongs to the table itself."""
    metadata = sorted(
        (f for f in files if f.name.endswith(METADATA_FILES)),
        key=lambda f: f.modified,
        reverse=True,
    )
    return any(_is_own(table, location, file) for file in metadata[:SAMPLE])


def _is_own(table: Table, location: TableLocation, file: Listed) -> bool:
    try:
        return parse_metadata(location.read(file.path)).table_uuid == str(table.metadata.table_uuid)
    except (OSError, ValueError):
        return False


def _ends_in(folder: str, name: str) -> bool:
    return folder.rpartition("/")[2] == name
