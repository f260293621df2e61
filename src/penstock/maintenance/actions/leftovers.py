"""Removes what a killed attempt left: uncommitted files, and files of snapshots that it expired.

Uncommitted files carry the attempt's name. The next attempt removes them at once if a lost worker
can no longer commit (see `ActionContext.fenced`), otherwise after a day. Files of expired snapshots
are found by the record that the attempt wrote (see `pending_deletion`). Nothing is removed where
another table may share the location or the table forbids deletion.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.maintenance.actions.context import MARK
from penstock.maintenance.actions.model import DAY_SECONDS, Name
from penstock.maintenance.actions.pending_deletion import RECORD, finish_deletions
from penstock.maintenance.errors import Refused, TableUnreadable
from penstock.maintenance.tables.commit.protection import check_table
from penstock.maintenance.tables.ownership.garbage_collection import check_collectable
from penstock.maintenance.tables.ownership.locations import locations
from penstock.maintenance.tables.ownership.neighbors import check_neighbors
from penstock.maintenance.tables.ownership.references import references
from penstock.maintenance.tables.ownership.storage import TableLocation
from penstock.maintenance.tables.ownership.version_hint import version_hint_files

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import TableAccess
    from penstock.maintenance.tables.ownership.storage import Listed

log = logging.get(__name__)
_ATTEMPT = re.compile(r"penstock-\d+-\w+")
"""Names of attempts, see `ActionContext.name`. A partition folder may look alike:
`penstock-day=1`."""
_METADATA = re.compile(rf".*\.{MARK}\w+\.metadata\.json")


def remove_leftovers(table_access: TableAccess, context: ActionContext) -> int:
    """Remove files of earlier attempts; returns how many, 0 if the table does not allow it."""
    try:
        check_table(table_access.load(), Name.EXPIRE_SNAPSHOTS)
        return finish_deletions(table_access, context) + _remove_uncommitted(table_access, context)
    except (Refused, TableUnreadable) as e:
        log.info("leftovers_not_removed", job_id=context.job_id, why=e.message)
        return 0


def _remove_uncommitted(table_access: TableAccess, context: ActionContext) -> int:
    first = table_access.load()
    provider = locations(first.metadata)
    data, metadata = (
        TableLocation(first, provider.data_path),
        TableLocation(first, provider.metadata_path),
    )
    written = [(data, file) for folder in _attempts(data) for file in data.files(folder)]
    written += [(metadata, file) for file in metadata.files(recursive=False) if _is_ours(file.name)]
    if not written:
        return 0
    table = table_access.load()
    named = references(table).all
    hinted = version_hint_files(table, metadata)
    protected = data.protected(named) | metadata.protected(named | hinted)
    gone = [
        (location, file)
        for location, file in written
        if file.path not in protected and context.attempt not in file.path
        if context.is_over(location, file, exact=table_access.exact)
        if not _was_current(table, file, context)
    ]
    if not gone:
        return 0
    neighbors = table_access.neighbors()
    for location in (data, metadata):
        check_neighbors(location.locator, location.root, neighbors)
    check_collectable(table_access.load())
    for location, file in gone:
        location.delete(file.path)
    log.info("leftovers_removed", job_id=context.job_id, files=len(gone))
    return len(gone)


def _attempts(data: TableLocation) -> list[str]:
    names = (folder.rpartition("/")[2] for folder in data.folders())
    return [name for name in names if _ATTEMPT.fullmatch(name)]


def _is_ours(name: str) -> bool:
    if RECORD.fullmatch(name):
        return False
    return _ATTEMPT.match(name) is not None or _METADATA.fullmatch(name) is not None


def _was_current(table: Table, file: Listed, context: ActionContext) -> bool:
    """Metadata older than the table's metadata log may have been current, so a reader may still
    need it: for a day."""
    if not _METADATA.fullmatch(file.name):
        return False
    entries = table.metadata.metadata_log
    begins = (
        datetime.fromtimestamp(entries[0].timestamp_ms / 1000, UTC) if entries else context.now()
    )
    return file.modified < begins and context.now() - file.modified < timedelta(seconds=DAY_SECONDS)
