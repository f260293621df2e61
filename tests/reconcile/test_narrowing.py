"""Arithmetic uses as many bits as the values need, with the same results at any width."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.reconcile.matching.amounts import NARROW, WIDE, width
from penstock.reconcile.matching.column import columns
from penstock.reconcile.matching.execution import Executed, Execution
from penstock.reconcile.recipes import validation
from penstock.reconcile.staging.statistics import narrowed
from tests.reconcile.match_run import links, recipe

if TYPE_CHECKING:
    from pathlib import Path

MONEY = pa.decimal128(38, 2)
KEY = {"left": "ref", "op": "eq", "right": "ref"}
NEAR = {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.02"}


def held(folder: Path, *files: pa.Array, **options: Any) -> int | None:
    paths = [folder / f"{number}.parquet" for number in range(len(files))]
    for values, path in zip(files, paths, strict=True):
        pq.write_table(pa.table({"amount": values}), path, **options)
    return narrowed(columns(pq.read_schema(paths[0])), paths)["amount"].held


def amounts(*values: str | None, kind: pa.DataType = MONEY) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], kind)


@pytest.mark.parametrize(
    ("files", "digits"),
    [
        ([amounts("999.99", None)], 3),
        ([amounts("1.00"), amounts("-1000.00")], 4),
        ([amounts("0.01")], 0),
        ([amounts(None, None)], 0),
        ([amounts()], 0),
        ([pa.array([1, -12345], pa.int64())], 5),
        ([pa.array([2**64 - 1], pa.uint64())], 20),
        ([pa.array([1.5])], None),
        ([pa.array(["1.5"])], None),
    ],
)
def test_the_files_say_how_many_digits_there_are(
    tmp_path: Path, files: list[pa.Array], digits: int | None
) -> None:
    assert held(tmp_path, *files) == digits


def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path) -> None:
    assert held(tmp_path, amounts("1.00"), write_statistics=False) is None


def test_a_column_is_not_taken_for_a_field_inside_another_one(tmp_path: Path) -> None:
    inside = pa.array([{"b": Decimal("1.00")}], pa.struct([("b", MONEY)]))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": inside, "a.b": amounts("9" * 20 + ".00")}), path)
    assert narrowed(columns(pq.read_schema(path)), [path])["a.b"].held is None


@pytest.mark.parametrize(
    ("value", "precision"), [("9" * 15 + ".99", NARROW), ("1" + "0" * 15 + ".00", WIDE)]
)
def test_sixty_four_bits_hold_amounts_and_their_differences_or_are_not_taken(
    tmp_path: Path, value: str, precision: int
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"amount": amounts(value)}), path)
    column = narrowed(columns(pq.read_schema(path)), [path])["amount"]
    assert width(column, column).precision == precision


@pytest.mark.parametrize("whole", ["9" * 15, "1" + "0" * 15, "9" * 26])
def test_the_tolerance_is_exact_on_any_number_of_digits(engine: str, whole: str) -> None:
    def side(prefix: str, *ends: str) -> pa.Table:
        values = amounts(*(f"{sign}{whole}.{end}" for sign in ("", "-") for end in ends))
        numbers = range(len(values))
        return pa.table(
            {
                "id": [f"{prefix}{n}" for n in numbers],
                "ref": [f"R{n}" for n in numbers],
                "amount": values,
            }
        )

    left, right = side("i", "10", "10", "10"), side("p", "12", "13", "08")
    result = links(
        recipe(rules=[{"name": "near", "conditions": [KEY, NEAR]}]), left, right, engine=engine
    )
    assert result["near"] == {(f"i{n}", f"p{n}", False) for n in (0, 2, 3, 5)}


def test_a_bound_with_more_digits_than_any_amount_is_held(engine: str) -> None:
    rows = pa.table({"id": ["1"], "ref": ["A"], "amount": amounts("1.00")})
    rule = {"name": "all", "conditions": [KEY, NEAR | {"absolute": "9" * 15 + ".999"}]}
    assert links(recipe(rules=[rule]), rows, rows, engine=engine)["all"] == {("1", "1", False)}


@pytest.mark.parametrize("pattern", ["1:N", "M:N"])
def test_many_amounts_may_have_more_digits_than_one(engine: str, pattern: str) -> None:
    kind = pa.decimal128(17, 2)
    left = pa.table({"id": ["i"], "ref": ["A"], "amount": amounts("1.00", kind=kind)})
    parts = amounts(*["9" * 15 + ".99"] * 20, kind=kind)
    right = pa.table({"id": [f"p{n}" for n in range(20)], "ref": ["A"] * 20, "amount": parts})
    total = {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}
    rule = {"name": "sum", "pattern": pattern, "conditions": [KEY, total]}
    assert links(recipe(rules=[rule]), left, right, engine=engine)["sum"] == set()


def test_what_others_read_has_one_type_whatever_the_amounts_are(
    engine: str, tmp_path: Path
) -> None:
    def matched(name: str, amount: str) -> pa.Schema:
        (tmp_path / name).mkdir()
        file = tmp_path / name / "rows.parquet"
        pq.write_table(pa.table({"id": ["1"], "ref": ["A"], "amount": amounts(amount)}), file)
        compare = [{"left": "amount", "right": "amount"}]
        document = recipe(rules=[{"name": "near", "conditions": [KEY, NEAR]}], compare=compare)
        done: Executed = Execution(
            recipe=validation.read(document),
            files={"left": [file], "right": [file]},
            scratch=tmp_path / name / "s",
            engine=engine,
        ).run()
        return pq.read_schema(
            next(file.path for file in done.evidence.files if file.table == "matched")
        )

    assert matched("small", "1.00") == matched("large", "9" * 25 + ".00")
