"""Manual decisions, and the age of breaks from run to run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.reconcile.errors import TooManyCandidates
from penstock.reconcile.matching.decided import Decided
from penstock.reconcile.matching.execution import Executed, Execution
from penstock.reconcile.matching.matcher import MatchLimits
from penstock.reconcile.recipes import validation
from penstock.reconcile.recipes.model import SIDES
from penstock.reconcile.runs.aging import CLEARED, OPEN
from tests.reconcile.match_run import links, recipe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RULE = {"name": "same", "conditions": [{"left": "ref", "op": "eq", "right": "ref"}]}


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
        pq.write_table(
            pa.table(
                {"id": pa.array(rows, pa.int64()), "ref": pa.array(rows.values(), pa.string())}
            ),
            place,
        )
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
    table_rows: list[dict[str, Any]] = []
    for file in files:
        if file.table == table:
            table_rows += pq.read_table(file.path).to_pylist()
    return table_rows


def test_a_manual_match_goes_before_any_rule_and_an_unmatch_is_never_made(
    engine: str, tmp_path: Path
) -> None:
    decided = Decided(match=[(["1"], ["12"]), (["9"], ["99"])], unmatch=[(["2"], ["11"])])
    done = run(
        tmp_path / "a",
        {1: "a", 2: "b", 3: "c"},
        {10: "a", 11: "b", 12: "z", 13: "c"},
        engine,
        decided=decided,
    )
    matched = {
        (row["rule"], row["left_id"], row["right_id"])
        for row in rows(done.evidence.files, "matched")
    }
    assert matched == {("manual", 1, 12), ("same", 3, 13)}
    left = rows(done.evidence.files, "unmatched_left")
    assert [(row["id"], row["reason"]) for row in left] == [(2, "ambiguous")]


SQL = "SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r ON l.ref = r.ref"


def test_what_people_decided_holds_for_free_sql_too_and_totals_tie(
    engine: str, tmp_path: Path
) -> None:
    decided = Decided(match=[(["1"], ["12"])], unmatch=[(["2"], ["11"])])
    sides: tuple[dict[int, str], dict[int, str]] = (
        {1: "a", 2: "b", 3: "c"},
        {10: "a", 11: "b", 12: "z", 13: "c"},
    )
    done = run(tmp_path / "a", *sides, engine, decided=decided, match_sql=SQL)
    matched = {
        (row["rule"], row["left_id"], row["right_id"])
        for row in rows(done.evidence.files, "matched")
    }
    assert matched == {("manual", 1, 12), ("match_sql", 3, 13)}
    assert {row["id"] for row in rows(done.evidence.files, "unmatched_right")} == {10, 11}


def test_a_group_is_not_made_of_records_that_people_took_apart(engine: str, tmp_path: Path) -> None:
    key = {"left": "ref", "op": "eq", "right": "ref"}
    same = {"left": "id", "op": "sum_within", "right": "id", "absolute": 1000}
    group = {"name": "group", "pattern": "M:N", "conditions": [key, same]}
    left, right = {1: "a", 2: "a", 3: "b"}, {10: "a", 11: "a", 12: "b"}
    done = run(
        tmp_path / "a",
        left,
        right,
        engine,
        decided=Decided(unmatch=[(["1"], ["11"])]),
        rules=[group],
    )
    matched = {(row["left_id"], row["right_id"]) for row in rows(done.evidence.files, "matched")}
    assert matched == {(3, 12)}
    assert {row["id"] for row in rows(done.evidence.files, "unmatched_left")} == {1, 2}


def test_free_sql_that_multiplies_rows_is_stopped_at_the_limit_and_not_after_it(
    engine: str,
) -> None:
    many = pa.table({"id": range(3000), "ref": ["a"] * 3000})
    crossed = "SELECT l.id AS left_id, r.id AS right_id FROM left_src l CROSS JOIN right_src r"
    limits = MatchLimits(per_row=1, least=50)
    with pytest.raises(
        TooManyCandidates, match="match_sql multiplies rows: it has more than 6,000 candidate pairs"
    ):
        links(recipe(match_sql=crossed), many, many, engine=engine, limits=limits)
    fifty, one = many.slice(0, 50), many.slice(0, 1)
    assert (
        len(links(recipe(match_sql=crossed), fifty, one, engine=engine, limits=limits)["match_sql"])
        == 50
    )


def test_a_break_keeps_its_age_until_its_partner_comes(engine: str, tmp_path: Path) -> None:
    first = run(tmp_path / "1", {1: "a", 2: "b"}, {10: "z"}, engine, run_id=1)
    before = [file.path for file in first.aged if file.table == OPEN]
    second = run(
        tmp_path / "2",
        {1: "a", 2: "b", 3: "c"},
        {10: "z", 11: "a"},
        engine,
        run_id=7,
        before=before,
    )
    opened = {
        (row["side"], row["key"]): (row["since_run"], row["runs_open"])
        for row in rows(second.aged, OPEN)
    }
    assert opened == {("left", "2"): (1, 2), ("left", "3"): (7, 1), ("right", "10"): (1, 2)}
    cleared = [(row["side"], row["key"], row["since_run"]) for row in rows(second.aged, CLEARED)]
    assert cleared == [("left", "1", 1)]


def test_an_item_that_is_not_in_todays_file_is_gone_and_not_matched(
    engine: str,
    tmp_path: Path,
) -> None:
    first = run(tmp_path / "1", {1: "a", 2: "b", 3: "c"}, {10: "z", 20: "y"}, engine, run_id=1)
    before = [file.path for file in first.aged if file.table == OPEN]
    assert {row["outcome"] for row in rows(first.aged, OPEN)} == {"new"}
    second = run(
        tmp_path / "2",
        {1: "a", 3: "c", 4: "d"},
        {10: "z", 11: "a"},
        engine,
        run_id=2,
        before=before,
    )
    opened = {(row["side"], row["key"]): row["outcome"] for row in rows(second.aged, OPEN)}
    assert opened == {
        ("left", "3"): "still_open",
        ("left", "4"): "new",
        ("right", "10"): "still_open",
    }
    cleared = {(row["side"], row["key"]): row["outcome"] for row in rows(second.aged, CLEARED)}
    assert cleared == {("left", "1"): "matched", ("left", "2"): "gone", ("right", "20"): "gone"}


def test_items_whose_keys_look_alike_are_several(engine: str, tmp_path: Path) -> None:
    """A part with the sign between parts in it, and one that is the sign for a missing part."""
    keys = [("a\x1fb", "c"), ("a", "b\x1fc"), ("a", None), ("a", "\u2400"), ("a", "\u241b\u2400")]
    left = pa.table(
        {"x": [x for x, _ in keys], "y": [y for _, y in keys], "ref": ["r"] * len(keys)}
    )
    right = pa.table({"id": [1], "ref": ["s"]})
    for name, records in (("left", left), ("right", right)):
        pq.write_table(records, tmp_path / f"{name}.parquet")
    document = recipe(rules=[RULE])
    document["sources"]["left"] = {**document["sources"]["left"], "primary_key": ["x", "y"]}
    done = Execution(
        recipe=validation.read(document),
        files={name: [tmp_path / f"{name}.parquet"] for name in SIDES},
        scratch=tmp_path / "s",
        engine=engine,
        run_id=1,
    ).run()
    items = [row["key"] for row in rows(done.aged, OPEN) if row["side"] == "left"]
    assert len(items) == len(set(items)) == len(keys)


def moments(*days: int) -> pa.Table:
    """Records whose keys are moments, with a null among them."""
    keys = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in days]
    return pa.table(
        {
            "id": pa.array([*keys, None], pa.timestamp("us", "Europe/Vienna")),
            "ref": ["r"] * (len(days) + 1),
        }
    )


def test_an_item_is_the_same_on_whichever_engine_the_runs_are(tmp_path: Path) -> None:
    """Engines write moments differently; keys of runs would never meet."""
    files: list[Path] = []
    for number, name in enumerate(("duckdb", "datafusion", "duckdb"), 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        pq.write_table(moments(1, 2), folder / "left.parquet")
        pq.write_table(moments().slice(1), folder / "right.parquet")
        done = Execution(
            recipe=validation.read(recipe(rules=[RULE])),
            files={"left": [folder / "left.parquet"], "right": [folder / "right.parquet"]},
            scratch=folder / "s",
            engine=name,
            run_id=number,
            before=files,
        ).run()
        files = [file.path for file in done.aged if file.table == OPEN]
    assert {(row["key"], row["runs_open"]) for row in rows(done.aged, OPEN)} == {
        ("2024-01-01T12:00:00.000000Z", 3),
        ("2024-01-02T12:00:00.000000Z", 3),
        ("\N{SYMBOL FOR NULL}", 3),
    }


@pytest.mark.parametrize(
    "text", ["2024-01-02T12:00:00+00:00", "2024-01-02T13:00:00+01:00", "2024-01-02T12:00:00Z"]
)
def test_a_decision_names_a_moment_as_evidence_shows_it(
    engine: str,
    tmp_path: Path,
    text: str,
) -> None:
    for name in ("left", "right"):
        pq.write_table(moments(1, 2), tmp_path / f"{name}.parquet")
    done = Execution(
        recipe=validation.read(recipe(rules=[RULE])),
        files={"left": [tmp_path / "left.parquet"], "right": [tmp_path / "right.parquet"]},
        scratch=tmp_path / "s",
        engine=engine,
        decided=Decided(match=[([text], ["2024-01-01 12:00:00Z"])]),
    ).run()
    [row] = [row for row in rows(done.evidence.files, "matched") if row["rule"] == "manual"]
    assert (row["left_id"].day, row["right_id"].day) == (2, 1)


@pytest.mark.parametrize(
    "parts", [{"rules": [RULE, {**RULE, "name": "again"}]}, {"match_sql": SQL}]
)
def test_the_ids_of_matches_do_not_depend_on_decisions(
    engine: str, tmp_path: Path, parts: dict[str, Any]
) -> None:
    left, right = {1: "a", 2: "b", 3: "c"}, {10: "a", 11: "b", 12: "z"}
    ids = []
    for number, decided in enumerate((Decided(), Decided(match=[(["3"], ["12"])]))):
        done = run(tmp_path / str(number), left, right, engine, decided=decided, **parts)
        matched = rows(done.evidence.files, "matched")
        ids.append({row["match_id"]: row["left_id"] for row in matched})
    assert ids == [{"1-0": 1, "1-1": 2}, {"0-2": 3, "1-0": 1, "1-1": 2}]
