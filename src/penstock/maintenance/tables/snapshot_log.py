"""The snapshot log after snapshots are removed: by it, readers find the snapshot of a time.

PyIceberg takes the entries of removed snapshots out and leaves those before them. Of the log
(t1, s1), (t2, s2), (t3, s3) without s2 there would stay (t1, s1), (t3, s3), by which s1 was current
between t2 and t3: a query of that time would silently read s1. Java's Iceberg drops everything
before a removed entry, so that such a query fails. So do we.

How: PyIceberg makes the new metadata by a `functools.singledispatch` over the classes of updates. A
subclass of its update with a function of its own is taken wherever metadata are made in this
process: by `FencedTableAccess`, by every PyIceberg catalog that stages metadata itself, and by the
REST catalog that we serve. Updates of other users of the library in this process are not changed.
To the server of a REST catalog it is sent as the plain update that it is, and the server does its
part.
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
    """Removes snapshots, and all of the snapshot log before the last entry of one of them."""


def with_log_cut(update: TableUpdate) -> TableUpdate:
    """An update as a client sent it; one that removes snapshots also cuts the log."""
    if isinstance(update, RemoveSnapshotsUpdate):
        return RemoveSnapshots(snapshot_ids=update.snapshot_ids)
    return update


def without_gaps(
    log: Iterable[SnapshotLogEntry],
    present: AbstractSet[int],
) -> list[SnapshotLogEntry]:
    """The entries after the last one whose snapshot is not there."""
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
