"""A path is not a file of the table: it may be removed and added again, or be live twice, and
deletes of it may be recorded under another partition.

PyIceberg applies deletes to a path whatever their sequence numbers are, so rows are expected as the
specification has them. `differential/known_defects.py` has such tables with Spark as the judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, ManifestContent
from pyiceberg.typedef import Record

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.commit.delete_file import write_positions
from penstock.maintenance.tables.commit.replacement import commit
from penstock.maintenance.tables.commit.snapshot_draft import existing_entry
from penstock.maintenance.tables.reading.content import ManifestReader
from tests.maintenance.tables import COMPACT, SampleTable, once, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyiceberg.manifest import ManifestEntry

    from penstock.maintenance.tables.reading.content import Content

ALL = {**COMPACT, "rewrite_all": True}
DELETES = "rewrite_position_delete_files"


def added_files(sample: SampleTable, count: int) -> list[str]:
    """Files of ten rows that `add_files` brings into the table in one snapshot: ids 0 to 9 are in
    the first one."""
    sample.create(files=0)
    paths = []
    for number in range(count):
        path = f"{sample.table.location()}/data/{number}.parquet"
        with sample.table.io.new_output(path).create() as sink:
            pq.write_table(rows(number * 10, 10), sink)
        paths.append(path)
    sample.table.add_files(paths)
    return paths


def add_again(sample: SampleTable, path: str) -> None:
    sample.table.add_files([path], check_duplicate_files=False)


def content(sample: SampleTable) -> Content:
    return ManifestReader(sample.table.io).content(sample.table.current_snapshot())


def live_ids(sample: SampleTable) -> list[int]:
    """By the specification, for a table without partitions: the rows of each entry without those
    that delete files with the same or a greater sequence number hold."""
    now, ids = content(sample), []
    for entry in now.data:
        path = entry.data_file.file_path
        deletes = [d for d in now.deletes if d.sequence_number >= entry.sequence_number]
        deleted = {
            row["pos"] for d in deletes for row in read(sample, d) if row["file_path"] == path
        }
        ids += [row["id"] for at, row in enumerate(read(sample, entry)) if at not in deleted]
    return sorted(ids)


def read(sample: SampleTable, entry: ManifestEntry) -> list[dict[str, object]]:
    with sample.table.io.new_input(entry.data_file.file_path).open() as source:
        return pq.read_table(source).to_pylist()


def delete_at(
    sample: SampleTable, positions: Mapping[str, Sequence[int]], *, under: DataFile | None = None
) -> None:
    """One delete file for all of them, recorded under the partition of `under`, or else of the
    first data file."""
    run = sample.attempt()

    def build(draft, head):
        data = {entry.data_file.file_path: entry.data_file for entry in head.data}
        pairs = sorted((path, at) for path, places in positions.items() for at in places)
        columns = {"file_path": [path for path, _ in pairs], "pos": [at for _, at in pairs]}
        near = under or data[next(iter(positions))]
        file = write_positions(draft.table, run, near, pa.table(columns))
        entry = draft.added(file, draft.table.metadata.next_sequence_number())
        manifest = draft.manifest(file.spec_id, ManifestContent.DELETES, [entry])
        return [manifest, *head.manifests], {}

    commit(sample.table_access, run, ManifestReader(sample.table.io), build)


def remove(sample: SampleTable, paths: Collection[str]) -> None:
    """Data files or delete files, as a whole."""
    reader = ManifestReader(sample.table.io)

    def build(draft, head):
        manifests = []
        for manifest in head.manifests:
            entries = reader.entries(manifest)
            if not any(entry.data_file.file_path in paths for entry in entries):
                manifests.append(manifest)
                continue
            changed = [
                draft.deleted(e) if e.data_file.file_path in paths else existing_entry(e)
                for e in entries
            ]
            manifests.append(draft.manifest(manifest.partition_spec_id, manifest.content, changed))
        return manifests, {}

    commit(sample.table_access, sample.attempt(), reader, build)


def register_deletes_again(sample: SampleTable) -> None:
    """The live delete files get a second entry each."""

    def build(draft, head):
        number = draft.table.metadata.next_sequence_number()
        again = [draft.added(entry.data_file, number) for entry in head.deletes]
        return [draft.manifest(0, ManifestContent.DELETES, again), *head.manifests], {}

    commit(sample.table_access, sample.attempt(), ManifestReader(sample.table.io), build)


def test_a_merged_delete_file_has_no_rows_of_a_file_that_was_added_again(
    sample: SampleTable,
) -> None:
    first, second = added_files(sample, 2)
    delete_at(sample, {first: [0, 1, 2]})
    remove(sample, {first})
    add_again(sample, first)
    delete_at(sample, {second: [0]})
    assert sample.ids() == [*range(10), *range(11, 20)]
    done = sample.run(DELETES)
    assert (done.status, done.rewritten_files, done.rows) == (Ended.COMPLETED, 2, 1)
    assert sample.ids() == [*range(10), *range(11, 20)]


def test_each_merged_delete_file_has_the_greatest_sequence_number_of_its_own_partition(
    sample: SampleTable,
) -> None:
    sample.create(files=1, partitioned=True)
    for ids in ([0], [3], [1], [4]):
        sample.delete(ids)
    sample.run(DELETES)
    numbers = {e.data_file.partition[0]: e.sequence_number for e in content(sample).deletes}
    assert numbers == {"d0": 3, "d1": 5}


def test_rows_of_another_partition_are_not_deleted_by_what_is_left_of_a_delete_file(
    sample: SampleTable,
) -> None:
    """A delete file for several data files applies in its partition only. One for a single data
    file would apply anywhere."""
    sample.create(files=0, partitioned=True)
    for day, start in (("d0", 0), ("d1", 10)):
        sample.table.append(rows(start, 10, day=day))
    by_day = {e.data_file.partition[0]: e.data_file for e in content(sample).data}
    positions = {by_day["d0"].file_path: [0], by_day["d1"].file_path: [0]}
    delete_at(sample, positions, under=by_day["d0"])
    remove(sample, {by_day["d0"].file_path})
    assert sample.ids() == [*range(10, 20)]
    done = sample.run({"name": DELETES, "min_input_files": 1})
    assert (done.status, done.added_files) == (Ended.COMPLETED, 0)
    assert sample.ids() == [*range(10, 20)]


def test_a_compaction_applies_a_delete_file_to_those_inputs_only_that_are_older(
    sample: SampleTable,
) -> None:
    first, second = added_files(sample, 2)
    delete_at(sample, {first: [0, 1, 2], second: [0]})
    remove(sample, {first})
    add_again(sample, first)
    done = sample.run(ALL)
    assert (done.status, done.rewritten_files) == (Ended.COMPLETED, 2)
    assert sample.ids() == [*range(10), *range(11, 20)]


@pytest.mark.parametrize("step", ["files_written", "manifests_written"])
def test_a_file_that_is_removed_and_added_again_meanwhile_is_not_replaced(
    sample: SampleTable, step: str
) -> None:
    paths = added_files(sample, 3)
    delete_at(sample, {paths[0]: [0, 1]})

    def meanwhile() -> None:
        remove(sample, {paths[0]})
        add_again(sample, paths[0])

    done = sample.run(ALL, step=once(step, meanwhile))
    assert done.status is Ended.ABANDONED
    assert sample.ids() == [*range(30)]


@pytest.mark.parametrize("options", [{}, {"max_files": 2}, {"where": "id < 15"}])
def test_files_that_are_live_twice_are_left_alone(
    sample: SampleTable, options: dict[str, object]
) -> None:
    paths = added_files(sample, 4)
    add_again(sample, paths[0])
    expected = sorted([*range(40), *range(10)])
    assert sample.plan({**ALL, **options}).skipped["duplicate_path"] == 2
    done = sample.run({**ALL, **options})
    assert done.skipped["duplicate_path"] == 2
    assert sample.ids() == expected
    sample.run("rewrite_manifests")
    assert sample.ids() == expected


@pytest.mark.parametrize("step", ["files_written", "manifests_written"])
def test_a_file_that_is_added_a_second_time_meanwhile_is_not_replaced(
    sample: SampleTable, step: str
) -> None:
    paths = added_files(sample, 3)
    done = sample.run(ALL, step=once(step, lambda: add_again(sample, paths[0])))
    assert (done.status, done.skipped["conflict"]) == (Ended.ABANDONED, 3)
    assert "a second time" in done.message
    assert sample.ids() == sorted([*range(30), *range(10)])


def test_deletes_of_a_file_that_is_live_twice_keep_their_sequence_numbers(
    sample: SampleTable,
) -> None:
    first, second, third = added_files(sample, 3)
    delete_at(sample, {first: [0, 1], second: [0]})
    add_again(sample, first)
    delete_at(sample, {second: [1]})
    delete_at(sample, {third: [1]})
    expected = sorted([*range(2, 10), *range(10), *range(12, 21), *range(22, 30)])
    assert live_ids(sample) == expected
    done = sample.run(DELETES)
    assert (done.status, done.rewritten_files, done.skipped) == (
        Ended.COMPLETED,
        2,
        {"duplicate_path": 1},
    )
    assert live_ids(sample) == expected


def test_delete_files_that_are_live_twice_are_left_alone(sample: SampleTable) -> None:
    sample.create(files=2)
    for id_ in (3, 15):
        sample.delete([id_])
    register_deletes_again(sample)
    ids = sample.ids()
    done = sample.run(DELETES)
    assert (done.status, done.skipped) == (Ended.NOTHING_TO_DO, {"duplicate_path": 4})
    assert (sample.ids(), len(content(sample).deletes)) == (ids, 4)


def test_delete_files_that_are_added_a_second_time_meanwhile_are_not_replaced(
    sample: SampleTable,
) -> None:
    sample.create(files=2)
    for id_ in (3, 15):
        sample.delete([id_])
    step = once("manifests_written", lambda: register_deletes_again(sample))
    done = sample.run(DELETES, step=step)
    assert (done.status, len(content(sample).deletes)) == (Ended.ABANDONED, 4)
    assert sample.ids() == [i for i in range(20) if i not in (3, 15)]


def elsewhere(sample: SampleTable) -> DataFile:
    """A table with three files in the partition d0, and a file of the partition d9."""
    sample.create(files=0, partitioned=True)
    for start in (0, 10, 20):
        sample.table.append(rows(start, 10, day="d0"))
    file = content(sample).data[0].data_file
    other = DataFile.from_args(partition=Record("d9"))
    other.spec_id = file.spec_id
    return other


def test_a_compaction_applies_deletes_of_one_file_whatever_their_partition_is(
    sample: SampleTable,
) -> None:
    other = elsewhere(sample)
    delete_at(sample, {content(sample).data[0].data_file.file_path: [0, 1]}, under=other)
    ids = sample.ids()
    assert len(ids) == 28
    done = sample.run(ALL)
    assert (done.status, done.rows, sample.ids()) == (Ended.COMPLETED, 28, ids)


def test_deletes_of_one_file_in_another_partition_are_merged_only_when_it_is_gone(
    sample: SampleTable,
) -> None:
    other = elsewhere(sample)
    for entry in content(sample).data[:2]:
        delete_at(sample, {entry.data_file.file_path: [0, 1]}, under=other)
    ids = sample.ids()
    assert len(ids) == 26
    done = sample.run(DELETES)
    assert (done.status, done.skipped) == (Ended.NOTHING_TO_DO, {"other_partition": 2})
    assert sample.ids() == ids
    sample.run(ALL)
    done = sample.run(DELETES)
    assert (done.status, done.rewritten_files, done.added_files) == (Ended.COMPLETED, 2, 0)
    assert sample.ids() == ids


def _delete_under_another_partition(sample: SampleTable, other: DataFile) -> None:
    delete_at(sample, {content(sample).data[0].data_file.file_path: [0]}, under=other)


def _remove_a_delete_file(sample: SampleTable, _: DataFile) -> None:
    remove(sample, {content(sample).deletes[0].data_file.file_path})


@pytest.mark.parametrize("meanwhile", [_delete_under_another_partition, _remove_a_delete_file])
def test_a_compaction_is_abandoned_when_other_deletes_apply_than_planned(
    sample: SampleTable, meanwhile: Callable[[SampleTable, DataFile], None]
) -> None:
    other = elsewhere(sample)
    delete_at(sample, {content(sample).data[1].data_file.file_path: [5]}, under=other)
    expected: list[int] = []

    def change() -> None:
        meanwhile(sample, other)
        expected.extend(sample.ids())

    done = sample.run(ALL, step=once("manifests_written", change))
    assert done.status is Ended.ABANDONED
    assert sample.ids() == expected
