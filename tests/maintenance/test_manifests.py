from __future__ import annotations

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.reading.content import ManifestReader
from tests.maintenance.tables import COMPACT, SampleTable, once


def content(sample: SampleTable):
    table = sample.table
    return ManifestReader(table.io).content(table.current_snapshot())


def test_many_manifests_become_one_with_every_entry_as_it_was(sample: SampleTable) -> None:
    sample.create(files=8, partitioned=True)
    sample.delete([4])
    before = {
        (e.data_file.file_path, e.sequence_number, e.snapshot_id) for e in content(sample).data
    }
    rows = sample.all_rows()
    assert sample.plan("rewrite_manifests").rewritten_files == 9
    done = sample.run("rewrite_manifests")
    assert (done.status, done.before["manifests"], done.after["manifests"]) == (
        Ended.COMPLETED,
        9,
        2,
    )
    assert {
        (e.data_file.file_path, e.sequence_number, e.snapshot_id) for e in content(sample).data
    } == before
    partitions = [e.data_file.partition[0] for e in content(sample).data]
    assert partitions == sorted(partitions)
    assert sample.all_rows() == rows
    assert sample.table.current_snapshot().summary.additional_properties["total-records"] == "80"
    assert sample.run("rewrite_manifests").status is Ended.NOTHING_TO_DO


def test_an_append_beside_it_is_taken_in(sample: SampleTable) -> None:
    sample.create()
    done = sample.run(
        "rewrite_manifests", step=once("manifests_written", lambda: sample.append(1000, 5))
    )
    assert (done.status, done.tries, len(sample.ids())) == (Ended.COMPLETED, 2, 65)


def test_a_small_target_makes_several(sample: SampleTable) -> None:
    sample.create(files=6)
    assert sample.run("rewrite_manifests").after["manifests"] == 1


def test_dangling_deletes_are_dropped_after_a_compaction(sample: SampleTable) -> None:
    sample.create()
    sample.delete([3, 4, 15])
    sample.run(COMPACT)
    rows = sample.all_rows()
    done = sample.run("rewrite_position_delete_files")
    assert (done.status, done.rewritten_files, done.added_files) == (Ended.COMPLETED, 2, 0)
    assert done.after["delete_files"] == 0
    assert sample.all_rows() == rows
    sample.run("rewrite_manifests")
    assert (len(content(sample).manifests), sample.all_rows()) == (1, rows)


def test_small_delete_files_are_merged_and_still_apply(sample: SampleTable) -> None:
    sample.create()
    for row in (3, 4, 15, 27):
        sample.delete([row])
    rows = sample.all_rows()
    done = sample.run("rewrite_position_delete_files")
    assert (done.rewritten_files, done.added_files, done.rows) == (4, 1, 4)
    assert sample.all_rows() == rows
    assert len(rows) == 56
    sample.run(COMPACT)
    assert sample.all_rows() == rows


def test_a_delete_that_comes_beside_a_merge_stands(sample: SampleTable) -> None:
    sample.create()
    for row in (3, 4):
        sample.delete([row])
    done = sample.run(
        "rewrite_position_delete_files", step=once("manifests_written", lambda: sample.delete([5]))
    )
    assert done.status is Ended.COMPLETED
    assert not {3, 4, 5} & set(sample.ids())
    assert len(sample.ids()) == 57
