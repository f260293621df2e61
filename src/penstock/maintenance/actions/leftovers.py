"""What a killed attempt left: files that it wrote and never committed, and files that it expired
and never deleted.

The former lie under its name and are removed by the next one: at once where a lost worker cannot
commit any more, as its name says (see `Run.fenced`), else only when they are a day old. The latter
are found by the record that it wrote, see `pending_deletion`. In a location that another table may
share, or of a table whose files nobody may delete, nothing is removed.
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
from penstock.maintenance.tables.garbage_collection import check_collectable
from penstock.maintenance.tables.locations import locations
from penstock.maintenance.tables.neighbors import check_neighbours
from penstock.maintenance.tables.protection import check_table
from penstock.maintenance.tables.references import references
from penstock.maintenance.tables.storage import TableLocation
from penstock.maintenance.tables.version_hint import version_hint_files

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.tables.storage import Listed
    from penstock.maintenance.tables.table_access import TableAccess

log = logging.get(__name__)
_ATTEMPT = re.compile(r"penstock-\d+-\w+")
"""The names of attempts, see `Run.name`. A partition's folder may begin alike: `penstock-day=1`."""
_METADATA = re.compile(rf".*\.{MARK}\w+\.metadata\.json")


def remove_leftovers(lake: TableAccess, run: Run) -> int:
    """How many files of earlier attempts were removed; none where the table does not allow it."""
    try:
        check_table(lake.load(), Name.EXPIRE_SNAPSHOTS)
        return finish_deletions(lake, run) + _remove_uncommitted(lake, run)
    except (Refused, TableUnreadable) as e:
        log.info("leftovers_not_removed", job_id=run.job_id, why=e.message)
        return 0


def _remove_uncommitted(lake: TableAccess, run: Run) -> int:
    first = lake.load()
    provider = locations(first.metadata)
    data, metadata = (
        TableLocation(first, provider.data_path),
        TableLocation(first, provider.metadata_path),
    )
    written = [(data, file) for folder in _attempts(data) for file in data.files(folder)]
    written += [(metadata, file) for file in metadata.files(recursive=False) if _is_ours(file.name)]
    if not written:
        return 0
    table = lake.load()
    named = references(table).all
    hinted = version_hint_files(table, metadata)
    protected = data.protected(named) | metadata.protected(named | hinted)
    gone = [
        (location, file)
        for location, file in written
        if file.path not in protected and run.attempt not in file.path
        if run.is_over(location, file, exact=lake.exact)
        if not _was_current(table, file, run)
    ]
    if not gone:
        return 0
    neighbours = lake.neighbours()
    for location in (data, metadata):
        check_neighbours(location.locator, location.root, neighbours)
    check_collectable(lake.load())
    for location, file in gone:
        location.delete(file.path)
    log.info("leftovers_removed", job_id=run.job_id, files=len(gone))
    return len(gone)


def _attempts(data: TableLocation) -> list[str]:
    names = (folder.rpartition("/")[2] for folder in data.folders())
    return [name for name in names if _ATTEMPT.fullmatch(name)]


def _is_ours(name: str) -> bool:
    if RECORD.fullmatch(name):
        return False
    return _ATTEMPT.match(name) is not None or _METADATA.fullmatch(name) is not None


def _was_current(table: Table, file: Listed, run: Run) -> bool:
    """Metadata from before the table's log begins may have been current, and somebody be about to
    read it: a day."""
    if not _METADATA.fullmatch(file.name):
        return False
    entries = table.metadata.metadata_log
    begins = datetime.fromtimestamp(entries[0].timestamp_ms / 1000, UTC) if entries else run.now()
    return file.modified < begins and run.now() - file.modified < timedelta(seconds=DAY_SECONDS)
