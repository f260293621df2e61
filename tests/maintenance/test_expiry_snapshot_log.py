"""What was current at a time: an expiry leaves no gap in the snapshot log over which a reader would
be given the wrong snapshot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.table import CommitTableRequest, TableIdentifier
from pyiceberg.table.update import RemoveSnapshotsUpdate

from penstock.maintenance.actions.model import Ended, parse
from penstock.maintenance.engines import embedded
from penstock.maintenance.tables.catalog.rest_catalog import RestCatalogAdapter
from penstock.maintenance.tables.catalog.table_access import FencedTableAccess
from penstock.maintenance.tables.commit.snapshot_log import RemoveSnapshots
from tests.maintenance.tables import LATER, SampleTable

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from penstock.maintenance.tables.catalog.table_access import TableAccess

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}


def fenced_table_access(sample: SampleTable) -> FencedTableAccess:
    """As a worker has a table of our own catalog."""
    pointer = [sample.table.metadata_location]

    def swap(expected: str, new: str) -> bool:
        if pointer[0] != expected:
            return False
        pointer[0] = new
        return True

    return FencedTableAccess(
        sample.name,
        properties={},
        current=lambda: pointer[0],
        swap=swap,
        others=list,
        context=sample.attempt(),
    )


def with_a_tag(sample: SampleTable, at: int) -> list[int]:
    """Four snapshots, one of which a tag keeps."""
    sample.create(files=4)
    ids = [snapshot.snapshot_id for snapshot in sample.table.metadata.snapshots]
    sample.table.manage_snapshots().create_tag(ids[at], "old").commit()
    return ids


def logged(table: Table) -> list[int]:
    return [entry.snapshot_id for entry in table.metadata.snapshot_log]


@pytest.mark.parametrize("access", ["catalog", "pointer"])
@pytest.mark.parametrize("tag", [0, 1])
def test_nothing_is_logged_before_a_gap(sample: SampleTable, access: str, tag: int) -> None:
    ids = with_a_tag(sample, tag)
    table_access: TableAccess = (
        sample.table_access if access == "catalog" else fenced_table_access(sample)
    )
    times = [snapshot.timestamp_ms for snapshot in sample.table.metadata.snapshots]
    [action] = parse([KEEP_ONE])
    done = embedded.execute(table_access, sample.attempt(now=lambda: LATER), action)
    assert (done.status, done.expired_snapshots) == (Ended.COMPLETED, 2)
    table = table_access.load()
    assert logged(table) == [ids[3]]
    assert table.snapshot_as_of_timestamp(times[3] - 1) is None
    assert len(sample.ids(ids[tag])) == 10 * (tag + 1)


def test_a_tag_right_before_the_head_is_still_found_by_its_time(sample: SampleTable) -> None:
    ids = with_a_tag(sample, 2)
    sample.run(KEEP_ONE, now=lambda: LATER)
    assert logged(sample.table) == ids[2:]


def test_what_other_engines_remove_through_our_rest_catalog_leaves_no_gap_either(
    sample: SampleTable,
) -> None:
    ids = with_a_tag(sample, 0)
    removals = [{"action": "remove-snapshots", "snapshot-ids": [one]} for one in ids[1:3]]
    body = {"requirements": [], "updates": removals}
    RestCatalogAdapter(sample.catalog).commit("shop", "orders", body)
    assert logged(sample.table) == [ids[3]]


def test_a_rest_catalog_is_sent_the_plain_update() -> None:
    sent = [
        CommitTableRequest(
            identifier=TableIdentifier(namespace=["shop"], name="orders"),
            updates=(update(snapshot_ids=[1, 2]),),
        ).model_dump_json()
        for update in (RemoveSnapshots, RemoveSnapshotsUpdate)
    ]
    assert sent[0] == sent[1]
