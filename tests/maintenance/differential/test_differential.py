"""A rewrite never changes what any reader sees.

Spark, DuckDB and PyIceberg read every snapshot, branch and tag of a table before and after
maintenance, each judged by itself. `known_defects.py` has the cases of defects there once were.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from penstock.maintenance.actions.model import Ended, Name, Outcome
from tests.maintenance.differential.actions import (
    Expire,
    RewriteData,
    RewriteManifests,
    request,
    run,
)
from tests.maintenance.differential.blocks import CASES_A_BLOCK, run_block
from tests.maintenance.differential.cases import Case
from tests.maintenance.differential.check import (
    SeenDifferently,
    Tally,
    added_again_after_deletes,
    check,
)
from tests.maintenance.differential.history import Append, DeleteEqual, Tag
from tests.maintenance.differential.known_defects import KNOWN_DEFECTS
from tests.maintenance.differential.manifests import live_data_files
from tests.maintenance.differential.metadata_truth import NotTrue
from tests.maintenance.differential.readers import engines as start_engines
from tests.maintenance.differential.schemas import Column, schema_of
from tests.maintenance.differential.tables import local_path, shared_table
from tests.maintenance.differential.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from tests.maintenance.differential.actions import Maintenance
    from tests.maintenance.differential.readers import Engines
    from tests.maintenance.differential.tables import SharedTable

CASES = 200
BLOCKS = range(CASES // (CASES_A_BLOCK - 1) + 1)
"""The first case of each block is the simplest one there is, always the same."""
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    with start_engines(tmp_path_factory.mktemp("engines")) as running:
        yield running


@pytest.fixture(scope="module")
def tally() -> Tally:
    return Tally()


@pytest.fixture(scope="module")
def done() -> set[int]:
    """The blocks that ran."""
    return set()


@pytest.fixture
def checked(
    engines: Engines, tmp_path_factory: pytest.TempPathFactory, tally: Tally
) -> Callable[[Case], None]:
    scratch = tmp_path_factory.mktemp("scratch")
    return lambda case: check(case, engines, scratch, tally)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=name) for name, case in KNOWN_DEFECTS.items()]
)
def test_a_known_defect_stays_mended(
    case: Case, engines: Engines, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = Tally()
    check(case, engines, tmp_path_factory.mktemp("scratch"), own)
    assert not own.refusals, "a writer did not do its part of the case"
    assert own.readers_that_read >= {"spark"}, own.unreadable
    only_in_java = added_again_after_deletes(case) or any(
        isinstance(s, DeleteEqual) for s in case.history
    )
    assert only_in_java or len(own.readers_that_read) >= 2, own.unreadable


ROWS = ((0, "a"), (1, "b"), (2, "c"))
SIX_ROWS = Case(
    columns=(Column("n", "int"), Column("t", "string")),
    history=(Append(rows=ROWS), Append(rows=ROWS), Tag()),
    actions=(RewriteData(),),
)


def _lose_a_row(shared: SharedTable) -> None:
    shared.table.delete("n = 1")


def _bring_rows_back(shared: SharedTable) -> None:
    table = shared.table
    table.append(table.scan("n = 1").to_arrow())


def _remove_a_tag(shared: SharedTable) -> None:
    with shared.table.manage_snapshots() as change:
        change.remove_tag("tag-3")


def _remove_a_live_file(shared: SharedTable) -> None:
    [_, file] = live_data_files(shared.table, shared.table.metadata.current_snapshot())
    local_path(file.file_path).unlink()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_lose_a_row, "6 rows became 4"),
        (_bring_rows_back, "6 rows became 8"),
        (_remove_a_tag, "tag-3 is gone"),
        (_remove_a_live_file, "cannot read None any more"),
    ],
)
def test_harm_is_seen(
    harm: Callable[[SharedTable], None],
    words: str,
    engines: Engines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def maintain(shared: SharedTable, _: object) -> Outcome:
        harm(shared)
        return Outcome(action=Name.REWRITE_DATA_FILES, status=Ended.COMPLETED)

    monkeypatch.setattr("tests.maintenance.differential.check.run", maintain)
    with pytest.raises(SeenDifferently, match=words):
        check(SIX_ROWS, engines, tmp_path, Tally())


@pytest.mark.parametrize(
    ("at", "untrue", "words"),
    [
        (4, 7, "record count of .* has 7, the file 6"),
        (8, {1: 2}, "null count of field 1 .* has 2, the file 0"),
        (10, {1: struct.pack("<i", 1)}, "lower bound of field 1 .* is 1, and the file has 0"),
        (11, {2: b"b"}, "upper bound of field 2 .* is b'b', and the file has b'c'"),
    ],
)
def test_untrue_metadata_is_seen(
    at: int,
    untrue: object,
    words: str,
    engines: Engines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def changed(table: Table, snapshot: Snapshot) -> Iterator[DataFile]:
        for file in live_data_files(table, snapshot):
            file[at] = untrue
            yield file

    monkeypatch.setattr("tests.maintenance.differential.metadata_truth.live_data_files", changed)
    with pytest.raises(NotTrue, match=words):
        check(SIX_ROWS, engines, tmp_path, Tally())


def _appended(shared: SharedTable, times: int) -> SharedTable:
    schema = schema_of((Column("n", "int"), Column("t", "string")))
    shared.create(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, {})
    for number in range(times):
        shared.table.append(Values(number).rows(schema, 8, "row"))
    return shared


def _count(shared: SharedTable, *, at: int | None = None) -> list[list[object]]:
    when = "" if at is None else f" FOR SYSTEM_TIME AS OF timestamp_millis({at})"
    return shared.run_in_spark(f"SELECT count(*) FROM {shared.spark_name}{when}")


@pytest.mark.parametrize("pointer", [False, True])
def test_spark_answers_no_question_about_a_time_whose_snapshot_is_expired(
    engines: Engines, pointer: bool
) -> None:
    """It answered with the snapshot of a tag from before that time."""
    with shared_table(engines.spark, pointer=pointer) as shared:
        snapshots = _appended(shared, 4).table.metadata.snapshots
        shared.table.manage_snapshots().create_tag(snapshots[0].snapshot_id, "old").commit()
        head, gap = snapshots[3].timestamp_ms, snapshots[3].timestamp_ms - 1
        assert _count(shared, at=head) == [[32]]
        outcome = run(shared, request(shared.table, Expire()))
        assert (outcome.status, outcome.expired_snapshots) == (Ended.COMPLETED, 2)
        assert _count(shared, at=head) == [[32]]
        with pytest.raises(Exception, match="Cannot find a snapshot older than"):
            _count(shared, at=gap)


@pytest.mark.parametrize("action", [RewriteData(), RewriteManifests(), Expire()])
@pytest.mark.parametrize(
    ("seconds", "ended"), [(30, Ended.COMPLETED), (600, Ended.REFUSED)], ids=["near", "far"]
)
def test_spark_reads_a_table_whose_last_writer_had_a_clock_that_is_ahead(
    engines: Engines, action: Maintenance, seconds: int, ended: Ended
) -> None:
    """After a commit of ours with an earlier date, Java did not read the table any more."""
    with shared_table(engines.spark, pointer=False) as shared:
        path = local_path(_appended(shared, 3).metadata_file)
        metadata = json.loads(path.read_text())
        dated = (*metadata["snapshots"], *metadata["snapshot-log"], *metadata["metadata-log"])
        for entry in dated:
            entry["timestamp-ms"] += seconds * 1000
        metadata["last-updated-ms"] += seconds * 1000
        path.write_text(json.dumps(metadata))
        assert _count(shared) == [[24]]
        assert run(shared, request(shared.table, action)).status is ended
        assert _count(shared) == [[24]]


@pytest.mark.parametrize("block", BLOCKS)
def test_no_reader_sees_a_difference(
    block: int, checked: Callable[[Case], None], done: set[int]
) -> None:
    done.add(block)
    run_block(block, checked, shrink=False)


def test_the_generated_cases_rewrite_what_readers_can_read(
    checked: Callable[[Case], None], tally: Tally, done: set[int]
) -> None:
    for block in set(BLOCKS) - done:
        run_block(block, checked, shrink=False)
    tally.check_reach()
