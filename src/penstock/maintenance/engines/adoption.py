"""What an engine elsewhere did to a table, as the table itself says; and what such an engine must
not be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.table.snapshots import ancestors_of

from penstock.kit import logging
from penstock.maintenance.actions.model import Name
from penstock.maintenance.actions.orphans import TRASH
from penstock.maintenance.engines.embedded import measure
from penstock.maintenance.errors import CatalogUnavailable, Refused
from penstock.maintenance.tables.garbage_collection import check_collectable
from penstock.maintenance.tables.neighbors import check_alone, check_neighbours
from penstock.maintenance.tables.protection import opted_out
from penstock.maintenance.tables.storage import Locator, TableLocation
from penstock.maintenance.tables.table_folders import TableFolders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.tables.table_access import TableAccess

    Made = Callable[[Mapping[str, str]], bool]

log = logging.get(__name__)
REWRITES = frozenset(
    {Name.REWRITE_DATA_FILES, Name.REWRITE_POSITION_DELETE_FILES, Name.REWRITE_MANIFESTS}
)
"""Those that leave a snapshot."""
_COUNTS = {
    "rewritten_files": ("deleted-data-files", "removed-delete-files", "manifests-replaced"),
    "rewritten_bytes": ("removed-files-size",),
    "added_files": ("added-data-files", "added-delete-files", "manifests-created"),
    "added_bytes": ("added-files-size",),
}


def measured(lake: TableAccess) -> tuple[int, dict[str, int]]:
    """The current snapshot, 0 for none, and what the table holds."""
    table = lake.load()
    return table.metadata.current_snapshot_id or 0, measure(table)


def landed(lake: TableAccess, since: int, made: Made) -> bool:
    return any(True for _ in _snapshots(lake.load(), since, made))


def changes(table: Table, since: int, made: Made) -> dict[str, Any]:
    """Files and bytes that came and went, as the snapshots that were made since say."""
    found = list(_snapshots(table, since, made))
    counts = {
        name: sum(int(s.get(key, 0)) for _, s in found for key in keys)
        for name, keys in _COUNTS.items()
    }
    return {
        **counts,
        "commits": len(found),
        "snapshot_ids": tuple(snapshot.snapshot_id for snapshot, _ in found),
    }


def check_elsewhere(lake: TableAccess, table: Table, action: Action) -> None:
    """What we know of a table and an engine elsewhere does not."""
    if (why := opted_out(table.properties)) is not None:
        raise Refused(why)
    if action.name in (Name.EXPIRE_SNAPSHOTS, Name.REMOVE_ORPHAN_FILES):
        check_collectable(table)
    if action.name is Name.EXPIRE_SNAPSHOTS:
        TableFolders(table, lake.neighbours()).check_own()
    if action.name is Name.REMOVE_ORPHAN_FILES:
        _check_alone(lake, table)


def _check_alone(lake: TableAccess, table: Table) -> None:
    """As on the embedded engine; by what the catalogs know alone where we cannot list."""
    try:
        location = TableLocation(table)
        trash = f"{location.path}/{TRASH}/"
        listed = [file for file in location.files() if not file.path.startswith(trash)]
    except (Refused, CatalogUnavailable) as e:
        log.info("storage_not_listed", table=".".join(table.name()), why=e.message)
        locator = Locator(table.io.properties)
        check_neighbours(locator, locator.resolve(table.location()), lake.neighbours())
        return
    lists = (snapshot.manifest_list for snapshot in table.metadata.snapshots)
    named = location.protected((table.metadata_location, *lists))
    check_alone(lake, table, location, listed, named)


def _snapshots(
    table: Table, since: int, made: Made
) -> Iterator[tuple[Snapshot, Mapping[str, str]]]:
    for snapshot in ancestors_of(table.metadata.current_snapshot(), table.metadata):
        if snapshot.snapshot_id == since:
            return
        if snapshot.summary is not None:
            summary = {
                **snapshot.summary.additional_properties,
                "operation": snapshot.summary.operation.value,
            }
            if made(summary):
                yield snapshot, summary
