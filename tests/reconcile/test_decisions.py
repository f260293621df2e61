"""What people decided, and how old a break is, from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engines.registry import ENGINES
from penstock.reconcile import validation
from penstock.reconcile.ageing import CLEARED, OPEN
from penstock.reconcile.decided import Decided
from penstock.reconcile.errors import TooManyCandidates
from penstock.reconcile.execution import Executed, Execution
from penstock.reconcile.matching import MatchLimits
from tests.reconcile.stand import links, recipe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RULE = {"name": "same", "conditions": [{"left": "ref", "op": "eq", "right": "ref"}]}


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(
    folder: Path,
    left: dict[int, str],
    right: dict[int, str],
    engine: str,
    *,
    decided: Decided | None = None,
    run_id: int | None = None,
    before: Sequence[Path] = (),
    **parts: Any,
) -> Executed:
    folder.mkdir()
    files: dict[Any, list[Path]] = {}
    for name, rows in (("left", left), ("right", right)):
        place = folder / f"{name}.parquet"
        pq.write_table(pa.table({"id": pa.array(rows, pa.int64()), "ref": pa.array(rows.values(), pa.string())}), place)
        files[name] = [place]
    return Execution(
        recipe=validation.read(recipe(**(parts or {"rules": [RULE]}))),
        files=files,
        scratch=folder / "s",
        engine=engine,
        decided=decided or Decided(),
        run_id=run_id,
        before=before,
    ).run()


def rows(files: Sequence[Any], table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in files:
        if file.table == table:
            found += pq.read_table(file.path).to_pylist()
    return found


def test_a_manual_match_goes_before_any_rule_and_an_unmatch_is_never_made(engine: str, tmp_path: Path) -> None:
    decided = Decided(match=[(["1"], ["12"]), (["9"], ["99"])], unmatch=[(["2"], ["11"]), (["2", "x"], ["11"])])
    done = run(tmp_path / "a", {1: "a", 2: "b", 3: "c"}, {10: "a", 11: "b", 12: "z", 13: "c"}, engine, decided=decided)
    found = {(row["rule"], row["left_id"], row["right_id"]) for row in rows(done.evidence.files, "matched")}
    assert found == {("manual", 1, 12), ("same", 3, 13)}
    left = rows(done.evidence.files, "unmatched_left")
    assert [(row["id"], row["reason"]) for row in left] == [(2, "ambiguous")]


SQL = "SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r ON l.ref = r.ref"


def test_what_people_decided_holds_for_free_sql_too_and_totals_tie(engine: str, tmp_path: Path) -> None:
    decided = Decided(match=[(["1"], ["12"])], unmatch=[(["2"], ["11"])])
    sides: tuple[dict[int, str], dict[int, str]] = ({1: "a", 2: "b", 3: "c"}, {10: "a", 11: "b", 12: "z", 13: "c"})
    done = run(tmp_path / "a", *sides, engine, decided=decided, match_sql=SQL)
    found = {(row["rule"], row["left_id"], row["right_id"]) for row in rows(done.evidence.files, "matched")}
    assert found == {("manual", 1, 12), ("match_sql", 3, 13)}
    assert {row["id"] for row in rows(done.evidence.files, "unmatched_right")} == {10, 11}


def test_a_group_is_not_made_of_records_that_people_took_apart(engine: str, tmp_path: Path) -> None:
    key = {"left": "ref", "op": "eq", "right": "ref"}
    same = {"left": "id", "op": "sum_within", "right": "id", "absolute": 1000}
    group = {"name": "group", "pattern": "M:N", "conditions": [key, same]}
    left, right = {1: "a", 2: "a", 3: "b"}, {10: "a", 11: "a", 12: "b"}
    done = run(tmp_path / "a", left, right, engine, decided=Decided(unmatch=[(["1"], ["11"])]), rules=[group])
    found = {(row["left_id"], row["right_id"]) for row in rows(done.evidence.files, "matched")}
    assert found == {(3, 12)}
    assert {row["id"] for row in rows(done.evidence.files, "unmatched_left")} == {1, 2}


def test_free_sql_that_multiplies_rows_is_stopped_at_the_limit_and_not_after_it(engine: str) -> None:
    many = pa.table({"id": range(3000), "ref": ["a"] * 3000})
    crossed = "SELECT l.id AS left_id, r.id AS right_id FROM left_src l CROSS JOIN right_src r"
    limits = MatchLimits(per_row=1, least=50)
    with pytest.raises(TooManyCandidates, match="match_sql multiplies rows: it has more than 6,000 candidate pairs"):
        links(recipe(match_sql=crossed), many, many, engine=engine, limits=limits)
    fifty, one = many.slice(0, 50), many.slice(0, 1)
    assert len(links(recipe(match_sql=crossed), fifty, one, engine=engine, limits=limits)["match_sql"]) == 50


def test_a_break_keeps_its_age_until_its_partner_comes(engine: str, tmp_path: Path) -> None:
    first = run(tmp_path / "1", {1: "a", 2: "b"}, {10: "z"}, engine, run_id=1)
    before = [file.path for file in first.aged if file.table == OPEN]
    second = run(tmp_path / "2", {1: "a", 2: "b", 3: "c"}, {10: "z", 11: "a"}, engine, run_id=7, before=before)
    opened = {(row["side"], row["key"]): (row["since_run"], row["runs_open"]) for row in rows(second.aged, OPEN)}
    assert opened == {("left", "2"): (1, 2), ("left", "3"): (7, 1), ("right", "10"): (1, 2)}
    cleared = [(row["side"], row["key"], row["since_run"]) for row in rows(second.aged, CLEARED)]
    assert cleared == [("left", "1", 1)]
