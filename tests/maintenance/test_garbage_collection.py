"""`gc.enabled` is honoured at the very moment of a commit and of each deletion, not only when work
begins.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.maintenance.actions import orphans, pending_deletion
from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.model import Ended
from penstock.maintenance.errors import CommitConflict
from penstock.maintenance.tables.ownership.garbage_collection import Collectable, may_collect
from tests.maintenance.tables import COMPACT, LATER, SampleTable, once

if TYPE_CHECKING:
    from collections.abc import Callable

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
ORPHANS = "remove_orphan_files"


def folder_of(sample: SampleTable) -> Path:
    return Path(sample.table.location().removeprefix("file://"))


def data_files(sample: SampleTable) -> set[Path]:
    return {path for path in folder_of(sample).rglob("*") if path.suffix in (".parquet", ".avro")}


def junk(sample: SampleTable, count: int) -> list[Path]:
    paths = [folder_of(sample) / "data" / f"junk-{number:03d}" for number in range(count)]
    for path in paths:
        path.write_bytes(b"x")
        os.utime(path, (0, 0))
    return paths


def forbid(sample: SampleTable) -> Callable[[], None]:
    def change() -> None:
        with sample.table.transaction() as transaction:
            transaction.set_properties({"gc.enabled": "false"})

    return change


@pytest.mark.parametrize(
    ("properties", "allowed"),
    [
        ({}, True),
        ({"gc.enabled": "true"}, True),
        ({"gc.enabled": "TRUE"}, True),
        ({"gc.enabled": "false"}, False),
        ({"gc.enabled": "False"}, False),
        ({"gc.enabled": " false "}, False),
        ({"gc.enabled": "0"}, False),
        ({"gc.enabled": "no"}, False),
        ({"gc.enabled": ""}, False),
        ({"GC.Enabled": "false"}, False),
    ],
)
def test_only_true_is_true(properties: dict[str, str], allowed: bool) -> None:
    assert may_collect(properties) is allowed


@pytest.mark.parametrize("value", ["False", "0", "off"])
def test_any_other_word_than_true_refuses_deletions(sample: SampleTable, value: str) -> None:
    sample.create(**{"gc.enabled": value})
    before = data_files(sample)
    for action in (KEEP_ONE, ORPHANS):
        assert sample.run(action, now=lambda: LATER).status is Ended.REFUSED
    assert data_files(sample) == before


@pytest.mark.parametrize("step", ["expiry_planned", "deletion_recorded"])
def test_forbidden_between_plan_and_commit_nothing_is_expired(
    sample: SampleTable, step: str
) -> None:
    sample.create()
    before = data_files(sample)
    done = sample.run(KEEP_ONE, now=lambda: LATER, step=once(step, forbid(sample)))
    assert (done.status, "gc.enabled" in done.message) == (Ended.REFUSED, True)
    assert len(sample.table.metadata.snapshots) == 6
    assert data_files(sample) == before
    assert not list(folder_of(sample).rglob("*-expired-*")), "no record of what did not happen"


def test_the_commit_itself_asserts_it(sample: SampleTable) -> None:
    sample.create()
    table = sample.table
    sample.table_access.commit(table, (Collectable(),), ())
    forbid(sample)()
    with pytest.raises(CommitConflict, match=r"gc\.enabled"):
        sample.table_access.commit(table, (Collectable(),), ())


def test_forbidden_right_after_the_commit_no_file_is_deleted(sample: SampleTable) -> None:
    sample.create()
    sample.run(COMPACT)
    before = data_files(sample)
    done = sample.run(KEEP_ONE, now=lambda: LATER, step=once("expiry_committed", forbid(sample)))
    assert (done.status, done.expired_snapshots, done.deleted_files) == (Ended.PARTIAL, 6, 0)
    assert "gc.enabled" in done.message
    assert data_files(sample) == before
    table_access = sample.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, sample.attempt(now=lambda: LATER)) == 0
    assert data_files(sample) == before, "not by the next job either"


def test_what_was_forbidden_and_is_allowed_again_is_finished_by_the_next_job(
    sample: SampleTable,
) -> None:
    sample.create()
    sample.run(COMPACT)
    sample.run(KEEP_ONE, now=lambda: LATER, step=once("expiry_committed", forbid(sample)))
    with sample.table.transaction() as transaction:
        transaction.set_properties({"gc.enabled": "true"})
    assert remove_leftovers(sample.table_access, sample.attempt()) == 6 + 6 + 6
    assert len(list(folder_of(sample).rglob("*.parquet"))) == 1
    assert len(sample.ids()) == 60


def test_each_batch_of_deletions_asks_again(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_deletion, "BATCH", 2)
    sample.create()
    sample.run(COMPACT)
    done = sample.run(KEEP_ONE, now=lambda: LATER, step=once("data_deleted", forbid(sample)))
    assert (done.status, done.deleted_files) == (Ended.PARTIAL, 6), "data files had gone by then"
    assert len(sample.ids()) == 60


def test_orphans_stay_once_it_is_forbidden(sample: SampleTable) -> None:
    for step in ("storage_listed", "orphans_found"):
        if sample.catalog.table_exists(sample.name):
            sample.catalog.drop_table(sample.name)
        sample.create(files=12)
        paths = junk(sample, 3)
        done = sample.run(ORPHANS, step=once(step, forbid(sample)))
        assert (done.status, done.deleted_files) == (Ended.REFUSED, 0)
        assert all(path.exists() for path in paths)


def test_each_batch_of_moves_asks_again(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "BATCH", 2)
    sample.create(files=12)
    paths = junk(sample, 5)
    done = sample.run(ORPHANS, step=once("orphans_moved", forbid(sample)))
    assert (done.status, done.deleted_files) == (Ended.PARTIAL, 2)
    assert "gc.enabled" in done.message
    assert [path.exists() for path in paths] == [False, False, True, True, True]


def test_the_trash_is_not_emptied_once_it_is_forbidden(sample: SampleTable) -> None:
    sample.create(files=12)
    junk(sample, 1)
    sample.run(ORPHANS)
    [trashed] = folder_of(sample).glob(".trash/*/data/*")
    done = sample.run(ORPHANS, now=lambda: LATER, step=once("orphans_found", forbid(sample)))
    assert (done.status, trashed.exists()) == (Ended.REFUSED, True)


def test_what_a_killed_attempt_wrote_stays_while_it_is_forbidden(sample: SampleTable) -> None:
    """The table may be registered elsewhere too, where the attempt's files are live."""
    sample.create(**{"gc.enabled": "false"})
    path = folder_of(sample) / "data" / "penstock-3-dead" / "00001.parquet"
    path.parent.mkdir()
    path.write_bytes(b"x")
    table_access = sample.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, sample.attempt(now=lambda: LATER)) == 0
    assert path.exists()
