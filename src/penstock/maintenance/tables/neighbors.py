"""Other tables whose files may lie in a table's location, and the check that there are none.

They are found in three ways: by name in the table's own catalog, over all namespaces; in what the
control plane knows of other catalogs; and in the storage itself, where a table that no catalog of
ours knows is recognized by the names of its metadata files. A table whose metadata cannot be read
is known by where that metadata is: it stands in the way of the tables that share its folder, and of
no others.
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
from penstock.maintenance.tables.locations import locations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.tables.storage import Listed, Locator, StoragePath, TableLocation
    from penstock.maintenance.tables.table_access import TableAccess

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
SHARED_HINT = "Give each table a location of its own. Nothing was touched."


class _Snapshot(BaseModel):
    manifest_list: str | None = Field(default=None, alias="manifest-list")


class _LogEntry(BaseModel):
    metadata_file: str = Field(alias="metadata-file")


class MetadataFile(BaseModel):
    """What of a metadata file says where a table is; it is the same in all format versions, and for
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
    """Another table as far as a catalog, or the list of tables as they were seen last, knows it."""

    name: str
    metadata_location: str | None = None
    location: str | None = None

    @classmethod
    def read(cls, table: Mapping[str, str | None]) -> TablePointer:
        """As the control plane shows it."""
        return cls(
            name=f"{table['catalog']}.{table['db']}.{table['table']}",
            metadata_location=table["metadata_location"],
            location=table["location"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """Folders that belong to another table, and files of it.

    One that has neither could not be located.
    """

    name: str
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def located(self) -> bool:
        return bool(self.folders or self.files)


def folders_of(table: Table) -> tuple[str, ...]:
    """Where a table keeps its files: its location, and the folders that its properties name."""
    provider = locations(table.metadata)
    own = (table.location(), provider.data_path, provider.metadata_path)
    return (*own, *_folders(table.properties))


def neighbour_of(name: str, table: Table) -> Neighbor:
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


def read_neighbour(properties: Mapping[str, str], pointer: TablePointer) -> Neighbor:
    """From its metadata file, whatever the format version; by the place of that file where it
    cannot be read.
    """
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
    """ValueError for what is not a table's metadata."""
    try:
        text = gzip.decompress(content) if content.startswith(_GZIP) else content
        return MetadataFile.model_validate_json(text)
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise ValueError("This is not the metadata of a table.") from e


def check_alone(
    lake: TableAccess,
    table: Table,
    location: TableLocation,
    listed: Sequence[Listed],
    named: Collection[str],
) -> None:
    """Refused when a file of another table may be among those that were listed in the table's
    location.

    `named` are the paths of the files that the table names itself.
    """
    neighbours = lake.neighbours()
    check_neighbours(location.locator, location.root, neighbours)
    check_storage(table, location, listed, named)
    lost = [neighbour.name for neighbour in neighbours if not neighbour.located]
    if lost and (foreign := _other_metadata(table, location, listed, named)) is not None:
        raise Refused(
            f"{lost[0]} cannot be read, and {foreign} may be its metadata.",
            hint="Repair that table, or remove it from its catalog. Nothing was touched.",
        )


def check_neighbours(
    locator: Locator,
    folder: StoragePath,
    neighbours: Iterable[Neighbor],
) -> None:
    """Refused when one of them may have files in the folder."""
    for neighbour in neighbours:
        around = any(folder.overlaps(locator.resolve(other)) for other in neighbour.folders)
        if around or any(folder.contains(locator.resolve(file)) for file in neighbour.files):
            raise Refused(f"The location is shared with {neighbour.name}.", hint=SHARED_HINT)


def check_storage(
    table: Table,
    location: TableLocation,
    listed: Sequence[Listed],
    named: Collection[str],
) -> None:
    """Refused where the storage itself shows another table, inside of the location or around it."""
    if (folder := foreign_metadata(table, location, listed, named)) is not None:
        raise Refused(f"{folder} holds the metadata of another table.", hint=SHARED_HINT)
    own = {location.locator.resolve(folder) for folder in metadata_folders(table)}
    for parent in location.root.parents():
        above = location.files_above(parent, METADATA_FOLDER)
        files = [file for file in above if _is_metadata(file.name)]
        folder_above = parent._replace(path=f"{parent.path}/{METADATA_FOLDER}")
        if files and folder_above not in own and not _any_own(table, location, files):
            raise Refused(
                f"The location lies in that of another table, whose metadata is {files[0].path}.",
                hint=SHARED_HINT,
            )


def foreign_metadata(
    table: Table, location: TableLocation, listed: Sequence[Listed], named: Collection[str]
) -> str | None:
    """A folder below the location that holds metadata which is not the table's."""
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
    """A metadata file in the table's own folder that is another table's: dropped and created anew,
    most often.
    """
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
    """Whether the newest metadata files of a folder are older ones of the table itself."""
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
