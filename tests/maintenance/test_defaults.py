"""What is done when a request says nothing, at each limit and one past it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from penstock.kit.errors import InvalidInput
from penstock.maintenance.actions import orphans, retention
from penstock.maintenance.actions.compaction_plan import plan_compaction
from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.manifest_rewrite import TARGET as MANIFEST_TARGET
from penstock.maintenance.actions.model import MB, Ended, parse
from penstock.maintenance.engines import embedded
from penstock.maintenance.errors import CommitUnknown, Refused
from penstock.maintenance.tables.catalog.catalogs import (
    TYPES,
    CatalogConfig,
    Catalogs,
    open_catalog,
)
from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess
from penstock.maintenance.tables.commit import protection
from penstock.maintenance.tables.reading.content import ManifestReader
from tests.maintenance.tables import COMPACT, LATER, SCHEMA, SampleTable

if TYPE_CHECKING:
    from penstock.maintenance.actions.compaction_plan import CompactionPlan, Group

TARGET = 512 * MB
NOW = 10_000_000_000


def entry(
    size: int,
    number: int = 0,
    *,
    day: str | None = None,
    content: DataFileContent = DataFileContent.DATA,
    form: FileFormat = FileFormat.PARQUET,
) -> ManifestEntry:
    file = DataFile.from_args(
        content=content,
        file_path=f"file:///x/{number}.parquet",
        file_format=form,
        partition=Record() if day is None else Record(day),
        record_count=10,
        file_size_in_bytes=size,
    )
    file.spec_id = 0
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=1,
        sequence_number=1,
        file_sequence_number=1,
        data_file=file,
    )


def planned(
    sample: SampleTable,
    sizes: list[int],
    *,
    now_ms: int = NOW,
    day: str | None = None,
    **options: object,
):
    table = sample.table
    snapshot = table.current_snapshot()
    assert snapshot is not None
    data = tuple(entry(size, n, day=day) for n, size in enumerate(sizes))
    data = tuple(_by(entry, snapshot.snapshot_id) for entry in data)
    content = replace(ManifestReader(table.io).content(snapshot), data=data, deletes=())
    [action] = parse([{"name": "rewrite_data_files", **options}])
    return plan_compaction(table, content, action, now_ms=now_ms)


def _by(entry: ManifestEntry, snapshot_id: int) -> ManifestEntry:
    entry.snapshot_id = snapshot_id
    return entry


def files(plan: CompactionPlan) -> int:
    return len(plan.files)


@pytest.fixture
def table(sample: SampleTable) -> SampleTable:
    return sample.create(files=1)


def test_five_files_are_worth_it_and_four_are_not(table: SampleTable) -> None:
    assert files(planned(table, [20 * MB] * 5)) == 5
    few = planned(table, [20 * MB] * 4)
    assert (files(few), few.skipped["too_few_files"]) == (0, 4)


def test_files_from_three_quarters_to_nearly_twice_the_target_are_left_alone(
    table: SampleTable,
) -> None:
    low, high = int(0.75 * TARGET), int(1.8 * TARGET)
    assert files(planned(table, [low] * 5)) == files(planned(table, [high] * 5)) == 0
    assert files(planned(table, [low - 1] * 5)) == files(planned(table, [high + 1] * 5)) == 5


def test_the_tables_target_wins_over_ours_and_the_requests_over_both(sample: SampleTable) -> None:
    table = sample.create(files=1, **{"write.target-file-size-bytes": str(64 * MB)})
    assert files(planned(table, [60 * MB] * 5)) == 0
    assert files(planned(table, [60 * MB] * 5, target_file_bytes=128 * MB)) == 5
    assert planned(table, [60 * MB] * 5).target == 64 * MB


def test_groups_hold_two_gigabytes(table: SampleTable) -> None:
    sizes = [256 * MB] * 9
    assert [group.bytes // MB for group in planned(table, sizes).groups] == [2048]
    assert [g.bytes // MB for g in planned(table, [*sizes, *[256 * MB] * 4]).groups] == [2048, 1280]


@given(
    st.lists(st.integers(1, 1200 * MB), min_size=1, max_size=30),
    st.sampled_from((2048 * MB, 600 * MB, 900 * MB)),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_a_plan_makes_is_not_taken_by_the_next_one(
    table: SampleTable, sizes: list[int], group: int
) -> None:
    """Two files of 300 MB became two files of 300 MB, in each job again."""
    options = {"force": True, "max_group_bytes": group}
    for _ in range(6):
        plan = planned(table, sizes, **options)
        if not plan.groups:
            return
        left = [size for n, size in enumerate(sizes) if f"file:///x/{n}.parquet" not in plan.files]
        new_sizes = [size for rewritten in plan.groups for size in outputs(rewritten)]
        assert len(left) + len(new_sizes) < len(sizes) or max(sizes) > 1.8 * TARGET, sizes
        sizes = [*left, *new_sizes]
    raise AssertionError(f"it never ends: {sizes}")


def outputs(group: Group) -> list[int]:
    count = group.outputs(TARGET)
    return [group.bytes // count] * count


def test_a_table_under_two_files_or_32_megabytes_is_skipped_unless_forced(
    table: SampleTable,
) -> None:
    assert planned(table, [2 * 1024 * MB]).skipped == {"small_table": 1}
    small = [32 * MB // 8] * 7 + [32 * MB // 8 - 1]
    assert planned(table, small).skipped == {"small_table": 8}
    assert (
        files(planned(table, [32 * MB // 8] * 8)) == files(planned(table, small, force=True)) == 8
    )


def test_a_partition_that_was_written_in_the_last_five_minutes_is_skipped_unless_forced(
    sample: SampleTable,
) -> None:
    table = sample.create(files=1, partitioned=True)
    snapshot = table.table.current_snapshot()
    assert snapshot is not None
    at, sizes = snapshot.timestamp_ms, [20 * MB] * 5
    assert planned(table, sizes, day="d", now_ms=at + 299_999).skipped["hot_partition"] == 5
    assert files(planned(table, sizes, day="d", now_ms=at + 300_000)) == 5
    assert files(planned(table, sizes, day="d", now_ms=at, force=True)) == 5


def test_the_other_defaults_are_those_that_are_promised() -> None:
    assert (retention.DEFAULT_AGE_MS, retention.DEFAULT_KEEP) == (5 * 86_400_000, 3)
    assert (orphans.DEFAULT_AGE, orphans.FLOOR, orphans.TRASH_KEPT.days) == (3 * 86_400, 86_400, 7)
    assert MANIFEST_TARGET == 8 * MB


def test_equality_deletes_and_other_formats_are_refused_before_anything_is_written(
    sample: SampleTable,
) -> None:
    table = sample.create(files=2).table
    content = ManifestReader(table.io).content(table.current_snapshot())
    unknown = replace(content, deletes=(entry(1, content=DataFileContent.EQUALITY_DELETES),))
    other = entry(1, form=FileFormat.ORC)
    [action] = parse([COMPACT])
    for strange, word in ((unknown, "equality"), (replace(content, data=(other,)), "ORC")):
        with pytest.raises(Refused, match=word):
            plan_compaction(table, strange, action, now_ms=NOW)


@pytest.mark.parametrize("key", protection.LOCKS)
def test_a_table_that_another_writer_holds_is_refused_by_every_action(
    sample: SampleTable, key: str
) -> None:
    sample.create(files=1, **{f"loader.{key}": "nightly"})
    assert {sample.run(name).status for name in ("expire_snapshots", "rewrite_manifests")} == {
        Ended.REFUSED
    }
    with sample.table.transaction() as change:
        change.set_properties({f"loader.{key}": ""})
    assert sample.run("expire_snapshots").status is Ended.NOTHING_TO_DO


def test_a_killed_attempts_metadata_in_any_metastore_is_found_by_its_name(tmp_path: Path) -> None:
    properties = {"warehouse": (tmp_path / "lake").as_uri()}
    config = CatalogConfig(
        name="lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", properties=properties
    )
    sample = SampleTable(open_catalog(config)).create()
    run = sample.attempt()
    catalog = open_catalog(config, mark=run.mark)
    [compact] = parse([COMPACT])
    assert (
        embedded.execute(CatalogTableAccess(catalog, sample.name), run, compact).status
        is Ended.COMPLETED
    )
    assert run.mark in sample.table.metadata_location
    left = Path(sample.table.metadata_location.removeprefix("file://"))
    orphan = left.with_name(f"00099-killed.{run.mark}.metadata.json")
    orphan.write_bytes(left.read_bytes())
    assert remove_leftovers(sample.table_access, sample.attempt()) == 0, "a day has not passed"
    assert remove_leftovers(sample.table_access, sample.attempt(now=lambda: LATER)) == 1
    assert left.exists()
    assert not orphan.exists()
    assert sample.ids() == list(range(60))
    for opened in (catalog, sample.catalog):
        opened.close()


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind not in ("sql", "rest")])
def test_other_catalogs_are_configured_alike_and_say_what_they_need(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Catalogs({"far": {"type": kind, "uri": "thrift://127.0.0.1:1"}}).get()
    assert not config.shared
    monkeypatch.setitem(sys.modules, TYPES[kind].rpartition(".")[0], None)
    with pytest.raises(InvalidInput, match="not installed") as refusal:
        open_catalog(config)
    assert kind in str(refusal.value.hint)


def test_a_commit_that_nobody_answers_for_deletes_no_snapshots_files(sample: SampleTable) -> None:
    sample.create()
    there = set(Path(sample.table.location().removeprefix("file://")).rglob("*.parquet"))

    class Silent(CatalogTableAccess):
        def commit(self, *_: object) -> None:
            raise CommitUnknown("no answer")

    [action] = parse([{"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}])
    done = embedded.execute(Silent(sample.catalog, sample.name), sample.attempt(), action)
    assert done.status is Ended.UNKNOWN
    assert set(Path(sample.table.location().removeprefix("file://")).rglob("*.parquet")) == there


def test_files_of_a_partition_that_is_called_like_an_attempt_are_not_leftovers(
    sample: SampleTable,
) -> None:
    """A writer has written them, and not committed them yet."""
    by_day = PartitionField(
        source_id=2, field_id=1000, transform=IdentityTransform(), name="penstock-1-day"
    )
    sample.catalog.create_namespace("shop")
    sample.catalog.create_table(sample.name, SCHEMA, partition_spec=PartitionSpec(by_day))
    sample.append(0, 3)
    folder = Path(sample.table.location().removeprefix("file://"), "data", "penstock-1-day=d9")
    folder.mkdir()
    (folder / "new.parquet").write_bytes(b"x")
    assert remove_leftovers(sample.table_access, sample.attempt(now=lambda: LATER)) == 0
    assert (folder / "new.parquet").exists()


@pytest.mark.parametrize("digits", [100, 101, 5_000])
def test_a_property_of_very_many_digits_is_no_internal_error(
    sample: SampleTable, digits: int
) -> None:
    names = ("write.target-file-size-bytes", "history.expire.min-snapshots-to-keep")
    sample.create()
    with sample.table.transaction() as transaction:
        transaction.set_properties(dict.fromkeys(names, "9" * digits))
    before = sample.ids()
    assert sample.run(COMPACT).status is Ended.COMPLETED
    expected = Ended.NOTHING_TO_DO if digits == 100 else Ended.REFUSED
    assert sample.run("expire_snapshots", now=lambda: LATER).status is expected
    assert sample.ids() == before
