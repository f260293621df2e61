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
from penstock.maintenance.tables.assessment.expectation import refusals
from penstock.maintenance.tables.commit.protection import Allowed
from tests.maintenance.tables import COMPACT, LATER, SampleTable, once

if TYPE_CHECKING:
    from collections.abc import Callable

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
DELETES, MANIFESTS = "rewrite_position_delete_files", "rewrite_manifests"
ORPHANS = "remove_orphan_files"


def with_property(name: str, value: str) -> Callable[[SampleTable], None]:
    def change(sample: SampleTable) -> None:
        with sample.table.transaction() as transaction:
            transaction.set_properties({name: value})

    return change


def upgrade_to_version_three(sample: SampleTable) -> None:
    """As Java does it; PyIceberg writes no such table."""
    table = sample.table
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text()) | {"format-version": 3, "next-row-id": 0}
    newer = path.with_name(f"99999-{table.metadata.table_uuid}.metadata.json")
    newer.write_text(json.dumps(metadata))
    sample.catalog.drop_table(sample.name)
    sample.catalog.register_table(sample.name, newer.as_uri())


CHANGES = [
    pytest.param(upgrade_to_version_three, "version 3", id="version 3"),
    pytest.param(with_property("flink.lock-owner", "me"), "has locked this table", id="locked"),
    pytest.param(with_property("penstock.maintenance.enabled", "false"), "owner", id="disabled"),
    pytest.param(with_property("encryption.key-id", "k"), "encrypted", id="encrypted"),
]


def own_files(sample: SampleTable) -> list[Path]:
    """What attempts of maintenance wrote."""
    folder = Path(sample.table.location().removeprefix("file://"))
    return [path for path in folder.rglob("*") if path.is_file() and "penstock-7-" in str(path)]


def junk(sample: SampleTable, count: int) -> list[Path]:
    folder = Path(sample.table.location().removeprefix("file://")) / "data"
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
    sample: SampleTable, action: object, step: str, change: Callable[[SampleTable], None], word: str
) -> None:
    sample.create()
    sample.delete([1])
    sample.delete([11])
    paths = junk(sample, 2)
    snapshots = [s.snapshot_id for s in sample.table.metadata.snapshots]
    done = sample.run(action, now=lambda: LATER, step=once(step, lambda: change(sample)))
    assert (done.status, word in done.message) == (Ended.REFUSED, True), done.message
    assert [s.snapshot_id for s in sample.table.metadata.snapshots] == snapshots
    assert own_files(sample) == []
    assert all(path.exists() for path in paths)
    assert len(sample.ids()) == 58


@pytest.mark.parametrize("change", [param.values[0] for param in CHANGES])
def test_the_commit_itself_asserts_it(
    sample: SampleTable, change: Callable[[SampleTable], None]
) -> None:
    sample.create()
    table, allowed = sample.table, Allowed(Name.EXPIRE_SNAPSHOTS)
    sample.table_access.commit(table, (allowed,), ())
    change(sample)
    with pytest.raises(CommitConflict):
        sample.table_access.commit(table, (allowed,), ())


def test_right_after_an_expiry_no_file_is_deleted_until_the_table_is_let_go(
    sample: SampleTable,
) -> None:
    sample.create()
    sample.run(COMPACT)
    lock = with_property("flink.lock-owner", "me")
    step = once("expiry_committed", lambda: lock(sample))
    done = sample.run(KEEP_ONE, now=lambda: LATER, step=step)
    assert (done.status, done.expired_snapshots, done.deleted_files) == (Ended.PARTIAL, 6, 0)
    assert "has locked this table" in done.message
    assert remove_leftovers(sample.table_access, sample.attempt(now=lambda: LATER)) == 0
    with_property("flink.lock-owner", "")(sample)
    assert remove_leftovers(sample.table_access, sample.attempt()) == 6 + 6 + 6
    assert len(sample.ids()) == 60


def test_orphans_are_moved_until_the_table_is_locked(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "BATCH", 2)
    sample.create(files=12)
    paths = junk(sample, 5)
    lock = with_property("flink.lock-owner", "me")
    done = sample.run(ORPHANS, step=once("orphans_moved", lambda: lock(sample)))
    assert (done.status, done.deleted_files) == (Ended.PARTIAL, 2)
    assert "has locked this table" in done.message
    assert sum(path.exists() for path in paths) == 3


@pytest.mark.parametrize("action", [COMPACT, DELETES, MANIFESTS])
def test_a_table_that_another_writer_empties_is_left_to_it(
    sample: SampleTable, action: object
) -> None:
    """A table that is replaced has no current snapshot until its first write."""
    sample.create()
    sample.delete([1])
    sample.delete([11])

    def empty() -> None:
        sample.catalog.commit_table(sample.table, (), (RemoveSnapshotRefUpdate(ref_name="main"),))

    done = sample.run(action, step=once("manifests_written", empty))
    assert done.status is Ended.ABANDONED, done.message
    assert sample.table.current_snapshot() is None
    assert own_files(sample) == []


def test_what_was_committed_before_is_in_the_result_of_a_compaction_that_is_refused(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "GROUPS_A_COMMIT", 1)
    sample.create(partitioned=True)
    lock = with_property("flink.lock-owner", "me")
    done = sample.run(COMPACT, step=once("committed", lambda: lock(sample)))
    assert (done.status, done.commits, done.added_files) == (Ended.PARTIAL, 1, 1)
    assert "has locked this table" in done.message
    assert len(done.snapshot_ids) == 1
    assert len(sample.ids()) == 60


def test_what_was_committed_before_is_in_the_result_of_a_compaction_that_fails(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "GROUPS_A_COMMIT", 1)
    sample.create(partitioned=True)
    planned = sample.plan(COMPACT).files
    last = Path(planned[-1].removeprefix("file://"))
    done = sample.run(COMPACT, step=once("committed", last.unlink))
    assert (done.status, done.commits, done.added_files) == (Ended.FAILED, 2, 2)
    assert last.name in done.message


def test_what_was_committed_before_is_in_the_result_of_manifests_that_are_refused(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_rewrite, "ROUND", 3)
    sample.create()
    lock = with_property("flink.lock-owner", "me")
    action = {"name": MANIFESTS, "max_seconds": 3600}
    done = sample.run(action, step=once("committed", lambda: lock(sample)))
    assert (done.status, done.commits, done.rewritten_files) == (Ended.PARTIAL, 1, 3)
    assert "has locked this table" in done.message


@pytest.mark.parametrize("value", ["false", "no", "0"])
def test_health_expects_no_expiry_that_would_be_refused(sample: SampleTable, value: str) -> None:
    sample.create(**{"gc.enabled": value})
    assert sample.run(KEEP_ONE).status is Ended.REFUSED
    assert "gc.enabled" in refusals(sample.table)["expire_snapshots"]
