"""What a killed attempt wrote and never committed: under its name, and removed by the next one.

Where a lost worker cannot commit any more its files go at once; elsewhere only when they are a day old.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.maintenance.action import DAY_SECONDS
from penstock.maintenance.orphans import Place
from penstock.maintenance.references import references

if TYPE_CHECKING:
    from penstock.maintenance.lake import Lake
    from penstock.maintenance.run import Run

log = logging.get(__name__)
PREFIX = "penstock-"


def remove_leftovers(lake: Lake, run: Run) -> int:
    """How many files of earlier attempts were removed."""
    place = Place(lake.load())
    folders = [f"data/{f.rpartition('/')[2]}" for f in place.folders("data") if f.rpartition("/")[2].startswith(PREFIX)]
    found = [file for folder in folders for file in place.listed(under=folder)]
    found += [
        f for f in place.listed(under="metadata", recursive=False) if f.path.rpartition("/")[2].startswith(PREFIX)
    ]
    if not found:
        return 0
    named = {place.inside(location) for location in references(lake.load()).all}
    since = run.now() - timedelta(seconds=0 if lake.exact else DAY_SECONDS)
    gone = [f for f in found if f.path not in named and run.name not in f.path and f.modified < since]
    for file in gone:
        place.files.delete_file(file.path)
    if gone:
        log.info("leftovers_removed", job_id=run.job_id, files=len(gone))
    return len(gone)
