"""Columns may have any name: internal names, names that differ only in case, names of evidence
columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.kit.errors import InvalidInput
from penstock.reconcile.errors import RecipeInvalid
from penstock.reconcile.matching.column import columns
from penstock.reconcile.recipes import validation
from penstock.reconcile.recipes.draft import whole
from penstock.reconcile.recipes.model import Side
from penstock.reconcile.staging.filter_sql import apply_filters
from tests.reconcile.book_runs import document, execute, rows
from tests.reconcile.every_type import EVERY_TYPE

if TYPE_CHECKING:
    from pathlib import Path


def rule(*conditions: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "rule", "conditions": list(conditions)}]


def equal(left: str, right: str) -> dict[str, Any]:
    return {"left": left, "op": "eq", "right": right}


def test_a_column_that_is_called_like_the_place_of_a_row_is_read_as_it_is(
    engine: str,
    tmp_path: Path,
) -> None:
    """The ids are the other way round than the places."""
    left = pa.table({"_id": [1, 0], "ref": ["a", "b"]})
    right = pa.table({"_id": [0, 1], "ref": ["x", "y"]})
    recipe = document("_id", "_id", rules=rule(equal("_id", "_id")), output={"wide": True})
    done = execute(tmp_path / "run", recipe, left, right, engine=engine)
    pairs = [
        (row["left__id"], row["left_ref"], row["right__id"], row["right_ref"])
        for row in rows(done, "matched")
    ]
    assert sorted(pairs) == [(0, "b", 0, "x"), (1, "a", 1, "y")]


def test_the_key_of_the_nearest_record_is_the_one_in_the_file(engine: str, tmp_path: Path) -> None:
    near = {"left": "amount", "op": "tolerance", "right": "amount", "absolute": 0}
    left = pa.table({"_id": [7], "ref": ["a"], "amount": [1]})
    right = pa.table({"_id": [9], "ref": ["a"], "amount": [2]})
    recipe = document("_id", "_id", rules=rule(equal("ref", "ref"), near))
    done = execute(tmp_path / "run", recipe, left, right, engine=engine)
    [row] = rows(done, "unmatched_left")
    assert (row["_id"], row["nearest__id"]) == (7, 9)


@pytest.mark.parametrize("names", [("ref", "REF"), ("REF", "ref"), ("été", "ÉTÉ")])
def test_columns_that_differ_only_in_case_are_two(
    engine: str,
    tmp_path: Path,
    names: tuple[str, str],
) -> None:
    """A rule on the second column would match everything if it read the first."""
    first, second = names
    sides = [
        pa.table({"id": ids, first: ["same"] * 2, second: refs})
        for ids, refs in ((["i1", "i2"], ["a", "b"]), (["p1", "p2"], ["b", "z"]))
    ]
    recipe = document(rules=rule(equal(second, second)), output={"wide": True})
    done = execute(tmp_path / "run", recipe, *sides, engine=engine)
    [row] = rows(done, "matched")
    assert (row["left_id"], row["right_id"]) == ("i2", "p1")
    assert (row[f"left_{first}"], row[f"left_{second}"]) == ("same", "b")


def test_evidence_has_every_column_once_whatever_the_columns_are_called(
    engine: str,
    tmp_path: Path,
) -> None:
    names = [
        "reason",
        "source_reason",
        "rule",
        "nearest_difference",
        "difference",
        "nearest_days",
        "days",
        "f0",
        "l",
    ]
    side = pa.table({name: [f"{name} of it"] for name in names})
    other = pa.table({name: ["other"] for name in names})
    recipe = document(["difference", "days"], ["difference", "days"], rules=rule(equal("l", "f0")))
    done = execute(tmp_path / "run", recipe, side, other, engine=engine)
    file = next(file.path for file in done.evidence.files if file.table == "unmatched_left")
    written = pq.read_schema(file).names
    assert written == [
        *(
            "source_source_reason",
            "source_reason",
            "source_rule",
            "source_nearest_difference",
            "difference",
        ),
        *("source_nearest_days", "days", "f0", "l"),
        *(
            "reason",
            "rule",
            "key_nearest_difference",
            "key_nearest_days",
            "nearest_difference",
            "nearest_days",
        ),
    ]
    [row] = rows(done, "unmatched_left")
    assert row["source_source_reason"] == "reason of it"
    assert row["reason"] == "no_key"


def test_free_sql_reads_a_column_that_is_called_like_the_place_of_a_row(
    engine: str,
    tmp_path: Path,
) -> None:
    sql = (
        'SELECT l."_id" AS "left__id", r."_id" AS "right__id"'
        ' FROM left_src l JOIN right_src r ON l."_id" = r."_id"'
    )
    sides = [pa.table({"_id": ids}) for ids in ([5, 6, 7], [7, 5])]
    done = execute(tmp_path / "run", document("_id", "_id", match_sql=sql), *sides, engine=engine)
    assert [(row["left__id"], row["right__id"]) for row in rows(done, "matched")] == [
        (5, 5),
        (7, 7),
    ]


def test_free_sql_over_columns_that_differ_only_in_case_is_refused_before_it_runs(
    tmp_path: Path,
) -> None:
    sql = (
        "SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r ON l.REF = r.ref"
    )
    left, right = (
        pa.table({"id": [1], "ref": ["a"], "REF": ["b"]}),
        pa.table({"id": [1], "ref": ["b"]}),
    )
    recipe = document(match_sql=sql)
    by_side = {"left": columns(left.schema), "right": columns(right.schema)}
    [fault] = validation.against(whole(validation.read(recipe)), by_side)
    assert fault.path == "sources.left"
    assert "'ref' and 'REF'" in fault.message
    with pytest.raises(RecipeInvalid, match="differ only in case"):
        execute(tmp_path / "run", recipe, left, right)


def test_a_filter_reads_the_column_that_it_names(tmp_path: Path) -> None:
    rows_of = pa.table({"ref": ["x", "y"], "REF": ["a", "b"], "_id": [1, 2]})
    pq.write_table(rows_of, tmp_path / "rows.parquet")
    filters = [{"column": "REF", "op": "eq", "value": "b"}]
    side = Side.model_validate({"upload": "0" * 32, "primary_key": "_id", "filters": filters})
    filtered = apply_filters([tmp_path / "rows.parquet"], side, tmp_path / "scope")
    assert pq.read_table(filtered) == rows_of.slice(1)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="more than one column named 'a'"):
        columns(pa.schema([("a", pa.string()), ("a", pa.int64())]))


def test_evidence_carries_every_type_as_it_is(engine: str, tmp_path: Path) -> None:
    left = EVERY_TYPE.append_column("id", pa.array(range(len(EVERY_TYPE))))
    recipe = document(rules=rule(equal("id", "id")), output={"wide": True})
    done = execute(tmp_path / "run", recipe, left, left, engine=engine)
    file = next(file.path for file in done.evidence.files if file.table == "matched")
    matched = pq.read_table(file)
    for name in EVERY_TYPE.column_names:
        assert (
            matched.column(f"left_{name}").combine_chunks()
            == EVERY_TYPE.column(name).combine_chunks()
        ), name
