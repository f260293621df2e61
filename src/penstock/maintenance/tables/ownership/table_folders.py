"""Decides which files a table may delete: files in its own folders and in no other table's folder.

A snapshot may reference files of another table: `add_files` adds them in place, and one metadata
file may be registered under two names. A file that this table no longer references may still be
live in the other table, so it is left.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.ownership.neighbors import SHARED_HINT, folders_of
from penstock.maintenance.tables.ownership.storage import Locator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.table import Table

    from penstock.maintenance.tables.ownership.neighbors import Neighbor
    from penstock.maintenance.tables.ownership.storage import StoragePath


class Foreign(enum.StrEnum):
    """Why a file is left, as reported in results."""

    OUTSIDE = "outside_table_folders"
    SHARED = "in_another_table"


class TableFolders:
    def __init__(self, table: Table, neighbors: Iterable[Neighbor]) -> None:
        self._locator = Locator(table.io.properties)
        self._location = self._locator.resolve(table.location())
        self._own = self._resolved(folders_of(table))
        self._others = [
            (other.name, self._resolved(other.folders), self._resolved(other.files))
            for other in neighbors
            if other.located
        ]
        self._foreign_folders = [folder for _, folders, _ in self._others for folder in folders]
        self._foreign_files = {file for _, _, files in self._others for file in files}

    def check_own(self) -> None:
        """Refused if another table shares the location, usually because it is registered twice.

        A table with its own folder below the location is allowed: its files are recognized by that
        folder.
        """
        for name, folders, files in self._others:
            below = [folder for folder in folders if self._location.contains(folder)]
            strays = (file for file in files if not any(f.contains(file) for f in below))
            around = any(folder.contains(self._location) for folder in folders)
            if around or any(self._location.contains(file) for file in strays):
                raise Refused(f"The location is shared with {name}.", hint=SHARED_HINT)

    def why_foreign(self, file: StoragePath) -> Foreign | None:
        """Why a file may not be deleted; None if it is the table's own."""
        if not any(folder.contains(file) for folder in self._own):
            return Foreign.OUTSIDE
        if file in self._foreign_files:
            return Foreign.SHARED
        if any(folder.contains(file) for folder in self._foreign_folders):
            return Foreign.SHARED
        return None

    def _resolved(self, locations: Iterable[str]) -> tuple[StoragePath, ...]:
        return tuple(dict.fromkeys(self._locator.resolve(location) for location in locations))
