"""Records of pending deletions: files of expired snapshots that the next job deletes after a crash.

An expiry commits first and deletes afterwards. A worker killed in between would leave files that no
snapshot references and no default action looks for. Therefore the expiry writes a small record
under the attempt's name into the table's metadata folder before it commits: the table, the expired
snapshots, their manifest lists and statistics. It removes the record after the last deletion. The
next job of the table, whatever its actions, reads the remaining records:

- If a snapshot of the record is still in the table, the commit did not happen. Only the record is
  deleted, once the attempt can no longer commit or after a day.
- Otherwise the commit happened. The remaining manifest lists lead to the manifests, and these to
  the data files. Each file is compared with everything the table references now, as after any
  expiry, and is deleted when unreferenced.

A record only says where to look; the current metadata always decides what may be deleted. Data is
deleted before manifests and manifests before lists, so a missing file was handled before. A file
outside the table's own folders, or in a folder of another table, is left (see `table_folders`).
Records of another table in the same folder are left, and all records while `gc.enabled` is not
true. The table's metadata log cannot replace the records: other writers truncate it, and it would
include files that another engine expired and meant to keep.
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
from penstock.maintenance.tables.commit.protection import check_table
from penstock.maintenance.tables.ownership.garbage_collection import may_collect
from penstock.maintenance.tables.ownership.locations import locations
from penstock.maintenance.tables.ownership.references import ReferenceReader, references
from penstock.maintenance.tables.ownership.storage import Locator, TableLocation, delete_file
from penstock.maintenance.tables.ownership.table_folders import TableFolders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import TableAccess
    from penstock.maintenance.tables.ownership.neighbors import Neighbor
    from penstock.maintenance.tables.ownership.references import References
    from penstock.maintenance.tables.ownership.storage import Listed, StoragePath

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
    """Files remain: `gc.enabled` is no longer true, or the name now refers to another table."""
    foreign: Mapping[str, int] = field(default_factory=dict)
    """How many files were left because they may belong to another table, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreferenced:
    """Files that nothing references any more, in the order of deletion."""

    data: tuple[str, ...]
    manifests: tuple[str, ...]
    lists: tuple[str, ...]
    foreign: Mapping[str, int]
    """How many more files may belong to another table, by reason."""

    @property
    def all(self) -> tuple[str, ...]:
        return self.data + self.manifests + self.lists


class DeletionPlanner:
    """Finds files that only expired snapshots reference; paths are compared by what they resolve
    to."""

    def __init__(self, table: Table, reader: ReferenceReader, folders: TableFolders) -> None:
        self.reader = reader
        self._folders = folders
        self._locator = Locator(table.io.properties)
        self._resolved: dict[str, StoragePath] = {}

    def unreferenced(self, pending: PendingDeletion, live: References) -> Unreferenced:
        live_paths = self.resolve_all(live.all)
        manifests = self.reader.manifests_left(pending.manifest_lists)
        going = {
            manifest for manifest in manifests if self._resolve(manifest.path) not in live_paths
        }
        data = self.reader.named_left(going)
        foreign: Counter[str] = Counter()
        return Unreferenced(
            data=(
                *self._own(self.without(data, live_paths), foreign),
                *self._own(self.without(pending.statistics, live_paths), foreign),
            ),
            manifests=self._own(sorted(manifest.path for manifest in going), foreign),
            lists=self._own(self.without(pending.manifest_lists, live_paths), foreign),
            foreign=dict(foreign),
        )

    def _own(self, locations: Iterable[str], foreign: Counter[str]) -> tuple[str, ...]:
        """Leave out files that may belong to another table, and count them."""
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

    def without(
        self, locations: Iterable[str], live_paths: frozenset[StoragePath]
    ) -> tuple[str, ...]:
        left = (location for location in locations if self._resolve(location) not in live_paths)
        return tuple(sorted(left))

    def _resolve(self, location: str) -> StoragePath:
        if location not in self._resolved:
            self._resolved[location] = self._locator.resolve(location)
        return self._resolved[location]


def write_record(table: Table, context: ActionContext, pending: PendingDeletion) -> str:
    """Write the record of a pending deletion; returns its location."""
    name = f"{context.name}-expired-{uuid4().hex[:12]}.json"
    location = locations(table.metadata).new_metadata_location(name)
    with table.io.new_output(location).create() as stream:
        stream.write(pending.model_dump_json().encode())
    return location


def delete_files(
    table_access: TableAccess,
    context: ActionContext,
    reader: ReferenceReader,
    neighbors: Sequence[Neighbor],
    pending: PendingDeletion,
) -> Deleted:
    """Delete files that only the snapshots of a committed expiry referenced; each batch is compared
    with the current table.
    """
    table = table_access.load()
    check_table(table, Name.EXPIRE_SNAPSHOTS)
    folders = TableFolders(table, neighbors)
    folders.check_own()
    planner = DeletionPlanner(table, reader, folders)
    current, live = table.metadata_location, references(table, planner.reader)
    unreferenced, live_paths = planner.unreferenced(pending, live), planner.resolve_all(live.all)
    count = size = 0
    for step, paths in (
        ("data_deleted", unreferenced.data),
        ("manifests_deleted", unreferenced.manifests),
        ("lists_deleted", unreferenced.lists),
    ):
        for start in range(0, len(paths), BATCH):
            context.check()
            table = table_access.load()
            check_table(table, Name.EXPIRE_SNAPSHOTS)
            is_same = str(table.metadata.table_uuid) == pending.table_uuid
            if not is_same or not may_collect(table.properties):
                return Deleted(files=count, bytes=size, stopped=True, foreign=unreferenced.foreign)
            if table.metadata_location != current:
                current, live_paths = (
                    table.metadata_location,
                    planner.resolve_all(references(table, planner.reader).all),
                )
            for path in planner.without(paths[start : start + BATCH], live_paths):
                freed = delete_file(table.io, path)
                count, size = count + (freed is not None), size + (freed or 0)
        context.step(step)
    return Deleted(files=count, bytes=size, foreign=unreferenced.foreign)


def finish_deletions(table_access: TableAccess, context: ActionContext) -> int:
    """Finish deletions that earlier attempts recorded; returns the number of deleted files."""
    table = table_access.load()
    if not may_collect(table.properties):
        return 0
    count = 0
    neighbors: Sequence[Neighbor] | None = None
    location = TableLocation(table, locations(table.metadata).metadata_path)
    for file in records(location):
        if context.attempt in file.name:
            continue
        pending = read_record(location, file)
        if pending is not None and pending.table_uuid != str(table.metadata.table_uuid):
            continue
        present = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
        if pending is None or pending.snapshot_ids & present:
            if context.is_over(location, file, exact=table_access.exact):
                location.delete(file.path)
            continue
        try:
            neighbors = table_access.neighbors() if neighbors is None else neighbors
            deleted = delete_files(
                table_access, context, ReferenceReader(table.io), neighbors, pending
            )
        except TableUnreadable as e:
            log.warning(
                "expiry_not_finished", job_id=context.job_id, record=file.name, error=e.message
            )
            continue
        count += deleted.files
        if not deleted.stopped:
            location.delete(file.path)
            context.step("record_removed")
        log.info(
            "expiry_finished",
            job_id=context.job_id,
            record=file.name,
            files=deleted.files,
            **deleted.foreign,
        )
    return count


def records(location: TableLocation) -> Sequence[Listed]:
    return [file for file in location.files(recursive=False) if RECORD.fullmatch(file.name)]


def read_record(location: TableLocation, file: Listed) -> PendingDeletion | None:
    """None for a record that is not complete: it is written before the commit, so that commit did
    not happen.
    """
    try:
        return PendingDeletion.model_validate_json(location.read(file.path))
    except (FileNotFoundError, ValidationError):
        return None


def is_pending_deletion(table: Table, location: TableLocation, file: Listed) -> bool:
    """Whether a file is a record of this table."""
    if RECORD.fullmatch(file.name) is None:
        return False
    pending = read_record(location, file)
    return pending is not None and pending.table_uuid == str(table.metadata.table_uuid)
