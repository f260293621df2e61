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
from tests.maintenance.tables import COMPACT, LATER, SCHEMA, Stand, once

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


def data_files(stand: Stand) -> list[str]:
    return sorted(task.file.file_path for task in stand.table.scan().plan_files())


def all_files(stand: Stand) -> set[Path]:
    return {path for path in path_of(stand.table.location()).rglob("*") if path.is_file()}


def records(stand: Stand) -> list[Path]:
    return [path for path in all_files(stand) if RECORD.fullmatch(path.name)]


def other_table(stand: Stand, name: str = "other", **how: object) -> Stand:
    stand.catalog.create_table((stand.name[0], name), SCHEMA, **how)
    return Stand(stand.catalog, (stand.name[0], name))


def twin_of(stand: Stand) -> Stand:
    """The same table under another name."""
    name = (stand.name[0], "twin")
    stand.catalog.register_table(name, stand.table.metadata_location)
    return Stand(stand.catalog, name)


def expire(stand: Stand, **run: object) -> Outcome:
    return stand.run(KEEP_ONE, now=lambda: LATER, **run)


def borrower_of(stand: Stand) -> Stand:
    """A table that took the files of another as they are, and has rewritten them since."""
    borrower = other_table(stand, "borrower")
    borrower.table.add_files(data_files(stand))
    assert borrower.run(REWRITE_ALL).rewritten_files == len(data_files(stand))
    return borrower


def test_files_that_were_added_from_another_table_are_left(stand: Stand) -> None:
    stand.create(files=3)
    before = stand.all_rows()
    borrower = borrower_of(stand)
    planned = borrower.plan(KEEP_ONE, now=lambda: LATER)
    done = expire(borrower)
    assert (done.status, done.expired_snapshots) == (Ended.COMPLETED, 1)
    assert stand.all_rows() == before
    assert done.skipped == planned.skipped == {"outside_table_folders": 3}
    assert "3 outside the table's location" in done.message
    assert not set(planned.files) & set(data_files(stand))
    assert not any(path_of(name).exists() for name in planned.files)


def test_the_job_after_a_killed_one_leaves_them_too(stand: Stand) -> None:
    stand.create(files=3)
    before = stand.all_rows()
    borrower = borrower_of(stand)
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
    assert stand.all_rows() == before


def test_files_in_the_folder_of_a_table_inside_the_location_are_left(stand: Stand) -> None:
    stand.create(files=2)
    inner = other_table(stand, "inner", location=f"{stand.table.location()}/data/inner")
    inner.append(100, 10)
    before = inner.all_rows()
    stand.table.add_files(data_files(inner))
    stand.run(REWRITE_ALL)
    done = expire(stand)
    assert (done.status, done.skipped) == (Ended.COMPLETED, {"in_another_table": 1})
    assert inner.all_rows() == before


def test_a_metadata_file_registered_under_two_names_is_refused_before_the_commit(
    stand: Stand,
) -> None:
    stand.create(files=3)
    twin = twin_of(stand)
    twin.run(REWRITE_ALL)
    before, files = stand.all_rows(), all_files(stand)
    for one, other in ((twin, "shop.orders"), (stand, "shop.twin")):
        snapshots = len(one.table.metadata.snapshots)
        planned, done = one.plan(KEEP_ONE, now=lambda: LATER), expire(one)
        assert {planned.status, done.status} == {Ended.REFUSED}
        assert f"shared with {other}" in done.message
        assert len(one.table.metadata.snapshots) == snapshots
    assert all_files(stand) == files
    assert stand.all_rows() == before


def test_a_table_registered_twice_after_the_commit_keeps_the_files_and_the_record(
    stand: Stand,
) -> None:
    stand.create(files=3)
    stand.run(COMPACT)
    twin = twin_of(stand)
    stand.catalog.drop_table(twin.name)
    with pytest.raises(Killed):
        expire(stand, step=once("expiry_committed", die))
    twin_of(stand)
    files = all_files(stand)
    table_access = stand.table_access
    table_access.exact = True
    assert remove_leftovers(table_access, stand.attempt(job_id=9)) == 0
    assert all_files(stand) == files


def test_engines_elsewhere_are_not_asked_to_expire_a_table_registered_twice(stand: Stand) -> None:
    stand.create(files=1)
    [action] = parse([KEEP_ONE])
    check_elsewhere(stand.table_access, stand.table, action)
    twin_of(stand)
    with pytest.raises(Refused, match=r"shared with shop\.twin"):
        check_elsewhere(stand.table_access, stand.table, action)


def test_the_folders_that_properties_name_are_the_tables_own(stand: Stand, tmp_path: Path) -> None:
    data, metadata = (tmp_path / "data").as_uri(), (tmp_path / "metadata").as_uri()
    stand.create(files=3, **{"write.data.path": data, "write.metadata.path": metadata})
    replaced = data_files(stand)
    stand.run(REWRITE_ALL)
    done = expire(stand)
    assert (done.status, done.skipped) == (Ended.COMPLETED, {})
    assert not any(path_of(name).exists() for name in replaced)


def test_files_of_an_earlier_location_are_left(stand: Stand, tmp_path: Path) -> None:
    stand.create(files=3)
    replaced = data_files(stand)
    moved = SetLocationUpdate(location=(tmp_path / "moved").as_uri())
    stand.catalog.commit_table(stand.table, (), (moved,))
    stand.run(REWRITE_ALL)
    done = expire(stand)
    assert (done.status, done.expired_snapshots) == (Ended.COMPLETED, 3)
    assert done.skipped == {"outside_table_folders": 9}  # with their manifests and lists
    assert all(path_of(name).exists() for name in replaced)
