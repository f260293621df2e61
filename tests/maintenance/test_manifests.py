from __future__ import annotations

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.content import ManifestReader
from tests.maintenance.tables import COMPACT, Stand, once


def content(stand: Stand):
    table = stand.table
    return ManifestReader(table.io).content(table.current_snapshot())


def test_many_manifests_become_one_with_every_entry_as_it_was(stand: Stand) -> None:
    stand.create(files=8, partitioned=True)
    stand.delete([4])
    before = {
        (e.data_file.file_path, e.sequence_number, e.snapshot_id) for e in content(stand).data
    }
    rows = stand.all_rows()
    assert stand.plan("rewrite_manifests").rewritten_files == 9
    done = stand.run("rewrite_manifests")
    assert (done.status, done.before["manifests"], done.after["manifests"]) == (
        Ended.COMPLETED,
        9,
        2,
    )
    assert {
        (e.data_file.file_path, e.sequence_number, e.snapshot_id) for e in content(stand).data
    } == before
    partitions = [e.data_file.partition[0] for e in content(stand).data]
    assert partitions == sorted(partitions)
    assert stand.all_rows() == rows
    assert stand.table.current_snapshot().summary.additional_properties["total-records"] == "80"
    assert stand.run("rewrite_manifests").status is Ended.NOTHING_TO_DO


def test_an_append_beside_it_is_taken_in(stand: Stand) -> None:
    stand.create()
    done = stand.run(
        "rewrite_manifests", step=once("manifests_written", lambda: stand.append(1000, 5))
    )
    assert (done.status, done.tries, len(stand.ids())) == (Ended.COMPLETED, 2, 65)


def test_a_small_target_makes_several(stand: Stand) -> None:
    stand.create(files=6)
    assert stand.run("rewrite_manifests").after["manifests"] == 1


def test_dangling_deletes_are_dropped_after_a_compaction(stand: Stand) -> None:
    stand.create()
    stand.delete([3, 4, 15])
    stand.run(COMPACT)
    rows = stand.all_rows()
    done = stand.run("rewrite_position_delete_files")
    assert (done.status, done.rewritten_files, done.added_files) == (Ended.COMPLETED, 2, 0)
    assert done.after["delete_files"] == 0
    assert stand.all_rows() == rows
    stand.run("rewrite_manifests")
    assert (len(content(stand).manifests), stand.all_rows()) == (1, rows)


def test_small_delete_files_are_merged_and_still_apply(stand: Stand) -> None:
    stand.create()
    for row in (3, 4, 15, 27):
        stand.delete([row])
    rows = stand.all_rows()
    done = stand.run("rewrite_position_delete_files")
    assert (done.rewritten_files, done.added_files, done.rows) == (4, 1, 4)
    assert stand.all_rows() == rows
    assert len(rows) == 56
    stand.run(COMPACT)
    assert stand.all_rows() == rows


def test_a_delete_that_comes_beside_a_merge_stands(stand: Stand) -> None:
    stand.create()
    for row in (3, 4):
        stand.delete([row])
    done = stand.run(
        "rewrite_position_delete_files", step=once("manifests_written", lambda: stand.delete([5]))
    )
    assert done.status is Ended.COMPLETED
    assert not {3, 4, 5} & set(stand.ids())
    assert len(stand.ids()) == 57
