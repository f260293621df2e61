from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import GreaterThanOrEqual

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.references import references
from tests.maintenance.tables import COMPACT, LATER, Stand, once, rows

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}


def on_disk(stand: Stand) -> set[str]:
    root = Path(stand.table.location().removeprefix("file://"))
    return {p.as_uri() for p in root.rglob("*") if p.is_file()}


def test_snapshots_go_with_the_files_that_only_they_named(stand: Stand) -> None:
    stand.create()
    stand.run(COMPACT)
    before = stand.all_rows()
    planned = stand.plan(KEEP_ONE, now=lambda: LATER)
    done = stand.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, done.expired_snapshots, done.after["snapshots"]) == (Ended.COMPLETED, 6, 1)
    assert (done.deleted_files, done.deleted_bytes) == (
        planned.deleted_files,
        planned.deleted_bytes,
    )
    assert not set(planned.files) & on_disk(stand)
    assert stand.all_rows() == before
    named = references(stand.table)
    assert named.files | named.manifests | named.lists <= on_disk(stand)


def test_young_snapshots_and_the_last_three_stay_by_default(stand: Stand) -> None:
    stand.create()
    assert stand.run("expire_snapshots").status is Ended.NOTHING_TO_DO
    done = stand.run("expire_snapshots", now=lambda: LATER)
    assert (done.expired_snapshots, done.after["snapshots"]) == (3, 3)


@pytest.mark.parametrize(
    ("properties", "left"),
    [
        ({"history.expire.min-snapshots-to-keep": "5"}, 5),
        ({"history.expire.max-snapshot-age-ms": str(10**12)}, 6),
        ({}, 1),
    ],
)
def test_a_request_never_undercuts_what_the_table_promises(
    stand: Stand, properties: dict[str, str], left: int
) -> None:
    stand.create(**properties)
    assert stand.run(KEEP_ONE, now=lambda: LATER).after["snapshots"] == left


def test_what_a_tag_or_a_branch_names_is_kept_and_readable(stand: Stand) -> None:
    stand.create()
    tagged, branched = (stand.table.metadata.snapshots[i].snapshot_id for i in (1, 3))
    with stand.table.manage_snapshots() as change:
        change.create_tag(tagged, "audit").create_branch(branched, "trial")
    stand.run(COMPACT)
    done = stand.run(KEEP_ONE, now=lambda: LATER)
    remaining = {s.snapshot_id for s in stand.table.metadata.snapshots}
    assert done.status is Ended.COMPLETED
    assert {tagged, branched} <= remaining
    assert (len(stand.ids(tagged)), len(stand.ids(branched)), len(stand.ids())) == (20, 40, 60)


def test_a_branch_keeps_as_many_as_it_says_itself(stand: Stand) -> None:
    stand.create()
    head = stand.table.metadata.snapshots[4].snapshot_id
    with stand.table.manage_snapshots() as change:
        change.create_branch(head, "trial", min_snapshots_to_keep=3)
    stand.run(KEEP_ONE, now=lambda: LATER)
    assert len(stand.table.metadata.snapshots) == 4


def test_a_tag_past_its_own_age_goes_and_main_never_does(stand: Stand) -> None:
    stand.create()
    old = stand.table.metadata.snapshots[0].snapshot_id
    with stand.table.manage_snapshots() as change:
        change.create_tag(old, "audit", max_ref_age_ms=1000)
    stand.run(KEEP_ONE, now=lambda: LATER)
    assert set(stand.table.metadata.refs) == {"main"}
    assert len(stand.ids()) == 60


def test_a_tag_that_comes_in_between_is_honoured(stand: Stand) -> None:
    stand.create()
    first = stand.table.metadata.snapshots[0].snapshot_id

    def tag() -> None:
        with stand.table.manage_snapshots() as change:
            change.create_tag(first, "audit")

    done = stand.run(KEEP_ONE, now=lambda: LATER, step=once("expiry_planned", tag))
    assert (done.status, len(stand.ids(first))) == (Ended.COMPLETED, 10)


def test_an_append_in_between_is_not_lost(stand: Stand) -> None:
    stand.create()
    stand.run(COMPACT)
    for step in ("expiry_planned", "expiry_committed", "data_deleted"):
        stand.append(1000, 5)
        start = len(stand.ids())
        stand.run(KEEP_ONE, now=lambda: LATER, step=once(step, lambda: stand.append(2000, 5)))
        assert len(stand.ids()) == start + 5


def test_without_garbage_collection_nothing_is_deleted(stand: Stand) -> None:
    stand.create(**{"gc.enabled": "false"})
    files = on_disk(stand)
    for action in (KEEP_ONE, "remove_orphan_files"):
        assert stand.run(action, now=lambda: LATER).status is Ended.REFUSED
    assert on_disk(stand) == files


def test_five_days_are_the_default_age(stand: Stand) -> None:
    stand.create()
    created = stand.table.metadata.snapshots[0].timestamp_ms / 1000
    from datetime import UTC, datetime

    first = datetime.fromtimestamp(created, UTC)
    assert (
        stand.plan("expire_snapshots", now=lambda: first + timedelta(days=4.99)).expired_snapshots
        == 0
    )
    assert (
        stand.plan("expire_snapshots", now=lambda: first + timedelta(days=5.01)).expired_snapshots
        == 3
    )


@pytest.mark.parametrize("name", ["max-snapshot-age-ms", "min-snapshots-to-keep", "max-ref-age-ms"])
def test_a_promise_that_is_no_number_refuses_the_expiry(stand: Stand, name: str) -> None:
    stand.create(**{f"history.expire.{name}": "5 days"})
    done = stand.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, name in done.message) == (Ended.REFUSED, True)
    assert len(stand.table.metadata.snapshots) == 6


def test_snapshots_that_somebody_else_expired_meanwhile_are_planned_anew(stand: Stand) -> None:
    stand.create()
    first = stand.table.metadata.snapshots[0].snapshot_id

    def expire_elsewhere() -> None:
        stand.table.maintenance.expire_snapshots().by_id(first).commit()

    done = stand.run(KEEP_ONE, now=lambda: LATER, step=once("deletion_recorded", expire_elsewhere))
    assert (done.status, done.expired_snapshots) == (Ended.COMPLETED, 4)
    assert not list(Path(stand.table.location().removeprefix("file://")).rglob("*-expired-*"))


def test_the_same_file_under_another_spelling_of_its_name_is_not_deleted(stand: Stand) -> None:
    """Spark says `file:/…` where PyIceberg says `file:///…`: the one is expired, the other one
    stays.
    """
    stand.create(files=1)
    file = Path(stand.table.location().removeprefix("file://")) / "data" / "added.parquet"
    pq.write_table(rows(100, 10), file)
    stand.table.add_files([f"file://{file}"])
    stand.table.delete(GreaterThanOrEqual("id", 100))
    stand.table.add_files([f"file:{file}"])
    before = stand.all_rows()
    assert stand.run(KEEP_ONE, now=lambda: LATER).status is Ended.COMPLETED
    assert stand.all_rows() == before
    assert len(before) == 20
