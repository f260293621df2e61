"""remove_orphan_files: what lies in a table's location and nothing names goes to a trash, and from there after a week.

Listing comes before metadata: a file that is committed in between is then named, and never the other way round.
Whatever could make a live file look like an orphan is refused: a location that another table shares, a listing that
misses files which the metadata names, names in another scheme, and a finding that is too good to be true.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from pyarrow.fs import FileSelector, FileType
from pyiceberg.io.pyarrow import PyArrowFileIO

from penstock.kit import logging
from penstock.maintenance.action import DAY_SECONDS, Action, Ended, Name, Outcome
from penstock.maintenance.budget import Budget
from penstock.maintenance.errors import Refused
from penstock.maintenance.expiry import check_collectable
from penstock.maintenance.references import ReferenceReader, References, references

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyarrow.fs import FileSystem
    from pyiceberg.table import Table

    from penstock.maintenance.lake import Lake
    from penstock.maintenance.run import Run

log = logging.get(__name__)
DEFAULT_AGE = 3 * DAY_SECONDS
FLOOR = DAY_SECONDS
TRASH = ".trash"
TRASH_KEPT = timedelta(days=7)
BATCH = 500
TOO_MUCH = 0.5
_ALIASES = {"s3a": "s3", "s3n": "s3", "": "file"}
_STAMP = re.compile(r"(\d{8}T\d{6})-\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    path: str
    size: int
    modified: datetime


class Place:
    """A table's location as a folder of a file system. Paths in here have neither scheme nor authority."""

    def __init__(self, table: Table) -> None:
        if not isinstance(table.io, PyArrowFileIO):
            raise Refused("The storage of this table cannot be listed.", hint="Use a remote engine.")
        self.scheme, self.authority, self.root = normal(table.location())
        raw_scheme, netloc, path = PyArrowFileIO.parse_location(table.location(), table.io.properties)
        self.files: FileSystem = table.io.fs_by_scheme(raw_scheme, netloc)
        self.path = path.rstrip("/")

    def listed(self, *, under: str = "", recursive: bool = True) -> list[Listed]:
        folder = f"{self.path}/{under}" if under else self.path
        found = self.files.get_file_info(FileSelector(folder, allow_not_found=bool(under), recursive=recursive))
        return [Listed(path=i.path, size=i.size or 0, modified=i.mtime) for i in found if i.type == FileType.File]

    def folders(self, under: str) -> list[str]:
        found = self.files.get_file_info(FileSelector(f"{self.path}/{under}", allow_not_found=True))
        return [i.path for i in found if i.type == FileType.Directory]

    def inside(self, location: str) -> str | None:
        """The path of a location that is in this place; None for one that is elsewhere. Another scheme is refused."""
        scheme, authority, path = normal(location)
        if (scheme, authority) != (self.scheme, self.authority):
            if path.startswith(f"{self.root}/"):
                raise Refused(f"The table names {location[:200]} in another scheme than its location.")
            return None
        return self.path + path.removeprefix(self.root) if path.startswith(f"{self.root}/") else None


def normal(location: str) -> tuple[str, str, str]:
    """Scheme, authority and path, so that two names of one file are equal."""
    uri = urlparse(location) if "://" in location or location.startswith("file:") else urlparse(f"file://{location}")
    scheme = _ALIASES.get(uri.scheme.lower(), uri.scheme.lower())
    path = unquote(uri.path) if scheme == "file" else uri.path
    return scheme, uri.netloc, "/" + path.strip("/")


class Orphans:
    def __init__(self, lake: Lake, run: Run, action: Action) -> None:
        self._lake = lake
        self._run = run
        self._action = action
        self._budget = Budget(run, action)

    def plan(self) -> Outcome:
        _, found = self._find()
        if not found:
            said = self._budget.message(done=False)
            return Outcome(action=Name.REMOVE_ORPHAN_FILES, status=Ended.NOTHING_TO_DO, message=said)
        return Outcome(
            action=Name.REMOVE_ORPHAN_FILES,
            status=Ended.PLANNED,
            deleted_files=len(found),
            deleted_bytes=sum(each.size for each in found),
            files=tuple(each.path for each in found),
        )

    def execute(self) -> Outcome:
        place, found = self._find()
        self._run.step("orphans_found")
        purged = self._purge(place)
        moved: list[Listed] = []
        for start in range(0, len(found), BATCH):
            self._run.check()
            if moved and self._budget.late():
                break
            named = _inside(place, references(self._lake.load()))
            batch = [each for each in found[start : start + BATCH] if each.path not in named]
            moved += self._trash(place, batch, begun=bool(moved))
            self._run.step("orphans_moved")
        log.info("orphans_removed", job_id=self._run.job_id, files=len(moved), purged=purged)
        return Outcome(
            action=Name.REMOVE_ORPHAN_FILES,
            status=self._status(done=bool(moved or purged)),
            deleted_files=len(moved),
            deleted_bytes=sum(each.size for each in moved),
            message=f"{len(moved)} files are in {TRASH} for {TRASH_KEPT.days} days; {purged} older ones are purged. "
            f"{self._budget.message(done=bool(moved))}".rstrip(),
        )

    def _status(self, *, done: bool) -> Ended:
        if self._budget.spent:
            return Ended.PARTIAL
        return Ended.COMPLETED if done else Ended.NOTHING_TO_DO

    def _find(self) -> tuple[Place, list[Listed]]:
        first = self._lake.load()
        check_collectable(first)
        place, reader = Place(first), ReferenceReader(first.io)
        must = references(first, reader)
        listed = place.listed()
        self._run.step("storage_listed")
        table = self._lake.load()
        self._check_alone(table)
        named = _inside(place, references(table, reader))
        _check_complete(place, must, {each.path for each in listed})
        old = self._run.now() - timedelta(seconds=max(FLOOR, self._action.number("older_than_seconds", DEFAULT_AGE)))
        mine = [each for each in listed if not each.path.startswith(f"{place.path}/{TRASH}/")]
        orphans = [each for each in mine if each.path not in named and each.modified < old]
        _check_plausible(mine, orphans)
        return place, self._budget.fitting(sorted(orphans, key=lambda each: each.path), lambda each: each.size)

    def _check_alone(self, table: Table) -> None:
        ours = normal(table.location())
        for other in self._lake.neighbours():
            theirs = normal(other.location())
            if ours[:2] == theirs[:2] and (_holds(ours[2], theirs[2]) or _holds(theirs[2], ours[2])):
                name = ".".join(other.name())
                raise Refused(f"The location is shared with {name}.", hint="Give each table its own location.")

    def _trash(self, place: Place, batch: Iterable[Listed], *, begun: bool) -> list[Listed]:
        """Those for which there was time."""
        moved: list[Listed] = []
        folder = f"{place.path}/{TRASH}/{self._run.now().astimezone(UTC):%Y%m%dT%H%M%S}-{self._run.job_id}"
        for each in batch:
            if (begun or moved) and self._budget.late():
                break
            target = f"{folder}/{each.path.removeprefix(place.path).lstrip('/')}"
            place.files.create_dir(target.rpartition("/")[0], recursive=True)
            place.files.move(each.path, target)
            moved.append(each)
        return moved

    def _purge(self, place: Place) -> int:
        count = 0
        for folder in place.folders(TRASH):
            stamp = _STAMP.fullmatch(folder.rpartition("/")[2])
            if (
                stamp
                and self._run.now() - datetime.strptime(stamp[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC) > TRASH_KEPT
            ):
                count += len(place.listed(under=folder.removeprefix(place.path).lstrip("/")))
                place.files.delete_dir(folder)
        return count


def _inside(place: Place, found: References) -> frozenset[str]:
    return frozenset(path for location in found.all if (path := place.inside(location)) is not None)


def _check_complete(place: Place, found: References, listed: set[str]) -> None:
    """All that the metadata names and that must exist was listed; the metadata log may name what is gone."""
    must = found.files | found.manifests | found.lists
    missing = [location for location in must if (path := place.inside(location)) is not None and path not in listed]
    if missing:
        raise Refused(
            f"The listing misses {len(missing)} files that the table names, {missing[0][:200]} among them.",
            hint="The listing is not complete, or the table is damaged. Nothing was touched.",
        )


def _check_plausible(all_files: Sequence[Listed], orphans: Sequence[Listed]) -> None:
    total, orphaned = sum(each.size for each in all_files), sum(each.size for each in orphans)
    if orphaned > TOO_MUCH * total:
        raise Refused(
            f"{orphaned} of {total} bytes look like orphans, which is more than half of them.",
            hint="Look whether another table or tool keeps its files here.",
        )


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(f"{outer}/")
