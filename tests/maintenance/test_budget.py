from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.kit.errors import InvalidInput
from penstock.maintenance.actions import expiry, manifest_rewrite
from penstock.maintenance.actions.budget import SPENT, TOO_SMALL
from penstock.maintenance.actions.model import OPTIONS, ORDER, Ended, parse
from tests.maintenance.tables import COMPACT, LATER, SampleTable, rows

if TYPE_CHECKING:
    from penstock.maintenance.actions.model import Outcome

EXPIRE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
DELETES = {"name": "rewrite_position_delete_files"}
MANIFESTS = {"name": "rewrite_manifests"}
ORPHANS = {"name": "remove_orphan_files"}


def timed(sample: SampleTable, action: dict[str, object], *ticks: float) -> Outcome:
    """The first tick is the start; each later one is looked at before a further piece of work."""
    return sample.run({**action, "max_seconds": 10}, ticks=iter(ticks).__next__, now=lambda: LATER)


def litter(sample: SampleTable, *sizes: int) -> None:
    root = Path(sample.table.location().removeprefix("file://"))
    for number, size in enumerate(sizes):
        path = root / f"data/junk-{number}"
        path.write_bytes(b"x" * size)
        at = (datetime.now(UTC) - timedelta(days=4)).timestamp()
        os.utime(path, (at, at))


def overwritten(sample: SampleTable) -> SampleTable:
    """Four times all rows are replaced: files that only old snapshots name."""
    sample.create(files=1)
    for n in range(1, 4):
        sample.table.overwrite(rows(n * 10, 10))
    return sample


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize(
    ("option", "most"), [("max_files", 10_000_000), ("max_bytes", 1 << 50), ("max_seconds", 86_400)]
)
def test_every_action_takes_budgets_within_their_limits(name: str, option: str, most: int) -> None:
    for good in (1, most):
        assert parse([{"name": name, option: good}])[0].options[option] == good
    for bad in (0, most + 1):
        with pytest.raises(InvalidInput, match=option):
            parse([{"name": name, option: bad}])


@pytest.mark.parametrize("name", ORDER)
def test_an_option_that_an_action_does_not_know_is_refused_by_name(name: str) -> None:
    others = {key for options in OPTIONS.values() for key in options} - set(
        OPTIONS[parse([name])[0].name]
    )
    for strange in ("max_file", *others):
        with pytest.raises(InvalidInput, match=strange):
            parse([{"name": name, strange: 1}])


def test_compaction_rewrites_as_many_files_as_it_may_and_not_one_more(sample: SampleTable) -> None:
    sample.create(partitioned=True)
    before = sample.all_rows()
    assert len(sample.plan({**COMPACT, "max_files": 7}).files) == 6
    assert len(sample.plan({**COMPACT, "max_files": 8}).files) == 8
    done = sample.run({**COMPACT, "max_files": 8})
    assert (done.status, done.rewritten_files, done.skipped["budget"], done.message) == (
        Ended.PARTIAL,
        8,
        10,
        SPENT,
    )
    assert sample.all_rows() == before
    rest = sample.run({**COMPACT, "min_input_files": 2, "max_files": 13})
    assert (rest.status, rest.skipped.get("budget")) == (Ended.COMPLETED, None)
    assert sample.all_rows() == before


def test_compaction_rewrites_as_many_bytes_as_it_may(sample: SampleTable) -> None:
    sample.create()
    whole = sample.plan(COMPACT)
    assert sample.plan({**COMPACT, "max_bytes": whole.rewritten_bytes}).rewritten_files == 6
    assert sample.plan({**COMPACT, "max_bytes": whole.rewritten_bytes - 1}).rewritten_files == 5
    least = sample.run({**COMPACT, "max_bytes": 1})
    assert (least.status, least.rewritten_files, least.message) == (Ended.PARTIAL, 0, TOO_SMALL)


def test_compaction_ends_between_two_groups_when_its_time_is_over(sample: SampleTable) -> None:
    sample.create(partitioned=True)
    before = sample.all_rows()
    done = timed(sample, COMPACT, 0, 10, 10.1)
    assert (done.status, done.rewritten_files, done.commits) == (Ended.PARTIAL, 12, 1)
    assert timed(sample, COMPACT, 0).status is Ended.COMPLETED
    assert sample.all_rows() == before


def test_expiry_deletes_as_many_files_as_it_may_and_the_oldest_first(sample: SampleTable) -> None:
    overwritten(sample)
    whole = sample.plan(EXPIRE, now=lambda: LATER)
    oldest = sample.table.metadata.snapshots[0].snapshot_id
    assert (
        sample.plan({**EXPIRE, "max_files": whole.deleted_files}, now=lambda: LATER).files
        == whole.files
    )
    less = sample.plan({**EXPIRE, "max_files": whole.deleted_files - 1}, now=lambda: LATER)
    assert 0 < less.expired_snapshots < whole.expired_snapshots
    done = sample.run({**EXPIRE, "max_files": whole.deleted_files - 1}, now=lambda: LATER)
    assert (done.status, done.message) == (Ended.PARTIAL, SPENT)
    assert (done.expired_snapshots, done.deleted_files) == (
        less.expired_snapshots,
        less.deleted_files,
    )
    assert oldest not in {s.snapshot_id for s in sample.table.metadata.snapshots}
    rest = sample.run(EXPIRE, now=lambda: LATER)
    assert done.deleted_files + rest.deleted_files == whole.deleted_files
    assert sample.ids() == list(range(30, 40))


def test_expiry_deletes_as_many_bytes_as_it_may(sample: SampleTable) -> None:
    overwritten(sample)
    whole = sample.plan(EXPIRE, now=lambda: LATER)
    exact = sample.plan({**EXPIRE, "max_bytes": whole.deleted_bytes}, now=lambda: LATER)
    less = sample.plan({**EXPIRE, "max_bytes": whole.deleted_bytes - 1}, now=lambda: LATER)
    assert (exact.files, less.expired_snapshots < whole.expired_snapshots) == (whole.files, True)
    none = sample.run({**EXPIRE, "max_bytes": 1}, now=lambda: LATER)
    assert (none.status, none.commits, none.message) == (Ended.PARTIAL, 0, TOO_SMALL)


def test_expiry_ends_between_two_commits_when_its_time_is_over(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "ROUND", 1)
    sample.create(files=5)
    done = timed(sample, EXPIRE, 0, 10, 11)
    assert (done.status, done.expired_snapshots, done.commits) == (Ended.PARTIAL, 2, 2)
    rest = timed(sample, EXPIRE, 0, 1)
    assert (rest.status, rest.expired_snapshots) == (Ended.COMPLETED, 2)
    assert len(sample.ids()) == 50


def test_delete_files_are_merged_as_far_as_files_and_bytes_go(sample: SampleTable) -> None:
    sample.create(files=4)
    sample.delete([1, 11, 21, 31])
    before = sample.ids()
    whole = sample.plan(DELETES)
    assert whole.rewritten_files == 4
    assert sample.plan({**DELETES, "max_bytes": whole.rewritten_bytes}).rewritten_files == 4
    assert sample.plan({**DELETES, "max_bytes": whole.rewritten_bytes - 1}).rewritten_files == 3
    assert sample.run({**DELETES, "max_files": 1}).message == TOO_SMALL
    done = sample.run({**DELETES, "max_files": 3})
    assert (done.status, done.rewritten_files, done.after["delete_files"]) == (Ended.PARTIAL, 3, 2)
    assert sample.ids() == before
    rest = sample.run({**DELETES, "max_files": 2})
    assert (rest.status, rest.after["delete_files"]) == (Ended.COMPLETED, 1)
    assert sample.ids() == before


def test_delete_files_are_merged_partition_by_partition_while_there_is_time(
    sample: SampleTable,
) -> None:
    sample.create(files=2, rows=9, partitioned=True)
    sample.delete([0, 1, 2, 9, 10, 11])
    before = sample.ids()
    done = timed(sample, DELETES, 0, 10, 11)
    assert (done.status, done.rewritten_files, done.added_files) == (Ended.PARTIAL, 4, 2)
    assert timed(sample, DELETES, 0).status is Ended.COMPLETED
    assert sample.ids() == before


def test_manifests_are_rewritten_as_far_as_files_and_bytes_go(sample: SampleTable) -> None:
    sample.create(files=5)
    before = sample.all_rows()
    whole = sample.plan(MANIFESTS)
    assert sample.plan({**MANIFESTS, "max_bytes": whole.rewritten_bytes}).rewritten_files == 5
    assert sample.plan({**MANIFESTS, "max_bytes": whole.rewritten_bytes - 1}).rewritten_files == 4
    assert sample.run({**MANIFESTS, "max_files": 1}).message == TOO_SMALL
    done = sample.run({**MANIFESTS, "max_files": 4})
    assert (done.status, done.rewritten_files, done.after["manifests"]) == (Ended.PARTIAL, 4, 2)
    assert sample.all_rows() == before
    rest = sample.run({**MANIFESTS, "max_files": 2})
    assert (rest.status, rest.after["manifests"], rest.after["files"]) == (Ended.COMPLETED, 1, 5)
    assert sample.all_rows() == before


def test_manifests_are_rewritten_round_by_round_while_there_is_time(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_rewrite, "ROUND", 2)
    sample.create(files=6)
    done = timed(sample, MANIFESTS, 0, 10, 11)
    assert (done.status, done.rewritten_files, done.commits, done.after["manifests"]) == (
        Ended.PARTIAL,
        4,
        2,
        4,
    )
    assert len(sample.ids()) == 60


def test_orphans_go_as_far_as_files_and_bytes_go(sample: SampleTable) -> None:
    sample.create()
    litter(sample, 9, 3, 4)
    assert sample.plan({**ORPHANS, "max_bytes": 16}).deleted_files == 3
    assert sample.plan({**ORPHANS, "max_bytes": 15}).deleted_bytes == 12
    assert sample.plan({**ORPHANS, "max_bytes": 8}).deleted_bytes == 7
    done = sample.run({**ORPHANS, "max_files": 2})
    assert (done.status, done.deleted_files) == (Ended.PARTIAL, 2)
    rest = sample.run({**ORPHANS, "max_files": 1})
    assert (rest.status, rest.deleted_files) == (Ended.COMPLETED, 1)


def test_orphans_go_one_by_one_while_there_is_time(sample: SampleTable) -> None:
    sample.create()
    litter(sample, 1, 1, 1, 1)
    done = sample.run({**ORPHANS, "max_seconds": 10}, ticks=iter((0, 10, 10.5)).__next__)
    assert (done.status, done.deleted_files) == (Ended.PARTIAL, 2)
    assert sample.run(ORPHANS).deleted_files == 2
