"""A commit stands, and its answer is lost: whoever repeats the request is refused, and nothing that
the table names may be deleted for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy import text

from penstock.kit.errors import StaleAttempt
from penstock.maintenance.actions.leftovers import remove_leftovers
from penstock.maintenance.actions.model import Ended, parse
from penstock.maintenance.engines import embedded
from penstock.maintenance.tables.catalog.table_access import FencedTableAccess
from tests.maintenance.tables import COMPACT, LATER, SampleTable, once, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.catalog import CommitTableResponse
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from penstock.maintenance.actions.model import Outcome

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
COMPACT_DELETES = "rewrite_position_delete_files"
_SWAP = text(
    "UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old "
    "WHERE table_name = 'orders' AND metadata_location = :old"
)


@dataclass
class LosingAnswers:
    """A worker's way to a table of our own catalog: the first swap's answer is lost, then
    `meanwhile` happens, then the swap is asked for again.
    """

    sample: SampleTable
    meanwhile: Callable[[], None]
    repeated: list[bool] = field(default_factory=list)

    def run(self, action: object) -> Outcome:
        run = self.sample.attempt(now=lambda: LATER)
        [parsed] = parse([action])
        return embedded.execute(self.table_access(run), run, parsed)

    def table_access(self, run) -> FencedTableAccess:
        return FencedTableAccess(
            self.sample.name,
            properties=dict(self.sample.catalog.properties),
            current=self.pointer,
            swap=self.swap,
            others=list,
            context=run,
        )

    def pointer(self) -> str:
        return self.sample.table.metadata_location

    def swap(self, old: str, new: str) -> bool:
        moved = self.moved(old, new)
        if self.repeated:
            return moved
        self.repeated.append(moved)
        self.meanwhile()
        return self.moved(old, new)

    def moved(self, old: str, new: str) -> bool:
        """As the control plane does it."""
        with self.sample.catalog.engine.begin() as connection:
            if connection.execute(_SWAP, {"old": old, "new": new}).rowcount == 1:
                return True
        return self.pointer() == new


@pytest.mark.parametrize("action", [COMPACT, COMPACT_DELETES, "rewrite_manifests", KEEP_ONE])
def test_a_commit_stands_that_somebody_else_built_on(sample: SampleTable, action: object) -> None:
    sample.create()
    sample.delete([3, 14])
    before = sample.ids()
    table_access = LosingAnswers(sample, lambda: sample.append(1000, 5))
    done = table_access.run(action)
    assert (done.status, done.commits) == (Ended.COMPLETED, 1), done.message
    assert table_access.repeated == [True]
    assert sample.ids() == [*before, *range(1000, 1005)]
    for snapshot in sample.table.metadata.snapshots:
        sample.ids(snapshot.snapshot_id)


def test_a_commit_that_the_metadata_log_has_forgotten_leaves_all_files(sample: SampleTable) -> None:
    sample.create(**{"write.metadata.previous-versions-max": "1"})
    before = sample.ids()

    def append_twice() -> None:
        sample.append(1000, 5)
        sample.append(1005, 5)

    done = LosingAnswers(sample, append_twice).run(COMPACT)
    assert done.status is Ended.COMPLETED, done.message
    assert sample.ids() == [*before, *range(1000, 1010)]


@pytest.mark.parametrize("action", [COMPACT, COMPACT_DELETES, "rewrite_manifests", KEEP_ONE])
def test_a_job_that_is_lost_before_the_answer_deletes_nothing_live(
    sample: SampleTable, action: object
) -> None:
    sample.create()
    sample.delete([3, 14])
    before = sample.ids()

    def lose_the_job() -> None:
        raise StaleAttempt("This attempt does not hold the job any more.")

    table_access = LosingAnswers(sample, lose_the_job)
    with pytest.raises(StaleAttempt):
        table_access.run(action)
    assert (table_access.repeated, sample.ids()) == ([True], before)
    run = sample.attempt(job_id=8, now=lambda: LATER)
    remove_leftovers(table_access.table_access(run), run)
    assert sample.ids() == before


def test_what_a_lost_job_did_not_commit_is_removed_by_the_next(sample: SampleTable) -> None:
    sample.create()
    before = sample.ids()
    table_access = LosingAnswers(sample, lambda: None)

    def refuse(_old: str, _new: str) -> bool:
        raise StaleAttempt("This attempt does not hold the job any more.")

    run = sample.attempt(now=lambda: LATER)
    refused = table_access.table_access(run)
    refused._swap = refuse
    [action] = parse([COMPACT])
    with pytest.raises(StaleAttempt):
        embedded.execute(refused, run, action)
    run = sample.attempt(job_id=8, now=lambda: LATER)
    # One data file, two manifests, the manifest list and the metadata.
    assert remove_leftovers(table_access.table_access(run), run) == 5
    assert sample.ids() == before


class RepeatingCatalog(SqlCatalog):
    """Behind a proxy that loses the answer to a commit and sends the request once more."""

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        super().commit_table(table, requirements, updates)
        try:
            return super().commit_table(table, requirements, updates)
        except ValueError as e:
            raise CommitFailedException(str(e)) from e


@pytest.mark.parametrize("action", [COMPACT, COMPACT_DELETES, "rewrite_manifests"])
def test_a_commit_stands_that_was_refused_when_it_was_repeated(
    sample: SampleTable, action: object
) -> None:
    sample.create()
    sample.delete([3, 14])
    before = sample.ids()
    repeating = RepeatingCatalog(sample.catalog.name, **sample.catalog.properties)
    done = SampleTable(repeating).run(action)
    repeating.close()
    assert (done.status, done.commits) == (Ended.COMPLETED, 1), done.message
    assert sample.ids() == before


@pytest.mark.parametrize("action", [COMPACT, "rewrite_manifests"])
def test_a_commit_to_another_branch_in_between_is_no_unknown_outcome(
    sample: SampleTable, action: object
) -> None:
    sample.create()
    head = sample.table.metadata.current_snapshot_id
    sample.table.manage_snapshots().create_branch(head, "dev").commit()
    before = sample.ids()
    step = once("manifests_written", lambda: sample.table.append(rows(5000, 3), branch="dev"))
    done = sample.run(action, step=step)
    assert (done.status, done.tries) == (Ended.COMPLETED, 2), done.message
    assert sample.ids() == before
    assert len(sample.ids(sample.table.snapshot_by_name("dev").snapshot_id)) == len(before) + 3
