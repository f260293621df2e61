"""Truncates the snapshot log correctly when snapshots are removed, for time travel queries.

PyIceberg removes only the entries of removed snapshots. If s2 is removed from the log (t1, s1),
(t2, s2), (t3, s3), the remaining entries (t1, s1), (t3, s3) claim that s1 was current between t2
and t3, and a query for that time would silently read s1. Java's Iceberg drops everything before a
removed entry, so that such a query fails. We do the same.

PyIceberg applies updates with a `functools.singledispatch` over their classes. A registered
subclass takes effect wherever this process creates metadata: in `FencedTableAccess`, in every
PyIceberg catalog that stages metadata itself, and in the REST catalog that we serve. Plain updates
are not affected. A REST catalog's server receives it as a plain update and handles the log itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table.update import (
    RemoveSnapshotsUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import SnapshotLogEntry
    from pyiceberg.table.update import TableUpdate


class RemoveSnapshots(RemoveSnapshotsUpdate):
    """Removes snapshots, and the snapshot log up to the last entry of a removed one."""


def with_log_cut(update: TableUpdate) -> TableUpdate:
    """A client's update; one that removes snapshots also truncates the log."""
    if isinstance(update, RemoveSnapshotsUpdate):
        return RemoveSnapshots(snapshot_ids=update.snapshot_ids)
    return update


def without_gaps(
    log: Iterable[SnapshotLogEntry],
    present: AbstractSet[int],
) -> list[SnapshotLogEntry]:
    """The entries after the last one whose snapshot was removed."""
    entries: list[SnapshotLogEntry] = []
    for entry in log:
        if entry.snapshot_id in present:
            entries.append(entry)
        else:
            entries.clear()
    return entries


@_apply_table_update.register(RemoveSnapshots)
def _remove_snapshots(
    update: RemoveSnapshots,
    base_metadata: TableMetadata,
    context: _TableMetadataUpdateContext,
) -> TableMetadata:
    remove = _apply_table_update.dispatch(RemoveSnapshotsUpdate)
    changed: TableMetadata = remove(update, base_metadata, context)
    present = {snapshot.snapshot_id for snapshot in changed.snapshots}
    log = without_gaps(base_metadata.snapshot_log, present)
    return changed.model_copy(update={"snapshot_log": log})
