"""Lists a table's storage and normalizes locations so that they can be compared.

A location is taken literally, as in PyIceberg and Hadoop: both write the partition value `a/b` to a
folder named `name=a%2Fb`, in storage and in manifests, so nothing is percent-decoded. Different
spellings of a file compare equal: `file:/a` and `file:///a`, `s3a` and `s3`, doubled slashes, and,
on a local disk, `..` and symbolic links.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from pyarrow.fs import FileSelector, FileType
from pyiceberg.io.pyarrow import PyArrowFileIO

from penstock.maintenance.errors import CatalogUnavailable, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from pyarrow.fs import FileSystem
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

LOCAL = "file:"
_URI = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):(?://(?P<authority>[^/]*))?(?P<path>.*)",
    re.DOTALL,
)
_ONE_STORE = {
    "s3a": "s3",
    "s3n": "s3",
    "gcs": "gs",
    "abfs": "azure",
    "abfss": "azure",
    "wasb": "azure",
    "wasbs": "azure",
}
"""Schemes of different engines for the same store."""
_NO_AUTHORITY = ("hdfs", "viewfs")
"""Schemes whose paths do not begin with the authority in PyIceberg; it names the cluster and is
often omitted.
"""


class StoragePath(NamedTuple):
    store: str
    path: str
    """With a slash before each part, so that the root of a store is empty."""

    def contains(self, other: StoragePath) -> bool:
        if self.store != other.store:
            return False
        return other.path == self.path or other.path.startswith(f"{self.path}/")

    def overlaps(self, other: StoragePath) -> bool:
        return self.contains(other) or other.contains(self)

    def parents(self) -> Iterator[StoragePath]:
        """The folders above it, the nearest first."""
        path = self.path
        while path:
            path = path.rpartition("/")[0]
            yield StoragePath(self.store, path)


@dataclass(frozen=True, slots=True)
class _Parts:
    scheme: str
    authority: str
    path: str


class Locator:
    """Resolves locations as a table's FileIO does.

    It caches folders, so create a new one for each piece of work.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._folders: dict[str, str] = {}

    def resolve(self, location: str) -> StoragePath:
        parts = self._parse(location)
        scheme = _ONE_STORE.get(parts.scheme, parts.scheme)
        if scheme == "file" and parts.authority in ("", "localhost"):
            path = _absolute(parts.path)
            return StoragePath(LOCAL, self._real(f"/{path.lstrip('/')}").rstrip("/"))
        authority = "" if scheme in _NO_AUTHORITY else parts.authority
        if scheme == "azure":
            authority = authority.partition(".")[0].lower()
        path = posixpath.normpath(f"/{parts.path.lstrip('/')}")
        return StoragePath(f"{scheme}://{authority}", path.rstrip("/"))

    def file_system_path(self, location: str) -> tuple[str, str, str]:
        """Scheme, authority and path for a FileIO.

        PyIceberg's own parsing truncates a name at `?` or `#`.
        """
        parts = self._parse(location)
        if parts.scheme in _NO_AUTHORITY or parts.scheme == "file":
            return parts.scheme, parts.authority, parts.path
        return parts.scheme, parts.authority, f"{parts.authority}{parts.path}"

    def _parse(self, location: str) -> _Parts:
        uri = _URI.fullmatch(location)
        if uri is None:
            scheme = self._properties.get("DEFAULT_SCHEME", "file").lower()
            authority = self._properties.get("DEFAULT_NETLOC", "")
            return _Parts(scheme, authority, posixpath.normpath(_absolute(location)))
        return _Parts(uri["scheme"].lower(), uri["authority"] or "", uri["path"])

    def _real(self, path: str) -> str:
        folder, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            return os.path.realpath(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder or "/")
        resolved = posixpath.join(self._folders[folder], name)
        return os.path.realpath(resolved) if Path(resolved).is_symlink() else resolved


def _absolute(path: str) -> str:
    return path if path.startswith("/") else posixpath.join(Path.cwd(), path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    path: str
    size: int
    modified: datetime

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


class TableLocation:
    """A folder of a table on its file system; by default the table's location.

    `path` and the paths of listed files are file system paths, without a scheme. Symbolic links
    below the folder are neither followed nor listed.
    """

    def __init__(self, table: Table, location: str | None = None) -> None:
        if not isinstance(table.io, PyArrowFileIO):
            raise Refused(
                "The storage of this table cannot be listed.",
                hint="Use a remote engine.",
            )
        self.location = location or table.location()
        self.locator = Locator(table.io.properties)
        self.root = self.locator.resolve(self.location)
        scheme, authority, path = self.locator.file_system_path(self.location)
        self.file_system: FileSystem = table.io.fs_by_scheme(scheme, authority)
        self.path = self.root.path if self.is_local else posixpath.normpath(path).rstrip("/")

    @property
    def is_local(self) -> bool:
        return self.root.store == LOCAL

    def files(self, under: str = "", *, recursive: bool = True) -> list[Listed]:
        """Every file; empty if the folder does not exist."""
        return self._list(self._below(under), recursive=recursive)[0]

    def folders(self, under: str = "") -> list[str]:
        return self._list(self._below(under), recursive=False)[1]

    def files_above(self, folder: StoragePath, name: str) -> list[Listed]:
        """The files of the folder `name` in a parent folder; empty if it cannot be listed."""
        above = self.path.removesuffix(self.root.path.removeprefix(folder.path))
        try:
            return self._list(f"{above}/{name}", recursive=False)[0]
        except (Refused, CatalogUnavailable):
            return []

    def read(self, path: str) -> bytes:
        with self.file_system.open_input_stream(path, compression=None) as stream:
            content: bytes = stream.read()
        return content

    def delete(self, path: str) -> bool:
        """Delete a file; False if it did not exist."""
        try:
            self.file_system.delete_file(path)
        except FileNotFoundError:
            return False
        return True

    def inside(self, location: str) -> str | None:
        """The file system path of a location inside this folder; None if it is elsewhere."""
        return self._path_of(self.locator.resolve(location))

    def protected(self, locations: Iterable[str]) -> frozenset[str]:
        """Every path in this folder that one of the locations may refer to.

        Includes the percent-decoded paths, in case a writer encodes locations but not file names.
        """
        return frozenset(path for location in locations for path in self._meanings(location))

    def missing(self, locations: Iterable[str], listed: AbstractSet[str]) -> list[str]:
        """The locations in this folder that were not listed."""
        inside = [location for location in locations if self.inside(location) is not None]
        return sorted(name for name in inside if not set(self._meanings(name)) & listed)

    def in_another_store(self, locations: Iterable[str]) -> list[str]:
        """Locations with a path in this folder but in another store."""
        own = self.root.store
        resolved = ((location, self.locator.resolve(location)) for location in locations)
        return sorted(
            location
            for location, (store, path) in resolved
            if store != own and self._path_of(StoragePath(own, path)) is not None
        )

    def _meanings(self, location: str) -> Iterator[str]:
        resolved = self.locator.resolve(location)
        path = self._path_of(resolved)
        if path is not None:
            yield path
        if "%" not in location:
            return
        if path is not None:
            yield self.path + posixpath.normpath(unquote(path.removeprefix(self.path)))
        if (decoded := self.inside(unquote(location))) is not None:
            yield decoded

    def _path_of(self, resolved: StoragePath) -> str | None:
        if resolved == self.root or not self.root.contains(resolved):
            return None
        return self.path + resolved.path.removeprefix(self.root.path)

    def _below(self, under: str) -> str:
        return f"{self.path}/{under}" if under else self.path

    def _list(self, folder: str, *, recursive: bool) -> tuple[list[Listed], list[str]]:
        try:
            if self.is_local:
                return _list_local(folder or "/", recursive=recursive)
            selector = FileSelector(folder, allow_not_found=True, recursive=recursive)
            infos = self.file_system.get_file_info(selector)
        except PermissionError as e:
            raise Refused(
                f"{self.location} cannot be listed: permission denied.",
                hint="Grant the worker permission to list it.",
            ) from e
        except OSError as e:
            raise CatalogUnavailable(f"{self.location} cannot be listed: {str(e)[:300]}") from e
        files = [
            Listed(path=info.path, size=info.size or 0, modified=info.mtime)
            for info in infos
            if info.type == FileType.File
        ]
        return files, [info.path for info in infos if info.type == FileType.Directory]


def _list_local(folder: str, *, recursive: bool) -> tuple[list[Listed], list[str]]:
    """Arrow's own listing follows symbolic links, even cycles."""
    files: list[Listed] = []
    folders: list[str] = []
    pending = [folder]
    while pending:
        current = pending.pop()
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        if recursive:
                            pending.append(entry.path)
                    elif (file := _listed_local(entry)) is not None:
                        files.append(file)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return files, folders


def _listed_local(entry: os.DirEntry[str]) -> Listed | None:
    """None if it is not a regular file, or was deleted concurrently."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return Listed(path=entry.path, size=status.st_size, modified=modified)


def file_size(io: FileIO, location: str) -> int | None:
    """The size of a file; None if it does not exist."""
    try:
        if not isinstance(io, PyArrowFileIO):
            return len(io.new_input(location))
        scheme, authority, path = Locator(io.properties).file_system_path(location)
        info = io.fs_by_scheme(scheme, authority).get_file_info(path)
    except FileNotFoundError:
        return None
    return (info.size or 0) if info.type == FileType.File else None


def delete_file(io: FileIO, location: str) -> int | None:
    """Delete a file and return its size; None if it did not exist."""
    size = file_size(io, location)
    if size is None:
        return None
    try:
        if not isinstance(io, PyArrowFileIO):
            io.delete(location)
        else:
            scheme, authority, path = Locator(io.properties).file_system_path(location)
            io.fs_by_scheme(scheme, authority).delete_file(path)
    except FileNotFoundError:
        return None
    return size
