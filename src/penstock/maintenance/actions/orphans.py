"""remove_orphan_files: move unreferenced files of a table's location to a trash folder for a week.

Storage is listed before the metadata is read, so a file that is committed in between counts as
referenced. Anything that could make a live file look like an orphan is refused: a location shared
with another table, a listing that misses referenced files, references in another scheme, and an
implausibly large share of orphans. The table is reloaded before each batch of moves, so files that
were referenced in the meantime stay, and the action stops once the table forbids it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from pyarrow.fs import FileType

from penstock.kit import logging
from penstock.maintenance.actions.budget import Budget
from penstock.maintenance.actions.model import DAY_SECONDS, Action, Ended, Name, Outcome
from penstock.maintenance.actions.pending_deletion import is_pending_deletion
from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.commit.protection import check_table
from penstock.maintenance.tables.ownership.garbage_collection import check_collectable
from penstock.maintenance.tables.ownership.neighbors import check_alone
from penstock.maintenance.tables.ownership.references import ReferenceReader, References, references
from penstock.maintenance.tables.ownership.storage import TableLocation
from penstock.maintenance.tables.ownership.version_hint import version_hint_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import TableAccess
    from penstock.maintenance.tables.ownership.storage import Listed

log = logging.get(__name__)
DEFAULT_AGE = 3 * DAY_SECONDS
FLOOR = DAY_SECONDS
TRASH = ".trash"
TRASH_KEPT = timedelta(days=7)
BATCH = 500
TOO_MUCH = 0.5
_STAMP = re.compile(r"(\d{8}T\d{6})-\d+")


class Orphans:
    def __init__(self, table_access: TableAccess, context: ActionContext, action: Action) -> None:
        self._table_access = table_access
        self._context = context
        self._action = action
        self._budget = Budget(context, action)

    def plan(self) -> Outcome:
        _, orphans = self._find()
        if not orphans:
            message = self._budget.message(done=False)
            return Outcome(
                action=Name.REMOVE_ORPHAN_FILES,
                status=Ended.NOTHING_TO_DO,
                message=message,
            )
        return Outcome(
            action=Name.REMOVE_ORPHAN_FILES,
            status=Ended.PLANNED,
            deleted_files=len(orphans),
            deleted_bytes=sum(file.size for file in orphans),
            files=tuple(file.path for file in orphans),
        )

    def execute(self) -> Outcome:
        location, orphans = self._find()
        self._context.step("orphans_found")
        table = self._table_access.load()
        _check(table)
        purged = self._purge(table, location)
        moved: list[Listed] = []
        stopped = ""
        for start in range(0, len(orphans), BATCH):
            self._context.check()
            if moved and self._budget.late():
                break
            table = self._table_access.load()
            try:
                _check(table)
            except Refused as e:
                if not moved and not purged:
                    raise
                stopped = e.message
                break
            named = _protected(table, location, references(table))
            batch = [file for file in orphans[start : start + BATCH] if file.path not in named]
            moved += self._trash(location, batch, begun=bool(moved))
            self._context.step("orphans_moved")
        log.info("orphans_removed", job_id=self._context.job_id, files=len(moved), purged=purged)
        return Outcome(
            action=Name.REMOVE_ORPHAN_FILES,
            status=self._status(done=bool(moved or purged), stopped=bool(stopped)),
            deleted_files=len(moved),
            deleted_bytes=sum(file.size for file in moved),
            message=(
                f"{len(moved)} files were moved to {TRASH} for {TRASH_KEPT.days} days; "
                f"{purged} older files were purged. "
                f"{stopped or self._budget.message(done=bool(moved))}"
            ).rstrip(),
        )

    def _status(self, *, done: bool, stopped: bool) -> Ended:
        if self._budget.spent or stopped:
            return Ended.PARTIAL
        return Ended.COMPLETED if done else Ended.NOTHING_TO_DO

    def _find(self) -> tuple[TableLocation, list[Listed]]:
        first = self._table_access.load()
        _check(first)
        location, reader = TableLocation(first), ReferenceReader(first.io)
        before = references(first, reader)
        listed = location.files()
        self._context.step("storage_listed")
        table = self._table_access.load()
        _check(table)
        if location.locator.resolve(table.location()) != location.root:
            raise Refused("The table's location was changed concurrently.", hint="Try again.")
        now = references(table, reader)
        named = _protected(table, location, now)
        _check_schemes(location, now)
        own = [file for file in listed if not file.path.startswith(f"{location.path}/{TRASH}/")]
        check_alone(self._table_access, table, location, own, named)
        _check_complete(location, before, now, {file.path for file in listed})
        orphans = self._old(table, location, [file for file in own if file.path not in named])
        _check_plausible(own, orphans)
        orphans.sort(key=lambda file: file.path)
        return location, self._budget.fitting(orphans, lambda file: file.size)

    def _old(
        self,
        table: Table,
        location: TableLocation,
        unnamed: Sequence[Listed],
    ) -> list[Listed]:
        age = max(FLOOR, self._action.number("older_than_seconds", DEFAULT_AGE))
        since = self._context.now() - timedelta(seconds=age)
        visible = without_hidden(table, location, unnamed)
        old = [file for file in visible if file.modified < since]
        return [file for file in old if not is_pending_deletion(table, location, file)]

    def _trash(
        self,
        location: TableLocation,
        batch: Sequence[Listed],
        *,
        begun: bool,
    ) -> list[Listed]:
        """Move files until the time is used up; skip those that changed since they were listed."""
        moved: list[Listed] = []
        stamp = f"{self._context.now().astimezone(UTC):%Y%m%dT%H%M%S}"
        folder = f"{location.path}/{TRASH}/{stamp}-{self._context.job_id}"
        for file in batch:
            if (begun or moved) and self._budget.late():
                break
            if not _unchanged(location, file):
                continue
            target = f"{folder}/{file.path.removeprefix(location.path).lstrip('/')}"
            location.file_system.create_dir(target.rpartition("/")[0], recursive=True)
            try:
                location.file_system.move(file.path, target)
            except FileNotFoundError:
                continue
            moved.append(file)
        return moved

    def _purge(self, table: Table, location: TableLocation) -> int:
        """Delete old trash and return how many files; a file that the table references, because it
        was added from the trash, stays.
        """
        folders = [folder for folder in location.folders(TRASH) if self._is_due(folder)]
        if not folders:
            return 0
        count = 0
        named = _protected(table, location, references(table))
        for folder in folders:
            files = location.files(folder.removeprefix(location.path).lstrip("/"))
            unnamed = [file for file in files if file.path not in named]
            if len(unnamed) == len(files):
                location.file_system.delete_dir(folder)
            else:
                for file in unnamed:
                    location.delete(file.path)
            count += len(unnamed)
        return count

    def _is_due(self, folder: str) -> bool:
        stamp = _STAMP.fullmatch(folder.rpartition("/")[2])
        if stamp is None:
            return False
        try:
            moved_at = datetime.strptime(stamp[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            return False  # a month 13: the folder is not ours
        return self._context.now() - moved_at > TRASH_KEPT


def _check(table: Table) -> None:
    check_table(table, Name.REMOVE_ORPHAN_FILES)
    check_collectable(table)


def _protected(table: Table, location: TableLocation, names: References) -> frozenset[str]:
    return location.protected(names.all | version_hint_files(table, location))


def without_hidden(table: Table, location: TableLocation, files: Iterable[Listed]) -> list[Listed]:
    """Leave out files below a name that begins with `_` or `.`, where other tools keep their own
    files: `_delta_log`.

    A partition folder with such a name is not hidden.
    """
    fields = [field for spec in table.specs().values() for field in spec.fields]
    partitions = tuple(f"{quote_plus(field.name)}=" for field in fields)

    def is_hidden(file: Listed) -> bool:
        parts = file.path.removeprefix(location.path).split("/")
        return any(p.startswith(("_", ".")) and not p.startswith(partitions) for p in parts)

    return [file for file in files if not is_hidden(file)]


def _unchanged(location: TableLocation, file: Listed) -> bool:
    info = location.file_system.get_file_info(file.path)
    if info.type != FileType.File or info.size != file.size:
        return False
    return bool(abs(info.mtime - file.modified) < _TICK)


_TICK = timedelta(seconds=1)
"""File systems and listings round times differently."""


def _check_schemes(location: TableLocation, named: References) -> None:
    if elsewhere := location.in_another_store(named.all):
        raise Refused(
            f"The table references {elsewhere[0][:200]} in another scheme than its location."
        )


def _check_complete(
    location: TableLocation,
    before: References,
    now: References,
    listed: AbstractSet[str],
) -> None:
    """Refused unless every file referenced before and after the listing was listed. Files of the
    metadata log are not required to exist.
    """
    if missing := location.missing(before.required & now.required, listed):
        raise Refused(
            f"The storage listing misses {len(missing)} files that the table references, for "
            f"example {missing[0][:200]}.",
            hint="The listing is incomplete, or the table is damaged. Nothing was changed.",
        )


def _check_plausible(all_files: Sequence[Listed], orphans: Sequence[Listed]) -> None:
    total, orphaned = sum(file.size for file in all_files), sum(file.size for file in orphans)
    if orphaned > TOO_MUCH * total:
        raise Refused(
            f"{orphaned} of {total} bytes look like orphans, which is more than half of them.",
            hint="Check whether another table or tool keeps its files here.",
        )
