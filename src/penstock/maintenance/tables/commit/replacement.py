"""Commits the replacement of files, validated against all concurrent changes since the plan.

On each try, the current snapshot must meet these conditions: the plan's snapshot is an ancestor;
every input is live exactly once, with the entry that was planned; no new delete file has rows of an
input; and no delete file that applied to an input was removed. Other concurrent changes, such as
appends, do not conflict.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.table.snapshots import ancestors_of

from penstock.kit import logging
from penstock.kit.errors import StaleAttempt
from penstock.maintenance.errors import CommitConflict, CommitUnknown, ContentDiffers
from penstock.maintenance.tables.commit.protection import Allowed
from penstock.maintenance.tables.commit.snapshot_draft import Draft, existing_entry
from penstock.maintenance.tables.layout.sizes import whole_number
from penstock.maintenance.tables.ownership.storage import file_size
from penstock.maintenance.tables.reading.content import (
    DeleteIndex,
    ManifestReader,
    duplicate_paths,
    entry_key,
)
from penstock.maintenance.tables.reading.positions import touches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.actions.model import Name
    from penstock.maintenance.tables.catalog.table_access import Requirements, TableAccess, Updates
    from penstock.maintenance.tables.reading.content import Content, EntryKey

    Build: TypeAlias = Callable[[Draft, Content], tuple[Sequence[ManifestFile], Mapping[str, str]]]

log = logging.get(__name__)
TRIES = 12
LONGEST_PAUSE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    file: DataFile
    sequence_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The removed files and their replacements, either data files or delete files."""

    removed: tuple[ManifestEntry, ...]
    added: tuple[NewFile, ...]
    content: ManifestContent = ManifestContent.DATA

    @property
    def added_files(self) -> tuple[DataFile, ...]:
        return tuple(new.file for new in self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    snapshot_id: int
    tries: int


@dataclass(slots=True)
class Replacement:
    """Commits changes that were planned on one snapshot of a table."""

    table_access: TableAccess
    context: ActionContext
    action: Name
    plan: Content
    reader: ManifestReader
    pause: Callable[[float], None] = field(default=time.sleep)

    def commit(self, change: Change, summary: Mapping[str, str]) -> Committed:
        def build(draft: Draft, head: Content) -> tuple[Sequence[ManifestFile], Mapping[str, str]]:
            self._validate(draft.table, head, change)
            _check_present(draft.table, change)
            return _manifests(draft, head, change, self.reader), _summary(head, change) | dict(
                summary
            )

        return commit(
            self.table_access,
            self.context,
            self.reader,
            build,
            allowed=Allowed(self.action),
            pause=self.pause,
        )

    def _validate(self, table: Table, head: Content, change: Change) -> None:
        ancestors = {s.snapshot_id for s in ancestors_of(head.snapshot, table.metadata)}
        if self.plan.snapshot.snapshot_id not in ancestors:
            raise Abandoned("The snapshot of the plan is no longer in the table's history.")
        live = head.data if change.content == ManifestContent.DATA else head.deletes
        if gone := {entry_key(e) for e in change.removed} - {entry_key(e) for e in live}:
            raise Abandoned(f"Another writer removed {len(gone)} of the files to be replaced.")
        if twice := {e.data_file.file_path for e in change.removed} & duplicate_paths(live):
            raise Abandoned(
                f"Another writer added {len(twice)} of the files to be replaced a second time."
            )
        if change.content == ManifestContent.DATA:
            self._validate_deletes(table, head, change)

    def _validate_deletes(self, table: Table, head: Content, change: Change) -> None:
        planned = {entry_key(entry): entry for entry in self.plan.deletes}
        live = {entry_key(entry): entry for entry in head.deletes}
        added = [entry for key, entry in live.items() if key not in planned]
        if any(entry.data_file.content != DataFileContent.POSITION_DELETES for entry in added):
            raise Abandoned(
                "Another writer added equality deletes that may apply to the files to be replaced."
            )
        for delete, paths in _applying(added, change.removed):
            if touches(table.io, delete.data_file, paths):
                raise Abandoned("Another writer deleted rows of the files to be replaced.")
        if _applying([entry for key, entry in planned.items() if key not in live], change.removed):
            raise Abandoned("Another writer removed delete files of the files to be replaced.")


def _check_present(table: Table, change: Change) -> None:
    """Another tool may have removed the new files as orphans since they were read back."""
    for file in change.added_files:
        if file_size(table.io, file.file_path) != file.file_size_in_bytes:
            raise ContentDiffers(
                f"{file.file_path} was removed or changed after it was written.",
                hint="Nothing was committed. Check which other tool cleans the table's folder.",
            )


def _applying(
    deletes: Sequence[ManifestEntry], inputs: Sequence[ManifestEntry]
) -> list[tuple[ManifestEntry, list[str]]]:
    """The delete files that apply to any input, each with the paths of those inputs."""
    index = DeleteIndex(deletes)
    paths: dict[EntryKey, list[str]] = defaultdict(list)
    for entry in inputs if deletes else ():
        for delete in index.applying_to(entry):
            paths[entry_key(delete)].append(entry.data_file.file_path)
    return [(delete, paths[key]) for delete in deletes if (key := entry_key(delete)) in paths]


class Abandoned(CommitConflict):
    """A conflict with another writer's change that a retry cannot resolve."""


def commit(
    table_access: TableAccess,
    context: ActionContext,
    reader: ManifestReader,
    build: Build,
    *,
    allowed: Allowed | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Committed:
    """Build a snapshot on the current one and commit it; rebuild it after a conflict.

    `allowed` is checked on each try and by the commit itself.
    """
    for tries in range(1, TRIES + 1):
        context.check()
        table = table_access.load()
        if allowed is not None:
            allowed.check(table)
        if table.metadata.current_snapshot() is None:
            raise Abandoned("Another writer emptied the table: it has no current snapshot.")
        draft = Draft(table, context)
        try:
            manifests, summary = build(draft, reader.content(draft.parent))
            requirements, updates = draft.finish(manifests, summary)
            context.step("manifests_written")
            asserts = requirements if allowed is None else (*requirements, allowed)
            _swap(table_access, table, asserts, updates)
        except Abandoned:
            draft.discard()
            raise
        except CommitConflict as e:
            # If a server or proxy repeats a request whose response was lost, the second one fails
            # because of our own snapshot.
            if _found(table_access, draft.snapshot_id):
                log.info("commit_adopted", job_id=context.job_id, snapshot_id=draft.snapshot_id)
                return Committed(snapshot_id=draft.snapshot_id, tries=tries)
            draft.discard()
            log.info("commit_tried_again", job_id=context.job_id, tries=tries, why=e.message)
            pause(random.uniform(0.5, 1) * min(LONGEST_PAUSE, 0.05 * 2**tries))  # noqa: S311 - it spreads pauses
        except CommitUnknown:
            if not _landed(table_access, draft.snapshot_id):
                raise
            log.info("commit_adopted", job_id=context.job_id, snapshot_id=draft.snapshot_id)
            return Committed(snapshot_id=draft.snapshot_id, tries=tries)
        else:
            context.step("committed")
            return Committed(snapshot_id=draft.snapshot_id, tries=tries)
    raise CommitConflict(
        f"Gave up after {TRIES} commit conflicts with other writers.",
        hint="Try again when there are fewer concurrent writers.",
    )


def _swap(
    table_access: TableAccess, table: Table, requirements: Requirements, updates: Updates
) -> None:
    """Any error except a definite refusal leaves the outcome of the commit unknown."""
    try:
        table_access.commit(table, requirements, updates)
    except (CommitConflict, CommitUnknown, StaleAttempt):
        raise
    except BaseException as e:
        raise CommitUnknown(f"The commit was interrupted: {type(e).__name__}.") from e


def _found(table_access: TableAccess, snapshot_id: int) -> bool:
    try:
        return _has_snapshot(table_access, snapshot_id)
    except StaleAttempt:
        raise
    except Exception as e:
        raise CommitUnknown(
            f"The table cannot be loaded after the commit: {type(e).__name__}."
        ) from e


def _landed(table_access: TableAccess, snapshot_id: int) -> bool:
    try:
        return _has_snapshot(table_access, snapshot_id)
    except Exception as e:
        log.warning("commit_not_looked_up", snapshot_id=snapshot_id, error=type(e).__name__)
        return False


def _has_snapshot(table_access: TableAccess, snapshot_id: int) -> bool:
    return table_access.load().metadata.snapshot_by_id(snapshot_id) is not None


def _manifests(
    draft: Draft, head: Content, change: Change, reader: ManifestReader
) -> list[ManifestFile]:
    """Manifests without removed files stay; the others are replaced, per spec, by one manifest of
    the remaining entries and one of the removed entries."""
    result: list[ManifestFile] = []
    stays: dict[int, list[ManifestEntry]] = defaultdict(list)
    goes: dict[int, list[ManifestEntry]] = defaultdict(list)
    removed = {entry_key(entry) for entry in change.removed}
    for manifest in head.manifests:
        entries = reader.entries(manifest)
        if manifest.content == change.content and any(entry_key(e) in removed for e in entries):
            for entry in entries:
                spec_id = manifest.partition_spec_id
                if entry_key(entry) in removed:
                    goes[spec_id].append(draft.deleted(entry))
                else:
                    stays[spec_id].append(existing_entry(entry))
        elif entries:
            result.append(manifest)
    comes: dict[int, list[ManifestEntry]] = defaultdict(list)
    for new_file in change.added:
        comes[new_file.file.spec_id].append(draft.added(new_file.file, new_file.sequence_number))
    new = [
        draft.manifest(spec, change.content, e)
        for part in (comes, goes, stays)
        for spec, e in part.items()
    ]
    return new + result


def _summary(head: Content, change: Change) -> dict[str, str]:
    """The summary counts of the change, and the totals after it."""
    before = head.snapshot.summary
    totals = dict(before.additional_properties) if before is not None else {}
    added, removed = change.added_files, [e.data_file for e in change.removed]
    size = sum(f.file_size_in_bytes for f in added) - sum(f.file_size_in_bytes for f in removed)
    rows = [sum(f.record_count for f in files) for files in (added, removed)]
    data = change.content == ManifestContent.DATA
    word, row_word = ("data", "records") if data else ("delete", "position-deletes")
    removed_word = (
        ("deleted-data-files", "deleted-records")
        if data
        else (
            "removed-delete-files",
            "removed-position-deletes",
        )
    )
    counts = {
        f"added-{word}-files": len(added),
        removed_word[0]: len(removed),
        f"added-{row_word}": rows[0],
        removed_word[1]: rows[1],
        "added-files-size": sum(f.file_size_in_bytes for f in added),
        "removed-files-size": sum(f.file_size_in_bytes for f in removed),
    }
    deltas = {
        f"total-{word}-files": len(added) - len(removed),
        f"total-{row_word}": rows[0] - rows[1],
    }
    return {key: str(value) for key, value in counts.items() if value} | updated_totals(
        totals, deltas | {"total-files-size": size}
    )


def updated_totals(totals: Mapping[str, str], deltas: Mapping[str, int]) -> dict[str, str]:
    """The parent's totals with the changes added; a total that the parent lacks stays unset."""
    names = (
        "data-files",
        "records",
        "files-size",
        "delete-files",
        "position-deletes",
        "equality-deletes",
    )
    parent = {f"total-{name}": whole_number(totals.get(f"total-{name}", "")) for name in names}
    return {
        name: str(max(0, value + deltas.get(name, 0)))
        for name, value in parent.items()
        if value is not None
    }
