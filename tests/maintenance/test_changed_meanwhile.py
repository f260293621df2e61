"""A table that becomes one that we must not touch, while it is worked on.

It was checked when an action began, and by nothing afterwards.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.table.update import RemoveSnapshotRefUpdate

from penstock.maintenance.actions import compaction, manifest_rewrite, orphans
from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.model import Ended, Name
from penstock.maintenance.errors import CommitConflict
from penstock.maintenance.tables.expectation import refusals
from penstock.maintenance.tables.protection import Allowed
from tests.maintenance.tables import COMPACT, LATER, Stand, once

if TYPE_CHECKING:
    from collections.abc import Callable

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
DELETES, MANIFESTS = "rewrite_position_delete_files", "rewrite_manifests"
ORPHANS = "remove_orphan_files"


def with_property(name: str, value: str) -> Callable[[Stand], None]:
    def change(stand: Stand) -> None:
        with stand.table.transaction() as transaction:
            transaction.set_properties({name: value})

    return change


def upgrade_to_version_three(stand: Stand) -> None:
    """As Java does it; PyIceberg writes no such table."""
    table = stand.table
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text()) | {"format-version": 3, "next-row-id": 0}
    newer = path.with_name(f"99999-{table.metadata.table_uuid}.metadata.json")
    newer.write_text(json.dumps(metadata))
    stand.catalog.drop_table(stand.name)
    stand.catalog.register_table(stand.name, newer.as_uri())


CHANGES = [
    pytest.param(upgrade_to_version_three, "version 3", id="version 3"),
    pytest.param(with_property("flink.lock-owner", "me"), "has locked this table", id="locked"),
    pytest.param(with_property("penstock.maintenance.enabled", "false"), "owner", id="disabled"),
    pytest.param(with_property("encryption.key-id", "k"), "encrypted", id="encrypted"),
]


def own_files(stand: Stand) -> list[Path]:
    """What attempts of maintenance wrote."""
    folder = Path(stand.table.location().removeprefix("file://"))
    return [path for path in folder.rglob("*") if path.is_file() and "penstock-7-" in str(path)]


def junk(stand: Stand, count: int) -> list[Path]:
    folder = Path(stand.table.location().removeprefix("file://")) / "data"
    paths = [folder / f"junk-{number:03d}" for number in range(count)]
    for path in paths:
        path.write_bytes(b"x")
        os.utime(path, (0, 0))
    return paths


@pytest.mark.parametrize(("change", "word"), CHANGES)
@pytest.mark.parametrize(
    ("action", "step"),
    [
        (COMPACT, "files_written"),
        (COMPACT, "manifests_written"),
        (DELETES, "manifests_written"),
        (MANIFESTS, "manifests_written"),
        (KEEP_ONE, "expiry_planned"),
        (KEEP_ONE, "deletion_recorded"),
        (ORPHANS, "storage_listed"),
        (ORPHANS, "orphans_found"),
    ],
)
def test_between_plan_and_commit_the_action_is_refused_and_leaves_nothing(
    stand: Stand, action: object, step: str, change: Callable[[Stand], None], word: str
) -> None:
    stand.create()
    stand.delete([1])
    stand.delete([11])
    paths = junk(stand, 2)
    snapshots = [s.snapshot_id for s in stand.table.metadata.snapshots]
    done = stand.run(action, now=lambda: LATER, step=once(step, lambda: change(stand)))
    assert (done.status, word in done.message) == (Ended.REFUSED, True), done.message
    assert [s.snapshot_id for s in stand.table.metadata.snapshots] == snapshots
    assert own_files(stand) == []
    assert all(path.exists() for path in paths)
    assert len(stand.ids()) == 58


@pytest.mark.parametrize("change", [param.values[0] for param in CHANGES])
def test_the_commit_itself_asserts_it(stand: Stand, change: Callable[[Stand], None]) -> None:
    stand.create()
    table, allowed = stand.table, Allowed(Name.EXPIRE_SNAPSHOTS)
    stand.table_access.commit(table, (allowed,), ())
    change(stand)
    with pytest.raises(CommitConflict):
        stand.table_access.commit(table, (allowed,), ())


def test_right_after_an_expiry_no_file_is_deleted_until_the_table_is_let_go(stand: Stand) -> None:
    stand.create()
    stand.run(COMPACT)
    lock = with_property("flink.lock-owner", "me")
    step = once("expiry_committed", lambda: lock(stand))
    done = stand.run(KEEP_ONE, now=lambda: LATER, step=step)
    assert (done.status, done.expired_snapshots, done.deleted_files) == (Ended.PARTIAL, 6, 0)
    assert "has locked this table" in done.message
    assert remove_leftovers(stand.table_access, stand.attempt(now=lambda: LATER)) == 0
    with_property("flink.lock-owner", "")(stand)
    assert remove_leftovers(stand.table_access, stand.attempt()) == 6 + 6 + 6
    assert len(stand.ids()) == 60


def test_orphans_are_moved_until_the_table_is_locked(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "BATCH", 2)
    stand.create(files=12)
    paths = junk(stand, 5)
    lock = with_property("flink.lock-owner", "me")
    done = stand.run(ORPHANS, step=once("orphans_moved", lambda: lock(stand)))
    assert (done.status, done.deleted_files) == (Ended.PARTIAL, 2)
    assert "has locked this table" in done.message
    assert sum(path.exists() for path in paths) == 3


@pytest.mark.parametrize("action", [COMPACT, DELETES, MANIFESTS])
def test_a_table_that_another_writer_empties_is_left_to_it(stand: Stand, action: object) -> None:
    """A table that is replaced has no current snapshot until its first write."""
    stand.create()
    stand.delete([1])
    stand.delete([11])

    def empty() -> None:
        stand.catalog.commit_table(stand.table, (), (RemoveSnapshotRefUpdate(ref_name="main"),))

    done = stand.run(action, step=once("manifests_written", empty))
    assert done.status is Ended.ABANDONED, done.message
    assert stand.table.current_snapshot() is None
    assert own_files(stand) == []


def test_what_was_committed_before_is_in_the_result_of_a_compaction_that_is_refused(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "GROUPS_A_COMMIT", 1)
    stand.create(partitioned=True)
    lock = with_property("flink.lock-owner", "me")
    done = stand.run(COMPACT, step=once("committed", lambda: lock(stand)))
    assert (done.status, done.commits, done.added_files) == (Ended.PARTIAL, 1, 1)
    assert "has locked this table" in done.message
    assert len(done.snapshot_ids) == 1
    assert len(stand.ids()) == 60


def test_what_was_committed_before_is_in_the_result_of_a_compaction_that_fails(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "GROUPS_A_COMMIT", 1)
    stand.create(partitioned=True)
    planned = stand.plan(COMPACT).files
    last = Path(planned[-1].removeprefix("file://"))
    done = stand.run(COMPACT, step=once("committed", last.unlink))
    assert (done.status, done.commits, done.added_files) == (Ended.FAILED, 2, 2)
    assert last.name in done.message


def test_what_was_committed_before_is_in_the_result_of_manifests_that_are_refused(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_rewrite, "ROUND", 3)
    stand.create()
    lock = with_property("flink.lock-owner", "me")
    action = {"name": MANIFESTS, "max_seconds": 3600}
    done = stand.run(action, step=once("committed", lambda: lock(stand)))
    assert (done.status, done.commits, done.rewritten_files) == (Ended.PARTIAL, 1, 3)
    assert "has locked this table" in done.message


@pytest.mark.parametrize("value", ["false", "no", "0"])
def test_health_expects_no_expiry_that_would_be_refused(stand: Stand, value: str) -> None:
    stand.create(**{"gc.enabled": value})
    assert stand.run(KEEP_ONE).status is Ended.REFUSED
    assert "gc.enabled" in refusals(stand.table)["expire_snapshots"]
