from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import GreaterThanOrEqual

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.ownership.references import references
from tests.maintenance.tables import COMPACT, LATER, SampleTable, once, rows

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}


def on_disk(sample: SampleTable) -> set[str]:
    root = Path(sample.table.location().removeprefix("file://"))
    return {p.as_uri() for p in root.rglob("*") if p.is_file()}


def test_snapshots_go_with_the_files_that_only_they_named(sample: SampleTable) -> None:
    sample.create()
    sample.run(COMPACT)
    before = sample.all_rows()
    planned = sample.plan(KEEP_ONE, now=lambda: LATER)
    done = sample.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, done.expired_snapshots, done.after["snapshots"]) == (Ended.COMPLETED, 6, 1)
    assert (done.deleted_files, done.deleted_bytes) == (
        planned.deleted_files,
        planned.deleted_bytes,
    )
    assert not set(planned.files) & on_disk(sample)
    assert sample.all_rows() == before
    named = references(sample.table)
    assert named.files | named.manifests | named.lists <= on_disk(sample)


def test_young_snapshots_and_the_last_three_stay_by_default(sample: SampleTable) -> None:
    sample.create()
    assert sample.run("expire_snapshots").status is Ended.NOTHING_TO_DO
    done = sample.run("expire_snapshots", now=lambda: LATER)
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
    sample: SampleTable, properties: dict[str, str], left: int
) -> None:
    sample.create(**properties)
    assert sample.run(KEEP_ONE, now=lambda: LATER).after["snapshots"] == left


def test_what_a_tag_or_a_branch_names_is_kept_and_readable(sample: SampleTable) -> None:
    sample.create()
    tagged, branched = (sample.table.metadata.snapshots[i].snapshot_id for i in (1, 3))
    with sample.table.manage_snapshots() as change:
        change.create_tag(tagged, "audit").create_branch(branched, "trial")
    sample.run(COMPACT)
    done = sample.run(KEEP_ONE, now=lambda: LATER)
    remaining = {s.snapshot_id for s in sample.table.metadata.snapshots}
    assert done.status is Ended.COMPLETED
    assert {tagged, branched} <= remaining
    assert (len(sample.ids(tagged)), len(sample.ids(branched)), len(sample.ids())) == (20, 40, 60)


def test_a_branch_keeps_as_many_as_it_says_itself(sample: SampleTable) -> None:
    sample.create()
    head = sample.table.metadata.snapshots[4].snapshot_id
    with sample.table.manage_snapshots() as change:
        change.create_branch(head, "trial", min_snapshots_to_keep=3)
    sample.run(KEEP_ONE, now=lambda: LATER)
    assert len(sample.table.metadata.snapshots) == 4


def test_a_tag_past_its_own_age_goes_and_main_never_does(sample: SampleTable) -> None:
    sample.create()
    old = sample.table.metadata.snapshots[0].snapshot_id
    with sample.table.manage_snapshots() as change:
        change.create_tag(old, "audit", max_ref_age_ms=1000)
    sample.run(KEEP_ONE, now=lambda: LATER)
    assert set(sample.table.metadata.refs) == {"main"}
    assert len(sample.ids()) == 60


def test_a_tag_that_comes_in_between_is_honoured(sample: SampleTable) -> None:
    sample.create()
    first = sample.table.metadata.snapshots[0].snapshot_id

    def tag() -> None:
        with sample.table.manage_snapshots() as change:
            change.create_tag(first, "audit")

    done = sample.run(KEEP_ONE, now=lambda: LATER, step=once("expiry_planned", tag))
    assert (done.status, len(sample.ids(first))) == (Ended.COMPLETED, 10)


def test_an_append_in_between_is_not_lost(sample: SampleTable) -> None:
    sample.create()
    sample.run(COMPACT)
    for step in ("expiry_planned", "expiry_committed", "data_deleted"):
        sample.append(1000, 5)
        start = len(sample.ids())
        sample.run(KEEP_ONE, now=lambda: LATER, step=once(step, lambda: sample.append(2000, 5)))
        assert len(sample.ids()) == start + 5


def test_without_garbage_collection_nothing_is_deleted(sample: SampleTable) -> None:
    sample.create(**{"gc.enabled": "false"})
    files = on_disk(sample)
    for action in (KEEP_ONE, "remove_orphan_files"):
        assert sample.run(action, now=lambda: LATER).status is Ended.REFUSED
    assert on_disk(sample) == files


def test_five_days_are_the_default_age(sample: SampleTable) -> None:
    sample.create()
    created = sample.table.metadata.snapshots[0].timestamp_ms / 1000
    from datetime import UTC, datetime

    first = datetime.fromtimestamp(created, UTC)
    assert (
        sample.plan("expire_snapshots", now=lambda: first + timedelta(days=4.99)).expired_snapshots
        == 0
    )
    assert (
        sample.plan("expire_snapshots", now=lambda: first + timedelta(days=5.01)).expired_snapshots
        == 3
    )


@pytest.mark.parametrize("name", ["max-snapshot-age-ms", "min-snapshots-to-keep", "max-ref-age-ms"])
def test_a_promise_that_is_no_number_refuses_the_expiry(sample: SampleTable, name: str) -> None:
    sample.create(**{f"history.expire.{name}": "5 days"})
    done = sample.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, name in done.message) == (Ended.REFUSED, True)
    assert len(sample.table.metadata.snapshots) == 6


def test_snapshots_that_somebody_else_expired_meanwhile_are_planned_anew(
    sample: SampleTable,
) -> None:
    sample.create()
    first = sample.table.metadata.snapshots[0].snapshot_id

    def expire_elsewhere() -> None:
        sample.table.maintenance.expire_snapshots().by_id(first).commit()

    done = sample.run(KEEP_ONE, now=lambda: LATER, step=once("deletion_recorded", expire_elsewhere))
    assert (done.status, done.expired_snapshots) == (Ended.COMPLETED, 4)
    assert not list(Path(sample.table.location().removeprefix("file://")).rglob("*-expired-*"))


def test_the_same_file_under_another_spelling_of_its_name_is_not_deleted(
    sample: SampleTable,
) -> None:
    """Spark says `file:/…` where PyIceberg says `file:///…`: the one is expired, the other one
    stays.
    """
    sample.create(files=1)
    file = Path(sample.table.location().removeprefix("file://")) / "data" / "added.parquet"
    pq.write_table(rows(100, 10), file)
    sample.table.add_files([f"file://{file}"])
    sample.table.delete(GreaterThanOrEqual("id", 100))
    sample.table.add_files([f"file:{file}"])
    before = sample.all_rows()
    assert sample.run(KEEP_ONE, now=lambda: LATER).status is Ended.COMPLETED
    assert sample.all_rows() == before
    assert len(before) == 20
