"""Files that a table names and that belong to another one: an expiry leaves them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.table.update import SetLocationUpdate

from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.model import Ended, parse
from penstock.maintenance.actions.pending_deletion import RECORD
from penstock.maintenance.engines.adoption import check_elsewhere
from penstock.maintenance.errors import Refused
from tests.maintenance.tables import COMPACT, LATER, SCHEMA, SampleTable, once

if TYPE_CHECKING:
    from penstock.maintenance.actions.model import Outcome

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
REWRITE_ALL = {**COMPACT, "rewrite_all": True}


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def data_files(sample: SampleTable) -> list[str]:
    return sorted(task.file.file_path for task in sample.table.scan().plan_files())


def all_files(sample: SampleTable) -> set[Path]:
    return {path for path in path_of(sample.table.location()).rglob("*") if path.is_file()}


def records(sample: SampleTable) -> list[Path]:
    return [path for path in all_files(sample) if RECORD.fullmatch(path.name)]


def other_table(sample: SampleTable, name: str = "other", **how: object) -> SampleTable:
    sample.catalog.create_table((sample.name[0], name), SCHEMA, **how)
    return SampleTable(sample.catalog, (sample.name[0], name))


def twin_of(sample: SampleTable) -> SampleTable:
    """The same table under another name."""
    name = (sample.name[0], "twin")
    sample.catalog.register_table(name, sample.table.metadata_location)
    return SampleTable(sample.catalog, name)


def expire(sample: SampleTable, **run: object) -> Outcome:
    return sample.run(KEEP_ONE, now=lambda: LATER, **run)


def borrower_of(sample: SampleTable) -> SampleTable:
    """A table that took the files of another as they are, and has rewritten them since."""
    borrower = other_table(sample, "borrower")
    borrower.table.add_files(data_files(sample))
    assert borrower.run(REWRITE_ALL).rewritten_files == len(data_files(sample))
    return borrower


def test_files_that_were_added_from_another_table_are_left(sample: SampleTable) -> None:
    sample.create(files=3)
    before = sample.all_rows()
    borrower = borrower_of(sample)
    planned = borrower.plan(KEEP_ONE, now=lambda: LATER)
    done = expire(borrower)
    assert (done.status, done.expired_snapshots) == (Ended.COMPLETED, 1)
    assert sample.all_rows() == before
    assert done.skipped == planned.skipped == {"outside_table_folders": 3}
    assert "3 outside the table's location" in done.message
    assert not set(planned.files) & set(data_files(sample))
    assert not any(path_of(name).exists() for name in planned.files)


def test_the_job_after_a_killed_one_leaves_them_too(sample: SampleTable) -> None:
    sample.create(files=3)
    before = sample.all_rows()
    borrower = borrower_of(sample)
    with pytest.raises(Killed):
        expire(borrower, step=once("expiry_committed", die))
    assert len(records(borrower)) == 1
    table_access = borrower.table_access
    table_access.exact = True
    assert (
        remove_leftovers(table_access, borrower.attempt(job_id=9, now=lambda: datetime.now(UTC)))
        == 2
    )
    assert records(borrower) == []
    assert sample.all_rows() == before


def test_files_in_the_folder_of_a_table_inside_the_location_are_left(sample: SampleTable) -> None:
    sample.create(files=2)
    inner = other_table(sample, "inner", location=f"{sample.table.location()}/data/inner")
    inner.append(100, 10)
    before = inner.all_rows()
    sample.table.add_files(data_files(inner))
    sample.run(REWRITE_ALL)
    done = expire(sample)
    assert (done.status, done.skipped) == (Ended.COMPLETED, {"in_another_table": 1})
    assert inner.all_rows() == before


def test_a_metadata_file_registered_under_two_names_is_refused_before_the_commit(
    sample: SampleTable,
) -> None:
    sample.create(files=3)
    twin = twin_of(sample)
    twin.run(REWRITE_ALL)
    before, files = sample.all_rows(), all_files(sample)
    for one, other in ((twin, "shop.orders"), (sample, "shop.twin")):
        snapshots = len(one.table.metadata.snapshots)
        planned, done = one.plan(KEEP_ONE, now=lambda: LATER), expire(one)
        assert {planned.status, done.status} == {Ended.REFUSED}
        assert f"shared with {other}" in done.message
        assert len(one.table.metadata.snapshots) == snapshots
    assert all_files(sample) == files
    assert sample.all_rows() == before


def test_a_table_registered_twice_after_the_commit_keeps_the_files_and_the_record(
    sample: SampleTable,
) -> None:
    sample.create(files=3)
    sample.run(COMPACT)
    twin = twin_of(sample)
    sample.catalog.drop_table(twin.name)
    with pytest.raises(Killed):
        expire(sample, step=once("expiry_committed", die))
    twin_of(sample)
    files = all_files(sample)
    table_access = sample.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, sample.attempt(job_id=9)) == 0
    assert all_files(sample) == files


def test_engines_elsewhere_are_not_asked_to_expire_a_table_registered_twice(
    sample: SampleTable,
) -> None:
    sample.create(files=1)
    [action] = parse([KEEP_ONE])
    check_elsewhere(sample.table_access, sample.table, action)
    twin_of(sample)
    with pytest.raises(Refused, match=r"shared with shop\.twin"):
        check_elsewhere(sample.table_access, sample.table, action)


def test_the_folders_that_properties_name_are_the_tables_own(
    sample: SampleTable, tmp_path: Path
) -> None:
    data, metadata = (tmp_path / "data").as_uri(), (tmp_path / "metadata").as_uri()
    sample.create(files=3, **{"write.data.path": data, "write.metadata.path": metadata})
    replaced = data_files(sample)
    sample.run(REWRITE_ALL)
    done = expire(sample)
    assert (done.status, done.skipped) == (Ended.COMPLETED, {})
    assert not any(path_of(name).exists() for name in replaced)


def test_files_of_an_earlier_location_are_left(sample: SampleTable, tmp_path: Path) -> None:
    sample.create(files=3)
    replaced = data_files(sample)
    moved = SetLocationUpdate(location=(tmp_path / "moved").as_uri())
    sample.catalog.commit_table(sample.table, (), (moved,))
    sample.run(REWRITE_ALL)
    done = expire(sample)
    assert (done.status, done.expired_snapshots) == (Ended.COMPLETED, 3)
    assert done.skipped == {"outside_table_folders": 9}  # with their manifests and lists
    assert all(path_of(name).exists() for name in replaced)
