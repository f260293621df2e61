"""What a killed attempt wrote and never committed: under its name, and removed by the next one.

Where a lost worker cannot commit any more its files go at once; elsewhere only when they are a day old.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.maintenance.action import DAY_SECONDS
from penstock.maintenance.orphans import Place
from penstock.maintenance.references import references
from penstock.maintenance.run import MARK

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from penstock.maintenance.lake import Lake
    from penstock.maintenance.orphans import Listed
    from penstock.maintenance.run import Run

log = logging.get(__name__)
PREFIX = "penstock-"
_METADATA = re.compile(rf".*\.{MARK}\w+\.metadata\.json")


def remove_leftovers(lake: Lake, run: Run) -> int:
    """How many files of earlier attempts were removed."""
    place = Place(lake.load())
    folders = [f"data/{f.rpartition('/')[2]}" for f in place.folders("data") if f.rpartition("/")[2].startswith(PREFIX)]
    found = [file for folder in folders for file in place.listed(under=folder)]
    found += [f for f in place.listed(under="metadata", recursive=False) if _ours(f.path.rpartition("/")[2])]
    if not found:
        return 0
    table = lake.load()
    named = {place.inside(location) for location in references(table).all}
    since = run.now() - timedelta(seconds=0 if lake.exact else DAY_SECONDS)
    gone = [
        f
        for f in found
        if f.path not in named and run.attempt not in f.path and f.modified < since and not _once_current(table, f, run)
    ]
    for file in gone:
        place.files.delete_file(file.path)
    if gone:
        log.info("leftovers_removed", job_id=run.job_id, files=len(gone))
    return len(gone)


def _ours(name: str) -> bool:
    return name.startswith(PREFIX) or _METADATA.fullmatch(name) is not None


def _once_current(table: Table, file: Listed, run: Run) -> bool:
    """Metadata from before the table's log begins may have been current, and somebody be about to read it: a day."""
    if not _METADATA.fullmatch(file.path.rpartition("/")[2]):
        return False
    log = table.metadata.metadata_log
    begins = datetime.fromtimestamp(log[0].timestamp_ms / 1000, UTC) if log else run.now()
    return file.modified < begins and run.now() - file.modified < timedelta(seconds=DAY_SECONDS)
