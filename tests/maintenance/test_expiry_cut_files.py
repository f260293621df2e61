"""Manifests and manifest lists that were cut short: PyIceberg reads the rest as if it were all, and
what it does not read would look like files that nobody names.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.manifest import read_manifest_list

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.errors import TableUnreadable
from penstock.maintenance.tables.ownership.references import references
from tests.maintenance.tables import COMPACT, LATER, SampleTable, rows

if TYPE_CHECKING:
    from pyiceberg.table.snapshots import Snapshot

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
REWRITE_ALL = {**COMPACT, "rewrite_all": True, "min_input_files": 1}
SYNC = 16


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def cut_behind_a_block(path: Path, *, more: int = 0) -> None:
    """Without the last block, but for so many bytes of it. A list of PyIceberg has only one."""
    content = path.read_bytes()
    sync = content[-SYNC:]
    end = content.rindex(sync, 0, len(content) - SYNC) + SYNC
    path.write_bytes(content[: end + more])


def several_blocks(sample: SampleTable) -> SampleTable:
    """A head whose manifest has three entries, and whose list has two manifests."""
    sample.create(files=0, partitioned=True)
    sample.table.append(rows(0, 30))
    sample.append(100, 9)
    return sample


def tagged(sample: SampleTable) -> Snapshot:
    """An old snapshot of several blocks that a tag keeps, and nothing of it is in the head."""
    several_blocks(sample)
    snapshot = sample.table.current_snapshot()
    assert snapshot is not None
    sample.table.manage_snapshots().create_tag(snapshot.snapshot_id, "old").commit()
    sample.run(REWRITE_ALL)
    sample.append(200, 300)
    return snapshot


def files_of(sample: SampleTable, snapshot: Snapshot) -> list[Path]:
    tasks = sample.table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
    return [local(task.file.file_path) for task in tasks]


def file_to_cut(sample: SampleTable, snapshot: Snapshot, kind: str) -> Path:
    if kind == "list":
        return local(snapshot.manifest_list)
    manifests = read_manifest_list(sample.table.io.new_input(snapshot.manifest_list))
    [path] = [m.manifest_path for m in manifests if m.added_snapshot_id != snapshot.snapshot_id]
    return local(path)


@pytest.mark.parametrize("more", [0, 1, 2])
@pytest.mark.parametrize("kind", ["manifest", "list"])
@pytest.mark.parametrize("action", [KEEP_ONE, "remove_orphan_files"], ids=["expiry", "orphans"])
def test_of_a_tag_it_ends_the_action_with_the_name_of_the_file(
    sample: SampleTable, action: str | dict[str, object], kind: str, more: int
) -> None:
    snapshot = tagged(sample)
    live = files_of(sample, snapshot)
    path, metadata = file_to_cut(sample, snapshot, kind), sample.table.metadata_location
    cut_behind_a_block(path, more=more)
    done = sample.run(action, now=lambda: LATER)
    assert (done.status, path.name in done.message) == (Ended.FAILED, True)
    assert all(file.exists() for file in live)
    assert sample.table.metadata_location == metadata


@pytest.mark.parametrize("kind", ["manifest", "list"])
@pytest.mark.parametrize(
    "action",
    [KEEP_ONE, "remove_orphan_files", "rewrite_manifests", REWRITE_ALL],
    ids=["expiry", "orphans", "manifests", "data"],
)
def test_of_the_head_it_ends_the_action_with_the_name_of_the_file(
    sample: SampleTable, action: str | dict[str, object], kind: str
) -> None:
    several_blocks(sample)
    snapshot = sample.table.current_snapshot()
    assert snapshot is not None
    live = files_of(sample, snapshot)
    path, metadata = file_to_cut(sample, snapshot, kind), sample.table.metadata_location
    cut_behind_a_block(path)
    done = sample.run(action, now=lambda: LATER)
    assert (done.status, path.name in done.message) == (Ended.FAILED, True)
    assert all(file.exists() for file in live)
    assert sample.table.metadata_location == metadata


def test_a_manifest_of_another_length_or_with_other_counts_is_named(sample: SampleTable) -> None:
    several_blocks(sample)
    snapshot = sample.table.current_snapshot()
    assert snapshot is not None
    path = file_to_cut(sample, snapshot, "manifest")
    whole = path.read_bytes()
    cut_behind_a_block(path)
    with pytest.raises(TableUnreadable, match=rf"{path.name} has \d+ bytes; its manifest list"):
        references(sample.table)
    path.write_bytes(whole)
    assert references(sample.table).required


def test_a_summary_without_totals_or_with_smaller_ones_is_no_damage(sample: SampleTable) -> None:
    several_blocks(sample)
    table = sample.table
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    for total in ("1", "many", None):
        properties = dict(snapshot.summary.additional_properties)
        properties.pop("total-data-files")
        if total is not None:
            properties["total-data-files"] = total
        summary = snapshot.summary.model_copy()
        summary._additional_properties = properties
        changed = snapshot.model_copy(update={"summary": summary})
        snapshots = [*table.metadata.snapshots[:-1], changed]
        table.metadata = table.metadata.model_copy(update={"snapshots": snapshots})
        assert len(references(table).files) == 6
