"""Tables to which nothing can be committed safely now: a date in the future, a property that cannot
be read.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.catalog.rest_catalog import BadRequest, RestCatalogAdapter
from penstock.maintenance.tables.commit.committable import LEEWAY_MS
from tests.maintenance.tables import COMPACT, LATER, SampleTable, once

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
DELETES = {"name": "rewrite_position_delete_files", "min_input_files": 1}
COMMITTING = {
    "expiry": KEEP_ONE,
    "data": COMPACT,
    "deletes": DELETES,
    "manifests": "rewrite_manifests",
}
MINUTES_AHEAD = 10 * 60_000
FAR_AHEAD = 10**15


def date_ahead(sample: SampleTable, field: str, *, by: int = MINUTES_AHEAD) -> None:
    """As a writer leaves it whose clock is ahead."""
    path = Path(sample.table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    ahead = int(time.time() * 1000) + by
    if field == "last-updated-ms":
        metadata[field] = ahead
    else:
        metadata[field][-1]["timestamp-ms"] = ahead
    path.write_text(json.dumps(metadata))


@pytest.mark.parametrize("field", ["last-updated-ms", "snapshot-log", "metadata-log"])
@pytest.mark.parametrize("action", COMMITTING.values(), ids=COMMITTING)
def test_nothing_is_committed_before_the_date_of_the_last_change(
    sample: SampleTable, action: str | dict[str, object], field: str
) -> None:
    sample.create(files=5)
    sample.delete([1, 11])
    date_ahead(sample, field)
    before = sample.table.metadata_location
    done = sample.run(action, now=lambda: LATER)
    assert (done.status, sample.table.metadata_location) == (Ended.REFUSED, before)
    assert "Commits are possible from " in done.message


def test_a_date_beyond_all_calendars_is_refused_too(sample: SampleTable) -> None:
    sample.create(files=2)
    date_ahead(sample, "last-updated-ms", by=FAR_AHEAD)
    done = sample.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, "ms after 1970" in done.message) == (Ended.REFUSED, True)


def test_a_clock_that_is_seconds_ahead_does_not_matter(sample: SampleTable) -> None:
    sample.create(files=5)
    date_ahead(sample, "last-updated-ms", by=LEEWAY_MS // 2)
    assert sample.run(KEEP_ONE, now=lambda: LATER).status is Ended.COMPLETED


def test_orphans_are_removed_whatever_the_dates_say(sample: SampleTable) -> None:
    sample.create(files=2)
    date_ahead(sample, "last-updated-ms")
    assert sample.run("remove_orphan_files").status is Ended.NOTHING_TO_DO


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.metadata.previous-versions-max", "abc"),
        ("write.object-storage.enabled", "perhaps"),
        ("write.object-storage.partitioned-paths", "perhaps"),
    ],
)
@pytest.mark.parametrize("action", COMMITTING.values(), ids=COMMITTING)
def test_a_property_that_would_end_the_commit_half_way_is_refused_by_name(
    sample: SampleTable, action: str | dict[str, object], name: str, value: str
) -> None:
    sample.create(files=5)
    set_in_file(sample, name, value)
    before = sample.table.metadata_location
    done = sample.run(action, now=lambda: LATER)
    assert (done.status, sample.table.metadata_location) == (Ended.REFUSED, before)
    assert (name in done.message, value in done.message) == (True, True)


def set_in_file(sample: SampleTable, name: str, value: str) -> None:
    path = Path(sample.table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    metadata["properties"][name] = value
    if name.endswith("partitioned-paths"):
        metadata["properties"]["write.object-storage.enabled"] = "true"
    path.write_text(json.dumps(metadata))


def test_our_rest_catalog_takes_no_commit_before_the_date_of_the_last_change(
    sample: SampleTable,
) -> None:
    sample.create(files=2)
    date_ahead(sample, "snapshot-log")
    before = sample.table.metadata_location
    updates = [{"action": "set-properties", "updates": {"a": "b"}}]
    with pytest.raises(BadRequest, match="timestamp in the future"):
        RestCatalogAdapter(sample.catalog).commit("shop", "orders", {"updates": updates})
    assert sample.table.metadata_location == before


def test_what_comes_between_the_check_and_the_commit_is_seen_by_the_commit(
    sample: SampleTable,
) -> None:
    sample.create(files=5)
    before = len(sample.table.metadata.snapshots)
    change = once("deletion_recorded", lambda: date_ahead(sample, "last-updated-ms"))
    done = sample.run(KEEP_ONE, now=lambda: LATER, step=change)
    assert (done.status, "timestamp in the future" in done.message) == (Ended.REFUSED, True)
    assert len(sample.table.metadata.snapshots) == before
