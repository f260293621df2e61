from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.kit.errors import InvalidInput
from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.model import DAY_SECONDS, Ended, parse
from penstock.maintenance.tables.storage import TableLocation
from tests.maintenance.tables import COMPACT, Stand, once, rows

OLD = datetime.now(UTC) - timedelta(days=4)


def root(stand: Stand) -> Path:
    return Path(stand.table.location().removeprefix("file://"))


def junk(stand: Stand, name: str, *, at: datetime = OLD, size: int = 10) -> Path:
    path = root(stand) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def age_all(stand: Stand) -> None:
    for path in root(stand).rglob("*"):
        os.utime(path, (OLD.timestamp(), OLD.timestamp()))


def test_old_junk_goes_to_the_trash_and_nothing_else_does(stand: Stand) -> None:
    stand.create()
    stand.run(COMPACT)
    age_all(stand)
    old, young = (
        junk(stand, "data/old.parquet"),
        junk(stand, "data/young.parquet", at=datetime.now(UTC)),
    )
    planned = stand.plan("remove_orphan_files")
    assert (planned.deleted_files, planned.deleted_bytes, planned.files) == (1, 10, (str(old),))
    assert old.exists()
    done = stand.run("remove_orphan_files")
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1)
    assert not old.exists()
    assert young.exists()
    assert [p.name for p in root(stand).glob(".trash/*-7/data/*")] == ["old.parquet"]
    assert len(stand.ids()) == 60
    for snapshot in stand.table.metadata.snapshots:
        stand.ids(snapshot.snapshot_id)


def test_the_trash_is_purged_after_a_week_and_not_before(stand: Stand) -> None:
    stand.create()
    junk(stand, "data/old.parquet")
    stand.run("remove_orphan_files")
    stand.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=6.9))
    assert list(root(stand).glob(".trash/*/data/*"))
    stand.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=7.1))
    assert not list(root(stand).glob(".trash/*/data/*"))


def test_no_request_goes_under_a_day() -> None:
    assert parse([{"name": "remove_orphan_files", "older_than_seconds": DAY_SECONDS}])
    with pytest.raises(InvalidInput, match="older_than_seconds"):
        parse([{"name": "remove_orphan_files", "older_than_seconds": DAY_SECONDS - 1}])
    with pytest.raises(InvalidInput, match="force"):
        parse([{"name": "remove_orphan_files", "force": True}])


def test_a_file_that_is_committed_after_the_listing_stays(stand: Stand) -> None:
    stand.create()
    junk(stand, "data/old.parquet")
    future = datetime.now(UTC) + timedelta(days=10)
    done = stand.run(
        "remove_orphan_files",
        now=lambda: future,
        step=once("storage_listed", lambda: stand.append(1000, 5)),
    )
    assert done.status is Ended.COMPLETED
    assert len(stand.ids()) == 65


def test_a_location_that_another_table_shares_is_refused(stand: Stand) -> None:
    stand.create()
    stand.catalog.create_table(
        ("shop", "inner"), stand.table.schema(), location=f"{stand.table.location()}/inner"
    )
    junk(stand, "data/old.parquet")
    done = stand.run("remove_orphan_files")
    assert done.status is Ended.REFUSED
    assert "shop.inner" in done.message


def test_a_listing_that_misses_a_file_is_refused(stand: Stand) -> None:
    stand.create()
    next(root(stand).glob("data/*.parquet")).unlink()
    junk(stand, "data/old.parquet")
    done = stand.run("remove_orphan_files")
    assert done.status is Ended.REFUSED
    assert "misses 1 files" in done.message


def test_names_in_another_scheme_are_told_from_those_elsewhere(stand: Stand) -> None:
    stand.create()
    location = TableLocation(stand.table)
    assert location.inside(f"file:{location.path}/data/x") == f"{location.path}/data/x"
    far, near = "s3://bucket/elsewhere/x", f"s3://bucket{location.path}/data/x"
    assert (location.inside(far), location.inside(near)) == (None, None)
    assert location.in_another_store([far, near, stand.table.metadata_location]) == [near]


def test_more_than_half_of_the_bytes_is_refused(stand: Stand) -> None:
    stand.create()
    size = sum(p.stat().st_size for p in root(stand).rglob("*") if p.is_file())
    path = junk(stand, "data/old.parquet", size=size + 10_000)
    done = stand.run("remove_orphan_files")
    assert done.status is Ended.REFUSED
    assert "more than half" in done.message
    assert path.exists()


def test_what_a_killed_attempt_left_is_removed_when_it_cannot_come_back(stand: Stand) -> None:
    stand.create()
    stand.run(COMPACT)
    mine = junk(
        stand, "data/penstock-3-xdead/00001.parquet", at=datetime.now(UTC) - timedelta(minutes=1)
    )
    manifest = junk(
        stand, "metadata/penstock-3-xdead-m-1.avro", at=datetime.now(UTC) - timedelta(minutes=1)
    )
    assert remove_leftovers(stand.table_access, stand.attempt(job_id=9)) == 0
    table_access = stand.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, stand.attempt(job_id=9)) == 2
    assert not mine.exists()
    assert not manifest.exists()
    assert len(stand.ids()) == 60


@pytest.mark.parametrize("step", ["files_verified", "manifests_written"])
def test_files_of_an_attempt_that_may_be_alive_elsewhere_stay_a_day(
    stand: Stand, step: str
) -> None:
    """The table was in another catalog too, under another lock: its files went and it committed."""
    stand.create()
    table_access, removed = stand.table_access, []
    table_access.exact = True
    here = stand.attempt(job_id=9)
    tidy = once(step, lambda: removed.append(remove_leftovers(table_access, here)))
    done = stand.run(COMPACT, step=tidy, fenced=False)
    assert (done.status, removed) == (Ended.COMPLETED, [0])
    assert len(stand.ids()) == 60
    junk(stand, "data/penstock-3-dead/00001.parquet", at=datetime.now(UTC) - timedelta(hours=23))
    old = junk(stand, "data/penstock-3-dead/2.parquet", at=datetime.now(UTC) - timedelta(hours=25))
    assert remove_leftovers(table_access, here) == 1
    assert not old.exists()


@pytest.mark.parametrize("action", [COMPACT, "rewrite_position_delete_files"])
def test_a_new_file_that_somebody_removes_before_the_commit_is_not_committed(
    stand: Stand, action: object
) -> None:
    stand.create()
    stand.delete([1])
    stand.delete([2])

    def remove() -> None:
        for path in root(stand).rglob("penstock-7-*/*.parquet"):
            path.unlink()

    before = stand.operations()
    conflict = once("manifests_written", lambda: [stand.append(100, 1), remove()])
    done = stand.run(action, step=conflict)
    assert done.status is Ended.FAILED, done.message
    assert "removed or changed" in done.message
    assert stand.operations() == [*before, "append"]


def test_metadata_of_a_killed_attempt_goes_and_what_may_have_been_current_stays_a_day(
    stand: Stand,
) -> None:
    stand.create(files=3)
    log = stand.table.metadata.metadata_log
    begins = datetime.fromtimestamp(log[0].timestamp_ms / 1000, UTC)
    uuid = "6c97e413-d51b-4538-ac70-12fe2a85cb83"
    killed = junk(stand, f"metadata/00009-{uuid}.penstockx1a.metadata.json", at=datetime.now(UTC))
    before = junk(
        stand, f"metadata/00001-{uuid}.penstockx1b.metadata.json", at=begins - timedelta(hours=23)
    )
    long_before = junk(
        stand, f"metadata/00000-{uuid}.penstockx1c.metadata.json", at=begins - timedelta(hours=25)
    )
    foreign = junk(stand, f"metadata/00010-{uuid}.metadata.json")
    table_access = stand.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, stand.attempt()) == 2
    assert [path.exists() for path in (killed, before, long_before, foreign)] == [
        False,
        True,
        False,
        True,
    ]


def test_a_file_that_was_added_from_the_trash_is_not_purged(stand: Stand) -> None:
    stand.create()
    trash = root(stand) / ".trash" / "20260101T000000-3"
    trash.mkdir(parents=True)
    restored, forgotten = trash / "restored.parquet", trash / "forgotten.parquet"
    for file in (restored, forgotten):
        pq.write_table(rows(900, 5), file)
    stand.table.add_files([restored.as_uri()])
    before = stand.ids()
    done = stand.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=10))
    assert (done.status, "1 older files were purged" in done.message) == (Ended.COMPLETED, True)
    assert (restored.exists(), forgotten.exists()) == (True, False)
    assert stand.ids() == before


def test_a_folder_in_the_trash_that_is_called_by_no_date_stays(stand: Stand) -> None:
    stand.create()
    odd = root(stand) / ".trash" / "20261399T250000-3" / "x"
    odd.parent.mkdir(parents=True)
    odd.write_bytes(b"x")
    done = stand.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=10))
    assert (done.status, odd.exists()) == (Ended.NOTHING_TO_DO, True)
