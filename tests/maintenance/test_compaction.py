from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.types import LongType

from penstock.maintenance.actions import compaction, group_writer
from penstock.maintenance.actions.model import MB, ORDER, Ended, parse
from penstock.maintenance.actions.probe import proven
from penstock.maintenance.engines import embedded
from penstock.maintenance.tables.reading.content import ManifestReader
from penstock.maintenance.tables.verification.checksum import Digest
from tests.maintenance.tables import COMPACT, SampleTable, once


def test_the_probe_proves_the_conflict_check_with_the_installed_library() -> None:
    assert proven()


@pytest.mark.parametrize("partitioned", [False, True])
def test_small_files_become_one_a_partition_with_the_same_rows(
    sample: SampleTable, partitioned: bool
) -> None:
    sample.create(files=6, partitioned=partitioned)
    before, partitions = sample.all_rows(), 3 if partitioned else 1
    planned = sample.plan(COMPACT)
    assert (planned.status, planned.rewritten_files) == (Ended.PLANNED, 6 * partitions)
    assert len(planned.files) == 6 * partitions
    assert sample.operations() == ["append"] * 6
    done = sample.run(COMPACT)
    assert (done.status, done.rewritten_files, done.added_files) == (
        Ended.COMPLETED,
        6 * partitions,
        partitions,
    )
    assert (done.before["files"], done.after["files"], done.rows) == (
        6 * partitions,
        partitions,
        60,
    )
    assert done.rewritten_bytes == planned.rewritten_bytes
    assert sample.all_rows() == before


def test_the_snapshot_is_a_replace_that_names_its_maker_and_keeps_the_plans_sequence_number(
    sample: SampleTable,
) -> None:
    table = sample.create().table
    planned_on = table.current_snapshot().sequence_number
    sample.run(COMPACT)
    table = sample.table
    snapshot = table.current_snapshot()
    summary = snapshot.summary.additional_properties
    assert snapshot.summary.operation.value == "replace"
    assert (summary["app-name"], summary["penstock.job-id"]) == ("penstock", "7")
    assert (summary["total-data-files"], summary["total-records"]) == ("1", "60")
    assert (summary["added-data-files"], summary["deleted-data-files"]) == ("1", "6")
    [entry] = ManifestReader(table.io).content(snapshot).data
    assert (entry.sequence_number, entry.file_sequence_number) == (
        planned_on,
        snapshot.sequence_number,
    )


def test_deleted_rows_are_left_out_and_stay_out(sample: SampleTable) -> None:
    sample.create()
    sample.delete([3, 4, 15])
    before = sample.all_rows()
    assert sample.run(COMPACT).rows == 57
    assert sample.all_rows() == before
    assert 3 not in sample.ids()


def test_older_snapshots_read_as_before(sample: SampleTable) -> None:
    old = sample.create().table.current_snapshot().snapshot_id
    before = sample.ids()
    sample.run(COMPACT)
    sample.append(1000, 5)
    assert sample.ids(old) == before


def test_files_of_older_schemas_become_files_of_the_schema_of_today(sample: SampleTable) -> None:
    sample.create()
    sample.delete([3])
    with sample.table.update_schema() as change:
        change.rename_column("note", "remark").add_column("extra", LongType())
    sample.append_as_now(1000)
    before = sample.all_rows()
    assert sample.run(COMPACT).rows == 60
    assert sample.all_rows() == before
    assert {"remark", "extra"} <= set(before[0])


def test_sorted_rows_come_in_their_order(sample: SampleTable) -> None:
    sample.create()
    before = sample.all_rows()
    done = sample.run({**COMPACT, "sort_order": "day, id desc"})
    rows = sample.table.scan().to_arrow()
    assert done.status is Ended.COMPLETED
    assert list(zip(rows["day"].to_pylist(), rows["id"].to_pylist(), strict=True)) == sorted(
        ((row["day"], row["id"]) for row in before), key=lambda r: (r[0], -r[1])
    )
    assert sample.all_rows() == before


@pytest.mark.parametrize("order", ["nowhere", "id upwards", "table"])
def test_an_order_that_cannot_be_is_refused(sample: SampleTable, order: str) -> None:
    sample.create()
    done = sample.run({**COMPACT, "sort_order": order})
    assert (done.status, sample.operations()) == (Ended.REFUSED, ["append"] * 6)


def test_only_files_that_may_match_where_are_rewritten(sample: SampleTable) -> None:
    sample.create(partitioned=True)
    done = sample.run({**COMPACT, "where": "day = 'd1'"})
    assert (done.rewritten_files, done.added_files, done.skipped["where"]) == (6, 1, 12)
    assert sample.run({**COMPACT, "where": "no sense"}).status is Ended.REFUSED


def test_large_output_is_cut_at_the_target_on_disk(sample: SampleTable) -> None:
    sample.create(files=6, rows=20_000)
    size = sum(e.data_file.file_size_in_bytes for e in _data(sample))
    done = sample.run(
        {**COMPACT, "target_file_bytes": max(MB // 16, size // 3), "rewrite_all": True}
    )
    assert 2 <= done.added_files <= 4
    assert len(sample.ids()) == 120_000


def test_files_of_a_good_size_and_young_partitions_and_small_tables_are_left_alone(
    sample: SampleTable,
) -> None:
    sample.create(partitioned=True)
    assert sample.run("rewrite_data_files").skipped == {"small_table": 18}
    hot = sample.run({**COMPACT, "hot_seconds": 3600})
    assert (hot.status, hot.skipped["hot_partition"]) == (Ended.NOTHING_TO_DO, 18)
    size = max(e.data_file.file_size_in_bytes for e in _data(sample))
    good = sample.plan({**COMPACT, "target_file_bytes": max(MB // 16, size)})
    assert good.status is Ended.PLANNED
    few = sample.run({**COMPACT, "min_input_files": 7})
    assert (few.status, few.skipped["too_few_files"]) == (Ended.NOTHING_TO_DO, 18)


@pytest.mark.parametrize("step", ["files_written", "manifests_written"])
def test_appends_beside_it_stand(sample: SampleTable, step: str) -> None:
    sample.create()
    done = sample.run(
        COMPACT, step=once(step, lambda: [sample.append(1000, 5), sample.append(2000, 5)])
    )
    assert done.status is Ended.COMPLETED
    assert done.tries == (1 if step == "files_written" else 2)
    assert len(sample.ids()) == len(set(sample.ids())) == 70


@pytest.mark.parametrize("step", ["files_written", "manifests_written"])
@pytest.mark.parametrize("then", ["nothing", "append"])
def test_a_position_delete_beside_it_wins_even_when_another_commit_follows(
    sample: SampleTable, step: str, then: str
) -> None:
    sample.create()

    def meanwhile() -> None:
        sample.delete([5])
        if then == "append":
            sample.append(1000, 5)

    done = sample.run(COMPACT, step=once(step, meanwhile))
    assert done.status is Ended.ABANDONED
    assert 5 not in sample.ids()
    assert len(sample.ids()) == (59 if then == "nothing" else 64)
    assert "replace" not in sample.operations()[:6]
    assert not _files_of(sample, 7)


def test_a_delete_elsewhere_does_not_disturb(sample: SampleTable) -> None:
    sample.create(partitioned=True)
    done = sample.run(
        {**COMPACT, "where": "day = 'd1'"}, step=once("files_written", lambda: sample.delete([5]))
    )
    assert done.status is Ended.COMPLETED
    assert 5 not in sample.ids()
    assert len(sample.ids()) == 59


@pytest.mark.parametrize("what", ["overwrite", "delete", "compact", "rollback"])
def test_it_is_given_up_when_an_input_goes_away(sample: SampleTable, what: str) -> None:
    sample.create()
    first = sample.table.metadata.snapshots[2].snapshot_id

    def meanwhile() -> None:
        match what:
            case "overwrite":
                sample.table.overwrite(sample.table.scan().to_arrow().slice(0, 10))
            case "delete":
                sample.table.delete("id = 5")
            case "compact":
                assert sample.run(COMPACT, job_id=8).status is Ended.COMPLETED
            case "rollback":
                sample.table.manage_snapshots().rollback_to_snapshot(first).commit()

    expected: list[int] = []
    done = sample.run(
        COMPACT,
        step=once("manifests_written", lambda: [meanwhile(), expected.extend(sample.ids())]),
    )
    assert (done.status, sample.ids()) == (Ended.ABANDONED, expected)
    assert not _files_of(sample, 7)


def test_content_that_differs_is_never_committed(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.create()
    read = group_writer.Checksum.of
    calls = []

    def once_wrong(self, batch):
        calls.append(batch)
        return read(self, batch) + Digest(total=int(len(calls) == 1))

    monkeypatch.setattr(group_writer.Checksum, "of", once_wrong)
    done = sample.run(COMPACT)
    assert (done.status, sample.operations()) == (Ended.FAILED, ["append"] * 6)
    assert not _files_of(sample, 7)


class Unsure:
    """A catalog whose answer to the first commit is lost, before or after it is done."""

    exact = False

    def __init__(self, sample: SampleTable, *, lands: bool) -> None:
        self._table_access = sample.table_access
        self._lands = lands
        self.load = self._table_access.load
        self.neighbors = self._table_access.neighbors

    def commit(self, *asked) -> None:
        if self._lands:
            self._table_access.commit(*asked)
        raise ConnectionError("no answer")


@pytest.mark.parametrize(("lands", "status"), [(True, Ended.COMPLETED), (False, Ended.UNKNOWN)])
def test_a_commit_without_an_answer_is_looked_up_and_nothing_is_deleted(
    sample: SampleTable, lands: bool, status: Ended
) -> None:
    sample.create()
    before = sample.all_rows()
    [action] = parse([COMPACT])
    done = embedded.execute(Unsure(sample, lands=lands), sample.attempt(), action)
    assert (done.status, sample.all_rows()) == (status, before)
    assert _files_of(sample, 7)


def test_partial_progress_is_committed_a_few_groups_at_a_time(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "GROUPS_A_COMMIT", 1)
    sample.create(partitioned=True)
    done = sample.run(COMPACT)
    assert (done.commits, done.added_files, len(sample.ids())) == (3, 3, 60)


@pytest.mark.parametrize(
    ("properties", "word"),
    [
        ({"format-version": "1"}, "version 1"),
        ({"encryption.key-id": "k"}, "encrypted"),
        ({"penstock.maintenance.enabled": "false"}, "owner"),
        ({"self-optimizing.enabled": "true"}, "Amoro"),
    ],
)
def test_tables_that_are_not_ours_to_touch_are_refused(
    sample: SampleTable, properties: dict[str, str], word: str
) -> None:
    sample.create(**properties)
    done = sample.run(COMPACT)
    assert done.status is Ended.REFUSED
    assert word in done.message


def test_an_empty_table_has_nothing_to_do(sample: SampleTable) -> None:
    sample.create(files=0)
    for name in (
        "expire_snapshots",
        "rewrite_data_files",
        "rewrite_manifests",
        "rewrite_position_delete_files",
    ):
        assert sample.run(name).status is Ended.NOTHING_TO_DO


def _data(sample: SampleTable):
    table = sample.table
    return ManifestReader(table.io).content(table.current_snapshot()).data


def _files_of(sample: SampleTable, job_id: int) -> list[str]:
    from pathlib import Path

    root = Path(sample.table.location().removeprefix("file://"))
    return [str(p) for p in root.rglob(f"penstock-{job_id}-*") if p.is_file()] + [
        str(p) for p in root.glob(f"data/penstock-{job_id}-*/*")
    ]


def test_a_table_of_format_version_three_is_refused_by_every_action(sample: SampleTable) -> None:
    sample.create(files=2)
    written = Path(sample.table.metadata_location.removeprefix("file://"))
    newer = json.loads(written.read_bytes()) | {"format-version": 3, "next-row-id": 0}
    written.write_text(json.dumps(newer))
    before = sample.table.metadata_location
    for name in ORDER:
        done = sample.run(name)
        assert (done.status, "format version 3" in done.message) == (Ended.REFUSED, True)
    assert sample.table.metadata_location == before
