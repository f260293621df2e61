"""Finds `version-hint.text` and the metadata files that it names, which must not be deleted.

Hadoop's catalog, and readers that open a table by its folder (DuckDB, PyIceberg's `StaticTable`),
read the hint and then the metadata file that it names. The table's metadata references neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.maintenance.tables.ownership.neighbors import (
    METADATA_FILES,
    VERSION_HINT,
    metadata_folders,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

    from penstock.maintenance.tables.ownership.storage import TableLocation

_ENDINGS = (*METADATA_FILES, ".gz.metadata.json")
_LONGEST = 1000


def version_hint_files(table: Table, location: TableLocation) -> frozenset[str]:
    """The hints in the table's metadata folders inside the location, and every file that they may
    refer to, existing or not.
    """
    folders = [folder.rstrip("/") for folder in metadata_folders(table)]
    return frozenset(name for folder in folders for name in _hinted(location, folder))


def _hinted(location: TableLocation, folder: str) -> Iterator[str]:
    hint = f"{folder}/{VERSION_HINT}"
    path = location.inside(hint)
    if path is None:
        return
    yield hint
    try:
        version = location.read(path).decode().strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return
    if not version or len(version) > _LONGEST or "/" in version:
        return
    yield f"{folder}/{version}"
    for ending in _ENDINGS:
        yield f"{folder}/{version}{ending}"
        yield f"{folder}/v{version}{ending}"
