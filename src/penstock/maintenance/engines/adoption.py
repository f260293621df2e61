"""Checks before a remote engine runs an action, and what it changed according to the table.

`remote_handlers` calls it around a statement. It reads the table and its storage, and writes
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from pyiceberg.table.snapshots import ancestors_of

from penstock.kit import logging
from penstock.maintenance.actions.model import Name
from penstock.maintenance.actions.orphans import TRASH
from penstock.maintenance.engines.embedded import measure
from penstock.maintenance.errors import CatalogUnavailable, Refused
from penstock.maintenance.tables.commit.protection import opted_out
from penstock.maintenance.tables.ownership.garbage_collection import check_collectable
from penstock.maintenance.tables.ownership.neighbors import check_alone, check_neighbors
from penstock.maintenance.tables.ownership.storage import Locator, TableLocation
from penstock.maintenance.tables.ownership.table_folders import TableFolders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.tables.catalog.table_access import TableAccess

    IsOurs = Callable[[Mapping[str, str]], bool]

log = logging.get(__name__)
REWRITES = frozenset(
    {Name.REWRITE_DATA_FILES, Name.REWRITE_POSITION_DELETE_FILES, Name.REWRITE_MANIFESTS}
)
"""Actions that commit a snapshot."""


def measured(table_access: TableAccess) -> tuple[int, dict[str, int]]:
    """The current snapshot id (0 for none) and the counts of the table."""
    table = table_access.load()
    return table.metadata.current_snapshot_id or 0, measure(table)


def landed(table_access: TableAccess, since: int, is_ours: IsOurs) -> bool:
    return any(True for _ in _snapshots(table_access.load(), since, is_ours))


class Changes(TypedDict):
    """Fields of an `Outcome`."""

    rewritten_files: int
    rewritten_bytes: int
    added_files: int
    added_bytes: int
    commits: int
    snapshot_ids: tuple[int, ...]


def changes(table: Table, since: int, is_ours: IsOurs) -> Changes:
    """Files and bytes added and removed, by the summaries of our snapshots after `since`."""
    snapshots = list(_snapshots(table, since, is_ours))

    def total(*keys: str) -> int:
        return sum(int(summary.get(key, 0)) for _, summary in snapshots for key in keys)

    return {
        "rewritten_files": total(
            "deleted-data-files", "removed-delete-files", "manifests-replaced"
        ),
        "rewritten_bytes": total("removed-files-size"),
        "added_files": total("added-data-files", "added-delete-files", "manifests-created"),
        "added_bytes": total("added-files-size"),
        "commits": len(snapshots),
        "snapshot_ids": tuple(snapshot.snapshot_id for snapshot, _ in snapshots),
    }


def check_elsewhere(table_access: TableAccess, table: Table, action: Action) -> None:
    """Refuse what a remote engine would not: opted-out tables, `gc.enabled`, shared locations."""
    if (why := opted_out(table.properties)) is not None:
        raise Refused(why)
    if action.name in (Name.EXPIRE_SNAPSHOTS, Name.REMOVE_ORPHAN_FILES):
        check_collectable(table)
    if action.name is Name.EXPIRE_SNAPSHOTS:
        TableFolders(table, table_access.neighbors()).check_own()
    if action.name is Name.REMOVE_ORPHAN_FILES:
        _check_alone(table_access, table)


def _check_alone(table_access: TableAccess, table: Table) -> None:
    """The embedded engine's check; by the catalogs alone where the storage cannot be listed."""
    try:
        location = TableLocation(table)
        trash = f"{location.path}/{TRASH}/"
        listed = [file for file in location.files() if not file.path.startswith(trash)]
    except (Refused, CatalogUnavailable) as e:
        log.info("storage_not_listed", table=".".join(table.name()), why=e.message)
        locator = Locator(table.io.properties)
        check_neighbors(locator, locator.resolve(table.location()), table_access.neighbors())
        return
    lists = (snapshot.manifest_list for snapshot in table.metadata.snapshots)
    named = location.protected((table.metadata_location, *lists))
    check_alone(table_access, table, location, listed, named)


def _snapshots(
    table: Table, since: int, is_ours: IsOurs
) -> Iterator[tuple[Snapshot, Mapping[str, str]]]:
    for snapshot in ancestors_of(table.metadata.current_snapshot(), table.metadata):
        if snapshot.snapshot_id == since:
            return
        if snapshot.summary is not None:
            summary = {
                **snapshot.summary.additional_properties,
                "operation": snapshot.summary.operation.value,
            }
            if is_ours(summary):
                yield snapshot, summary
