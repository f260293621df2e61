from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.kit.errors import InvalidInput
from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.model import DAY_SECONDS, Ended, parse
from penstock.maintenance.tables.ownership.storage import TableLocation
from tests.maintenance.tables import COMPACT, SampleTable, once, rows

OLD = datetime.now(UTC) - timedelta(days=4)


def root(sample: SampleTable) -> Path:
    return Path(sample.table.location().removeprefix("file://"))


def junk(sample: SampleTable, name: str, *, at: datetime = OLD, size: int = 10) -> Path:
    path = root(sample) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def age_all(sample: SampleTable) -> None:
    for path in root(sample).rglob("*"):
        os.utime(path, (OLD.timestamp(), OLD.timestamp()))


def test_old_junk_goes_to_the_trash_and_nothing_else_does(sample: SampleTable) -> None:
    sample.create()
    sample.run(COMPACT)
    age_all(sample)
    old, young = (
        junk(sample, "data/old.parquet"),
        junk(sample, "data/young.parquet", at=datetime.now(UTC)),
    )
    planned = sample.plan("remove_orphan_files")
    assert (planned.deleted_files, planned.deleted_bytes, planned.files) == (1, 10, (str(old),))
    assert old.exists()
    done = sample.run("remove_orphan_files")
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1)
    assert not old.exists()
    assert young.exists()
    assert [p.name for p in root(sample).glob(".trash/*-7/data/*")] == ["old.parquet"]
    assert len(sample.ids()) == 60
    for snapshot in sample.table.metadata.snapshots:
        sample.ids(snapshot.snapshot_id)


def test_the_trash_is_purged_after_a_week_and_not_before(sample: SampleTable) -> None:
    sample.create()
    junk(sample, "data/old.parquet")
    sample.run("remove_orphan_files")
    sample.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=6.9))
    assert list(root(sample).glob(".trash/*/data/*"))
    sample.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=7.1))
    assert not list(root(sample).glob(".trash/*/data/*"))


def test_no_request_goes_under_a_day() -> None:
    assert parse([{"name": "remove_orphan_files", "older_than_seconds": DAY_SECONDS}])
    with pytest.raises(InvalidInput, match="older_than_seconds"):
        parse([{"name": "remove_orphan_files", "older_than_seconds": DAY_SECONDS - 1}])
    with pytest.raises(InvalidInput, match="force"):
        parse([{"name": "remove_orphan_files", "force": True}])


def test_a_file_that_is_committed_after_the_listing_stays(sample: SampleTable) -> None:
    sample.create()
    junk(sample, "data/old.parquet")
    future = datetime.now(UTC) + timedelta(days=10)
    done = sample.run(
        "remove_orphan_files",
        now=lambda: future,
        step=once("storage_listed", lambda: sample.append(1000, 5)),
    )
    assert done.status is Ended.COMPLETED
    assert len(sample.ids()) == 65


def test_a_location_that_another_table_shares_is_refused(sample: SampleTable) -> None:
    sample.create()
    sample.catalog.create_table(
        ("shop", "inner"), sample.table.schema(), location=f"{sample.table.location()}/inner"
    )
    junk(sample, "data/old.parquet")
    done = sample.run("remove_orphan_files")
    assert done.status is Ended.REFUSED
    assert "shop.inner" in done.message


def test_a_listing_that_misses_a_file_is_refused(sample: SampleTable) -> None:
    sample.create()
    next(root(sample).glob("data/*.parquet")).unlink()
    junk(sample, "data/old.parquet")
    done = sample.run("remove_orphan_files")
    assert done.status is Ended.REFUSED
    assert "misses 1 files" in done.message


def test_names_in_another_scheme_are_told_from_those_elsewhere(sample: SampleTable) -> None:
    sample.create()
    location = TableLocation(sample.table)
    assert location.inside(f"file:{location.path}/data/x") == f"{location.path}/data/x"
    far, near = "s3://bucket/elsewhere/x", f"s3://bucket{location.path}/data/x"
    assert (location.inside(far), location.inside(near)) == (None, None)
    assert location.in_another_store([far, near, sample.table.metadata_location]) == [near]


def test_more_than_half_of_the_bytes_is_refused(sample: SampleTable) -> None:
    sample.create()
    size = sum(p.stat().st_size for p in root(sample).rglob("*") if p.is_file())
    path = junk(sample, "data/old.parquet", size=size + 10_000)
    done = sample.run("remove_orphan_files")
    assert done.status is Ended.REFUSED
    assert "more than half" in done.message
    assert path.exists()


def test_what_a_killed_attempt_left_is_removed_when_it_cannot_come_back(
    sample: SampleTable,
) -> None:
    sample.create()
    sample.run(COMPACT)
    mine = junk(
        sample, "data/penstock-3-xdead/00001.parquet", at=datetime.now(UTC) - timedelta(minutes=1)
    )
    manifest = junk(
        sample, "metadata/penstock-3-xdead-m-1.avro", at=datetime.now(UTC) - timedelta(minutes=1)
    )
    assert remove_leftovers(sample.table_access, sample.attempt(job_id=9)) == 0
    table_access = sample.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, sample.attempt(job_id=9)) == 2
    assert not mine.exists()
    assert not manifest.exists()
    assert len(sample.ids()) == 60


@pytest.mark.parametrize("step", ["files_verified", "manifests_written"])
def test_files_of_an_attempt_that_may_be_alive_elsewhere_stay_a_day(
    sample: SampleTable, step: str
) -> None:
    """The table was in another catalog too, under another lock: its files went and it committed."""
    sample.create()
    table_access, removed = sample.table_access, []
    table_access.exact = True
    here = sample.attempt(job_id=9)
    tidy = once(step, lambda: removed.append(remove_leftovers(table_access, here)))
    done = sample.run(COMPACT, step=tidy, fenced=False)
    assert (done.status, removed) == (Ended.COMPLETED, [0])
    assert len(sample.ids()) == 60
    junk(sample, "data/penstock-3-dead/00001.parquet", at=datetime.now(UTC) - timedelta(hours=23))
    old = junk(sample, "data/penstock-3-dead/2.parquet", at=datetime.now(UTC) - timedelta(hours=25))
    assert remove_leftovers(table_access, here) == 1
    assert not old.exists()


@pytest.mark.parametrize("action", [COMPACT, "rewrite_position_delete_files"])
def test_a_new_file_that_somebody_removes_before_the_commit_is_not_committed(
    sample: SampleTable, action: object
) -> None:
    sample.create()
    sample.delete([1])
    sample.delete([2])

    def remove() -> None:
        for path in root(sample).rglob("penstock-7-*/*.parquet"):
            path.unlink()

    before = sample.operations()
    conflict = once("manifests_written", lambda: [sample.append(100, 1), remove()])
    done = sample.run(action, step=conflict)
    assert done.status is Ended.FAILED, done.message
    assert "removed or changed" in done.message
    assert sample.operations() == [*before, "append"]


def test_metadata_of_a_killed_attempt_goes_and_what_may_have_been_current_stays_a_day(
    sample: SampleTable,
) -> None:
    sample.create(files=3)
    log = sample.table.metadata.metadata_log
    begins = datetime.fromtimestamp(log[0].timestamp_ms / 1000, UTC)
    uuid = "6c97e413-d51b-4538-ac70-12fe2a85cb83"
    killed = junk(sample, f"metadata/00009-{uuid}.penstockx1a.metadata.json", at=datetime.now(UTC))
    before = junk(
        sample, f"metadata/00001-{uuid}.penstockx1b.metadata.json", at=begins - timedelta(hours=23)
    )
    long_before = junk(
        sample, f"metadata/00000-{uuid}.penstockx1c.metadata.json", at=begins - timedelta(hours=25)
    )
    foreign = junk(sample, f"metadata/00010-{uuid}.metadata.json")
    table_access = sample.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, sample.attempt()) == 2
    assert [path.exists() for path in (killed, before, long_before, foreign)] == [
        False,
        True,
        False,
        True,
    ]


def test_a_file_that_was_added_from_the_trash_is_not_purged(sample: SampleTable) -> None:
    sample.create()
    trash = root(sample) / ".trash" / "20260101T000000-3"
    trash.mkdir(parents=True)
    restored, forgotten = trash / "restored.parquet", trash / "forgotten.parquet"
    for file in (restored, forgotten):
        pq.write_table(rows(900, 5), file)
    sample.table.add_files([restored.as_uri()])
    before = sample.ids()
    done = sample.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=10))
    assert (done.status, "1 older files were purged" in done.message) == (Ended.COMPLETED, True)
    assert (restored.exists(), forgotten.exists()) == (True, False)
    assert sample.ids() == before


def test_a_folder_in_the_trash_that_is_called_by_no_date_stays(sample: SampleTable) -> None:
    sample.create()
    odd = root(sample) / ".trash" / "20261399T250000-3" / "x"
    odd.parent.mkdir(parents=True)
    odd.write_bytes(b"x")
    done = sample.run("remove_orphan_files", now=lambda: datetime.now(UTC) + timedelta(days=10))
    assert (done.status, odd.exists()) == (Ended.NOTHING_TO_DO, True)
