"""What an expiry wrote down and did not come to delete: finished by the next job, and never by
mistake.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.maintenance.actions import pending_deletion
from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.model import Ended
from penstock.maintenance.actions.pending_deletion import PendingDeletion, write_record
from penstock.maintenance.tables.assessment.facts import look
from penstock.maintenance.tables.assessment.tier import Tier
from penstock.maintenance.tables.ownership.references import references
from tests.maintenance.tables import COMPACT, LATER, SampleTable, once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
COMMITTED = ("expiry_committed", "data_deleted", "manifests_deleted", "lists_deleted")


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


def folder_of(sample: SampleTable) -> Path:
    return Path(sample.table.location().removeprefix("file://"))


def records(sample: SampleTable) -> list[Path]:
    return sorted(folder_of(sample).glob("metadata/*-expired-*.json"))


def other_files(sample: SampleTable) -> set[Path]:
    return set(folder_of(sample).rglob("*")) - set(records(sample))


def unnamed(sample: SampleTable) -> set[Path]:
    """Data files, manifests and lists that no snapshot names; those that one names are there."""
    named = {Path(path.removeprefix("file://")) for path in references(sample.table).required}
    there = {path for path in folder_of(sample).rglob("*") if path.suffix in (".parquet", ".avro")}
    assert named <= there
    return there - named


def killed_at(sample: SampleTable, step: str | Callable[[str], None]) -> None:
    stopping = once(step, die) if isinstance(step, str) else step
    with pytest.raises(Killed):
        sample.run(KEEP_ONE, now=lambda: LATER, step=stopping)


def next_job(sample: SampleTable, *, exact: bool = True, now: datetime | None = None) -> int:
    table_access = sample.table_access
    table_access.exact = exact
    return remove_leftovers(
        table_access, sample.attempt(job_id=9, now=lambda: now or datetime.now(UTC))
    )


@pytest.fixture
def compacted(sample: SampleTable) -> SampleTable:
    """Six snapshots with a file each, and one that replaced them all."""
    sample.create()
    sample.run(COMPACT)
    return sample


@pytest.mark.parametrize("step", COMMITTED)
@pytest.mark.parametrize("exact", [True, False])
def test_the_next_job_deletes_what_the_killed_one_left(
    compacted: SampleTable,
    step: str,
    exact: bool,
) -> None:
    before = compacted.all_rows()
    killed_at(compacted, step)
    assert len(records(compacted)) == 1
    next_job(compacted, exact=exact)
    assert (unnamed(compacted), records(compacted)) == (set(), [])
    assert compacted.all_rows() == before


def test_killed_again_and_again_it_is_finished_in_the_end(
    compacted: SampleTable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_deletion, "BATCH", 1)
    killed_at(compacted, "expiry_committed")
    left = [len(unnamed(compacted))]
    for batches in (3, 8, 15):
        checks = count()

        def check(checks: Iterator[int] = checks, batches: int = batches) -> None:
            if next(checks) == batches:
                raise Killed

        with pytest.raises(Killed):
            remove_leftovers(compacted.table_access, compacted.attempt(check=check))
        left.append(len(unnamed(compacted)))
    assert left == [18, 15, 10, 1]
    assert next_job(compacted) == 1
    assert (unnamed(compacted), records(compacted)) == (set(), [])


@pytest.mark.parametrize("exact", [True, False])
def test_what_was_not_committed_deletes_nothing(compacted: SampleTable, exact: bool) -> None:
    killed_at(compacted, "deletion_recorded")
    files = other_files(compacted)
    assert next_job(compacted, exact=exact) == 0
    assert other_files(compacted) == files
    assert len(records(compacted)) == (0 if exact else 1), "a lost worker may still commit"
    for snapshot in compacted.table.metadata.snapshots:
        assert compacted.ids(snapshot.snapshot_id)
    next_job(compacted, exact=exact, now=datetime.now(UTC) + timedelta(days=1.1))
    assert records(compacted) == []
    assert len(compacted.table.metadata.snapshots) == 7


def test_a_worker_that_commits_late_is_finished_by_the_job_after(compacted: SampleTable) -> None:
    """It hangs before its commit while the next job runs, then commits and dies."""

    def step(name: str) -> None:
        if name == "deletion_recorded":
            assert next_job(compacted, exact=False) == 0
        if name == "expiry_committed":
            raise Killed

    killed_at(compacted, step)
    assert next_job(compacted, exact=False) == 18
    assert unnamed(compacted) == set()


def test_what_is_named_again_by_then_stays(compacted: SampleTable) -> None:
    """The catalog was restored from a backup that still has the snapshots."""
    backup = compacted.table.metadata_location
    killed_at(compacted, "expiry_committed")
    compacted.catalog.drop_table(compacted.name)
    compacted.catalog.register_table(compacted.name, backup)
    assert next_job(compacted) == 0
    for snapshot in compacted.table.metadata.snapshots:
        assert compacted.ids(snapshot.snapshot_id)


def test_a_record_that_names_live_files_deletes_none_of_them(compacted: SampleTable) -> None:
    table = compacted.table
    lists = frozenset(snapshot.manifest_list for snapshot in table.metadata.snapshots)
    wrong = PendingDeletion(
        table_uuid=str(table.metadata.table_uuid),
        snapshot_ids=frozenset({1, 2, 3}),
        manifest_lists=lists,
        statistics=references(table).files | {table.metadata_location},
    )
    write_record(table, compacted.attempt(job_id=3), wrong)
    assert next_job(compacted) == 0
    assert (unnamed(compacted), records(compacted)) == (set(), [])
    assert len(compacted.ids()) == 60


def test_a_live_file_under_another_spelling_of_its_name_stays(compacted: SampleTable) -> None:
    table = compacted.table
    other = frozenset(path.replace("file:///", "file:/") for path in references(table).required)
    wrong = PendingDeletion(
        table_uuid=str(table.metadata.table_uuid),
        snapshot_ids=frozenset({1}),
        manifest_lists=frozenset(),
        statistics=other,
    )
    write_record(table, compacted.attempt(job_id=3), wrong)
    assert next_job(compacted) == 0
    assert len(compacted.ids()) == 60


def test_the_record_of_another_table_is_left_alone_until_it_is_an_orphan(
    compacted: SampleTable,
) -> None:
    killed_at(compacted, "expiry_committed")
    [record] = records(compacted)
    own_uuid = str(compacted.table.metadata.table_uuid)
    record.write_text(record.read_text().replace(own_uuid, "another"))
    left = unnamed(compacted)
    assert next_job(compacted) == 0
    assert (unnamed(compacted), records(compacted)) == (left, [record])
    os.utime(record, (0, 0))
    assert compacted.plan("remove_orphan_files").files == (str(record),)


@pytest.mark.parametrize("content", ["", '{"table_uuid": "x", "snap', "[]", "\x00"])
def test_a_record_that_was_cut_off_deletes_nothing_but_itself(
    compacted: SampleTable,
    content: str,
) -> None:
    killed_at(compacted, "deletion_recorded")
    [record] = records(compacted)
    record.write_text(content)
    assert next_job(compacted, exact=False) == 0
    assert record.exists()
    assert next_job(compacted) == 0
    assert (unnamed(compacted), records(compacted)) == (set(), [])
    assert len(compacted.table.metadata.snapshots) == 7


def test_a_record_is_no_orphan_while_its_work_is_not_done(compacted: SampleTable) -> None:
    killed_at(compacted, "expiry_committed")
    [record] = records(compacted)
    for path in folder_of(compacted).rglob("*"):
        os.utime(path, (0, 0))
    planned = compacted.plan("remove_orphan_files")
    assert len(planned.files) == 18
    assert str(record) not in planned.files
    assert look(compacted.table, Tier.STORAGE, now=datetime.now(UTC)).orphan_files == 18


def test_a_manifest_that_cannot_be_read_does_not_fail_the_next_job(compacted: SampleTable) -> None:
    snapshot = compacted.table.metadata.snapshots[0]
    [manifest] = snapshot.manifests(compacted.table.io)
    killed_at(compacted, "expiry_committed")
    Path(manifest.manifest_path.removeprefix("file://")).write_bytes(b"nonsense")
    assert next_job(compacted) == 0
    assert len(records(compacted)) == 1
    assert len(compacted.ids()) == 60


def test_a_table_that_is_damaged_is_not_expired(compacted: SampleTable) -> None:
    manifest = compacted.table.metadata.snapshots[0].manifests(compacted.table.io)[0]
    Path(manifest.manifest_path.removeprefix("file://")).write_bytes(b"nonsense")
    done = compacted.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, manifest.manifest_path in done.message) == (Ended.FAILED, True)
    assert len(compacted.table.metadata.snapshots) == 7
    assert records(compacted) == []


def test_a_file_that_cannot_be_deleted_leaves_the_rest_to_the_next_job(
    compacted: SampleTable,
) -> None:
    """The metadata folder is out of reach when it comes to manifests; the snapshots are gone."""
    lost = Path(compacted.table.metadata.snapshots[0].manifest_list.removeprefix("file://"))
    parent = lost.parent
    away = parent.with_name("away")

    def block() -> None:
        parent.rename(away)
        parent.write_bytes(b"")

    done = compacted.run(KEEP_ONE, now=lambda: LATER, step=once("data_deleted", block))
    parent.unlink()
    away.rename(parent)
    assert (done.status, done.expired_snapshots) == (Ended.PARTIAL, 6)
    assert "the next job" in done.message
    assert next_job(compacted) == 12
    assert (unnamed(compacted), records(compacted)) == (set(), [])


def test_a_manifest_that_is_gone_already_does_not_stop_an_expiry(compacted: SampleTable) -> None:
    snapshot = compacted.table.metadata.snapshots[0]
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    done = compacted.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, done.expired_snapshots) == (Ended.COMPLETED, 6), done.message
    assert (unnamed(compacted), records(compacted)) == (set(), [])


def test_an_expiry_that_ends_well_leaves_no_record(compacted: SampleTable) -> None:
    assert compacted.run(KEEP_ONE, now=lambda: LATER).status is Ended.COMPLETED
    assert (unnamed(compacted), records(compacted)) == (set(), [])


def test_records_are_written_and_found_where_the_metadata_is(
    sample: SampleTable, tmp_path: Path
) -> None:
    sample.create(
        **{
            "write.metadata.path": f"file://{tmp_path}/meta",
            "write.data.path": f"file://{tmp_path}/pool",
        }
    )
    sample.run(COMPACT)
    killed_at(sample, "expiry_committed")
    assert len(list((tmp_path / "meta").glob("*-expired-*.json"))) == 1
    assert next_job(sample) == 18
    assert list((tmp_path / "meta").glob("*-expired-*.json")) == []
    assert len(list((tmp_path / "pool").rglob("*.parquet"))) == 1
    assert len(sample.ids()) == 60


def test_files_of_killed_attempts_are_found_where_the_table_writes(
    sample: SampleTable,
    tmp_path: Path,
) -> None:
    sample.create(
        **{
            "write.metadata.path": f"file://{tmp_path}/meta",
            "write.data.path": f"file://{tmp_path}/pool",
        }
    )
    (tmp_path / "pool" / "penstock-3-dead").mkdir()
    left = [
        tmp_path / "pool" / "penstock-3-dead" / "1.parquet",
        tmp_path / "meta" / "penstock-3-dead-m-1.avro",
    ]
    for path in left:
        path.write_bytes(b"x")
    assert next_job(sample, now=LATER) == 2
    assert not any(path.exists() for path in left)
    assert len(sample.ids()) == 60


def test_statistics_of_expired_snapshots_go_and_shared_ones_stay(compacted: SampleTable) -> None:
    from pyiceberg.table.statistics import StatisticsFile

    first, last = compacted.table.metadata.snapshots[0], compacted.table.metadata.snapshots[-1]
    folder = folder_of(compacted) / "metadata"
    paths = {name: folder / f"{name}.puffin" for name in ("own", "shared")}
    for path in paths.values():
        path.write_bytes(b"x")

    def describe(snapshot_id: int, name: str) -> StatisticsFile:
        return StatisticsFile(
            snapshot_id=snapshot_id,
            statistics_path=paths[name].as_uri(),
            file_size_in_bytes=1,
            file_footer_size_in_bytes=1,
            blob_metadata=[],
        )

    second = compacted.table.metadata.snapshots[1]
    with compacted.table.update_statistics() as update:
        update.set_statistics(describe(first.snapshot_id, "own"))
        update.set_statistics(describe(second.snapshot_id, "shared"))
        update.set_statistics(describe(last.snapshot_id, "shared"))
    planned = compacted.plan(KEEP_ONE, now=lambda: LATER)
    assert {Path(path.removeprefix("file://")).name for path in planned.files} >= {"own.puffin"}
    killed_at(compacted, "expiry_committed")
    assert next_job(compacted) == 19
    assert (paths["own"].exists(), paths["shared"].exists()) == (False, True)
