"""Files of expired snapshots that are to be deleted: written down before the commit, finished by
the next job.

An expiry commits first and deletes afterwards, so a kill in between would leave files that no
snapshot names and no default action looks for. Therefore it writes a small record into the table's
metadata folder before it commits, under the attempt's name: the table, the snapshots that go, their
manifest lists and statistics. It removes the record when all is deleted. The next job of that
table, whatever its actions, reads the records that it finds:

- A snapshot of it is still in the table: the commit did not happen. Nothing is deleted but the
  record; and that only when the attempt cannot commit any more, or after a day.
- None is: the commit happened. The lists that are still there lead to the manifests, and these to
  the data files. Each file is compared with all that the table names at that moment, as after any
  expiry, and goes when nothing names it.

A record proves nothing by itself: it only says where to look, and what may be deleted is always
decided by the metadata of the moment. Data goes before the manifests that lead to it and these
before the lists, so what is missing on the way was dealt with before. A file outside the table's
own folders, or in a folder of another table, is left: see `table_folders`. A record of another
table that shares the folder is left alone, and so are all records while `gc.enabled` is not true.
Deriving the same from the table's metadata log was not chosen: it is cut off by other writers, and
it would also take what another engine expired and meant to keep.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from penstock.kit import logging
from penstock.maintenance.actions.model import Name
from penstock.maintenance.errors import TableUnreadable
from penstock.maintenance.tables.garbage_collection import may_collect
from penstock.maintenance.tables.locations import locations
from penstock.maintenance.tables.protection import check_table
from penstock.maintenance.tables.references import ReferenceReader, references
from penstock.maintenance.tables.storage import Locator, TableLocation, delete_file
from penstock.maintenance.tables.table_folders import TableFolders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.tables.neighbors import Neighbor
    from penstock.maintenance.tables.references import References
    from penstock.maintenance.tables.storage import Listed, StoragePath
    from penstock.maintenance.tables.table_access import TableAccess

log = logging.get(__name__)
BATCH = 500
RECORD = re.compile(r"penstock-\d+-\w+-expired-\w+\.json")


class PendingDeletion(BaseModel):
    model_config = ConfigDict(frozen=True)

    table_uuid: str
    snapshot_ids: frozenset[int]
    manifest_lists: frozenset[str]
    statistics: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    files: int = 0
    bytes: int = 0
    stopped: bool = False
    """Files were left: `gc.enabled` is not true any more, or the name is another table's by now."""
    foreign: Mapping[str, int] = field(default_factory=dict)
    """How many files were left because they may be another table's, by the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreferenced:
    """In the order in which it goes."""

    data: tuple[str, ...]
    manifests: tuple[str, ...]
    lists: tuple[str, ...]
    foreign: Mapping[str, int]
    """How many more there are that may be another table's, by the reason."""

    @property
    def all(self) -> tuple[str, ...]:
        return self.data + self.manifests + self.lists


class DeletionPlanner:
    """Finds what only expired snapshots named; spellings of one file count as one."""

    def __init__(self, table: Table, reader: ReferenceReader, folders: TableFolders) -> None:
        self.reader = reader
        self._folders = folders
        self._locator = Locator(table.io.properties)
        self._resolved: dict[str, StoragePath] = {}

    def unreferenced(self, pending: PendingDeletion, live: References) -> Unreferenced:
        staying = self.resolve_all(live.all)
        manifests = self.reader.manifests_left(pending.manifest_lists)
        going = {manifest for manifest in manifests if self._resolve(manifest.path) not in staying}
        data = self.reader.named_left(going)
        foreign: Counter[str] = Counter()
        return Unreferenced(
            data=(
                *self._own(self.without(data, staying), foreign),
                *self._own(self.without(pending.statistics, staying), foreign),
            ),
            manifests=self._own(sorted(manifest.path for manifest in going), foreign),
            lists=self._own(self.without(pending.manifest_lists, staying), foreign),
            foreign=dict(foreign),
        )

    def _own(self, locations: Iterable[str], foreign: Counter[str]) -> tuple[str, ...]:
        """Without those that may be another table's, which are counted."""
        own: list[str] = []
        for location in locations:
            reason = self._folders.why_foreign(self._resolve(location))
            if reason is None:
                own.append(location)
            else:
                foreign[reason] += 1
        return tuple(own)

    def resolve_all(self, locations: Iterable[str]) -> frozenset[StoragePath]:
        return frozenset(self._resolve(location) for location in locations)

    def without(self, locations: Iterable[str], staying: frozenset[StoragePath]) -> tuple[str, ...]:
        left = (location for location in locations if self._resolve(location) not in staying)
        return tuple(sorted(left))

    def _resolve(self, location: str) -> StoragePath:
        if location not in self._resolved:
            self._resolved[location] = self._locator.resolve(location)
        return self._resolved[location]


def write_record(table: Table, run: Run, pending: PendingDeletion) -> str:
    """Where it is."""
    name = f"{run.name}-expired-{uuid4().hex[:12]}.json"
    location = locations(table.metadata).new_metadata_location(name)
    with table.io.new_output(location).create() as stream:
        stream.write(pending.model_dump_json().encode())
    return location


def delete_files(
    lake: TableAccess,
    run: Run,
    reader: ReferenceReader,
    neighbours: Sequence[Neighbor],
    pending: PendingDeletion,
) -> Deleted:
    """Delete what only the snapshots of a committed expiry named; each batch is compared with the
    table anew.
    """
    table = lake.load()
    check_table(table, Name.EXPIRE_SNAPSHOTS)
    folders = TableFolders(table, neighbours)
    folders.check_own()
    planner = DeletionPlanner(table, reader, folders)
    current, live = table.metadata_location, references(table, planner.reader)
    doomed, staying = planner.unreferenced(pending, live), planner.resolve_all(live.all)
    count = size = 0
    for step, paths in (
        ("data_deleted", doomed.data),
        ("manifests_deleted", doomed.manifests),
        ("lists_deleted", doomed.lists),
    ):
        for start in range(0, len(paths), BATCH):
            run.check()
            table = lake.load()
            check_table(table, Name.EXPIRE_SNAPSHOTS)
            is_same = str(table.metadata.table_uuid) == pending.table_uuid
            if not is_same or not may_collect(table.properties):
                return Deleted(files=count, bytes=size, stopped=True, foreign=doomed.foreign)
            if table.metadata_location != current:
                current, staying = (
                    table.metadata_location,
                    planner.resolve_all(references(table, planner.reader).all),
                )
            for path in planner.without(paths[start : start + BATCH], staying):
                freed = delete_file(table.io, path)
                count, size = count + (freed is not None), size + (freed or 0)
        run.step(step)
    return Deleted(files=count, bytes=size, foreign=doomed.foreign)


def finish_deletions(lake: TableAccess, run: Run) -> int:
    """Delete what earlier attempts wrote down and did not come to; how many files went."""
    table = lake.load()
    if not may_collect(table.properties):
        return 0
    count = 0
    neighbours: Sequence[Neighbor] | None = None
    location = TableLocation(table, locations(table.metadata).metadata_path)
    for file in records(location):
        if run.attempt in file.name:
            continue
        pending = read_record(location, file)
        if pending is not None and pending.table_uuid != str(table.metadata.table_uuid):
            continue
        present = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
        if pending is None or pending.snapshot_ids & present:
            if run.is_over(location, file, exact=lake.exact):
                location.delete(file.path)
            continue
        try:
            neighbours = lake.neighbours() if neighbours is None else neighbours
            deleted = delete_files(lake, run, ReferenceReader(table.io), neighbours, pending)
        except TableUnreadable as e:
            log.warning("expiry_not_finished", job_id=run.job_id, record=file.name, error=e.message)
            continue
        count += deleted.files
        if not deleted.stopped:
            location.delete(file.path)
            run.step("record_removed")
        log.info(
            "expiry_finished",
            job_id=run.job_id,
            record=file.name,
            files=deleted.files,
            **deleted.foreign,
        )
    return count


def records(location: TableLocation) -> Sequence[Listed]:
    return [file for file in location.files(recursive=False) if RECORD.fullmatch(file.name)]


def read_record(location: TableLocation, file: Listed) -> PendingDeletion | None:
    """None for one that was not written to its end: it is written before the commit, which then did
    not happen.
    """
    try:
        return PendingDeletion.model_validate_json(location.read(file.path))
    except (FileNotFoundError, ValidationError):
        return None


def is_pending_deletion(table: Table, location: TableLocation, file: Listed) -> bool:
    """Whether a file is a record of this table that is still to be dealt with."""
    if RECORD.fullmatch(file.name) is None:
        return False
    pending = read_record(location, file)
    return pending is not None and pending.table_uuid == str(table.metadata.table_uuid)
