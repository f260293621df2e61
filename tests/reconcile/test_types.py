"""Columns of every type: compared the same way by every engine, or refused; carried unchanged."""

from __future__ import annotations

from datetime import time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.engines.registry import ENGINES
from penstock.kit.errors import InvalidInput
from penstock.reconcile.errors import RecipeInvalid, RuleFailed
from penstock.reconcile.matching.decided import Decided
from tests.reconcile.book_runs import digests, document, execute, rows

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.reconcile.matching.execution import Executed

SAME = [{"left": "v", "op": "eq", "right": "v"}]
BY_NUMBER = [{"left": "n", "op": "eq", "right": "n"}]
SQL = "SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r ON {}"

COMPARED: dict[str, tuple[pa.Array, list[str | None]]] = {
    "binary": (pa.array([b"", b"\x00\xff", None], pa.binary()), ["", "00ff", None]),
    "fixed binary": (pa.array([b"ab", b"\x00\xff", None], pa.binary(2)), ["6162", "00ff", None]),
    "binary views": (pa.array([b"", b"\xff", None], pa.binary_view()), ["", "ff", None]),
    "text views": (pa.array(["", "a", None], pa.string_view()), ["", "a", None]),
    "boolean": (pa.array([True, False, None]), ["true", "false", None]),
    "time": (
        pa.array([time(1, 2), time(1, 2, 3, 400_000), None], pa.time64("us")),
        ["01:02:00", "01:02:03.4", None],
    ),
    "seconds": (
        pa.array([time(0), time(23, 59, 59), None], pa.time32("s")),
        ["00:00:00", "23:59:59", None],
    ),
    "nanoseconds": (
        pa.array([0, 1_000_000_007, None], pa.int64()).cast(pa.time64("ns")),
        ["00:00:00", "00:00:01.000000007", None],
    ),
    "uuid": (
        pa.array([bytes(16), bytes(range(16)), None], pa.uuid()),
        ["00" * 16, "000102030405060708090a0b0c0d0e0f", None],
    ),
}
UNCOMPARABLE: dict[str, pa.Array] = {
    "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
    "list of views": pa.array([["a"], [], None], pa.list_(pa.string_view())),
    "fixed list": pa.array([[1, None], [2, 3], None], pa.list_(pa.int64(), 2)),
    "struct": pa.array([{"a": 1}, {"a": None}, None], pa.struct([("a", pa.int64())])),
    "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "duration": pa.array([timedelta(1), timedelta(0), None], pa.duration("us")),
}


def table(values: pa.Array, **more: Any) -> pa.Table:
    count = len(values)
    return pa.table({"id": list(range(count)), "n": list(range(count)), "v": values, **more})


def rules(conditions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": "rule", "conditions": conditions}]


def pairs(executed: Executed) -> list[tuple[Any, Any]]:
    return [(row["left_id"], row["right_id"]) for row in rows(executed, "matched")]


def on_every_engine(
    folder: Path,
    recipe: dict[str, Any],
    left: pa.Table,
    right: pa.Table,
) -> Executed:
    """What they all wrote, to the byte."""
    runs = [execute(folder / name, recipe, left, right, engine=name) for name in sorted(ENGINES)]
    assert len({tuple(digests(run)) for run in runs}) == 1
    return runs[0]


@pytest.mark.parametrize("what", COMPARED)
def test_values_have_one_text_on_every_engine(tmp_path: Path, what: str) -> None:
    values, texts = COMPARED[what]
    recipe = document(rules=rules(SAME), output={"columns": {"left": ["v"]}})
    done = on_every_engine(tmp_path, recipe, table(values), table(pa.array(texts)))
    assert pairs(done) == [(0, 0), (1, 1)]
    [row] = rows(done, "unmatched_left")
    assert (row["id"], row["v"]) == (2, None)


@pytest.mark.parametrize("what", COMPARED)
def test_keys_of_every_type_are_counted_alike(tmp_path: Path, what: str) -> None:
    values, texts = COMPARED[what]
    twice = pa.concat_arrays([values, values])
    recipe = document("v", "id", rules=rules(BY_NUMBER))
    done = on_every_engine(tmp_path, recipe, table(twice), table(pa.array([1])))
    keys = [f'["{text}"]' if text is not None else "[null]" for text in texts]
    assert sorted(row["key"] for row in rows(done, "duplicates")) == sorted(keys)


@pytest.mark.parametrize("what", COMPARED)
@pytest.mark.parametrize("pattern", ["1:1", "1:N", "M:N"])
def test_records_with_keys_of_every_type_compete_alike(
    tmp_path: Path,
    what: str,
    pattern: str,
) -> None:
    """All want each other, and the order of keys decides."""
    values, _ = COMPARED[what]
    same = table(values).set_column(1, "n", pa.array([1, 1, 1]))
    total = {"left": "n", "op": "sum_within", "right": "n", "absolute": 0}
    conditions = BY_NUMBER if pattern == "1:1" else [*BY_NUMBER, total]
    recipe = document("v", "v", rules=[{"name": "r", "pattern": pattern, "conditions": conditions}])
    done = on_every_engine(tmp_path, recipe, same, same.slice(0, 2))
    matched = rows(done, "matched")
    assert len(matched) == {"1:1": 2, "1:N": 0, "M:N": 0}[pattern]
    assert all(row["left_v"] == row["right_v"] for row in matched)


@pytest.mark.parametrize("what", COMPARED)
def test_a_decision_names_keys_of_every_type(tmp_path: Path, engine: str, what: str) -> None:
    values, texts = COMPARED[what]
    left, right = table(values), table(values)
    recipe = document("v", "v", rules=rules([{"left": "id", "op": "lt", "right": "id"}]))
    decided = Decided(match=[([texts[1] or ""], [texts[0] or ""])])
    done = execute(tmp_path / "run", recipe, left, right, engine=engine, decided=decided)
    [row] = [row for row in rows(done, "matched") if row["rule"] == "manual"]
    plain = [values.to_pylist()[place] for place in (1, 0)]
    assert [_bytes(row[f"{side}_v"]) for side in ("left", "right")] == list(map(_bytes, plain))


def _bytes(value: Any) -> Any:
    """Evidence has a uuid as its bytes."""
    return getattr(value, "bytes", value)


@pytest.mark.parametrize("what", UNCOMPARABLE)
@pytest.mark.parametrize("where", ["eq", "normalized", "key", "compare", "currency"])
def test_values_without_a_text_are_refused_where_they_would_be_compared(
    tmp_path: Path,
    engine: str,
    what: str,
    where: str,
) -> None:
    values = UNCOMPARABLE[what]
    pair = {"left": "v", "right": "v"}
    recipe = {
        "eq": document(rules=rules(SAME)),
        "normalized": document(rules=rules([{**pair, "op": "normalized"}])),
        "key": document("v", "id", rules=rules(BY_NUMBER)),
        "compare": document(rules=rules(BY_NUMBER), compare=[{**pair, "name": "v"}]),
        "currency": document(rules=rules(BY_NUMBER), output={"currency": pair}),
    }[where]
    with pytest.raises(RecipeInvalid, match="which cannot be compared"):
        execute(tmp_path / "run", recipe, table(values), table(values), engine=engine)


@pytest.mark.parametrize("what", UNCOMPARABLE)
def test_values_without_a_text_are_carried(tmp_path: Path, what: str) -> None:
    values = UNCOMPARABLE[what]
    recipe = document(rules=rules(BY_NUMBER), output={"wide": True})
    done = on_every_engine(tmp_path, recipe, table(values), table(values.slice(0, 2)))
    assert [row["left_v"] for row in rows(done, "matched")] == values.slice(0, 2).to_pylist()
    assert [row["v"] for row in rows(done, "unmatched_left")] == [None]


LARGE = ["99999999999999.98", "12345678901234.56", "-1234567890123.45", "4294967296.654321"]


@pytest.mark.parametrize("zero", [{"op": "eq"}, {"op": "tolerance", "absolute": 0}])
def test_large_floats_are_the_numbers_that_they_are_written_as(
    tmp_path: Path,
    zero: dict[str, Any],
) -> None:
    """A million times 99999999999999.98 is no double."""
    left = table(pa.array([float(text) for text in LARGE]))
    right = table(pa.array([Decimal(text) for text in LARGE], pa.decimal128(20, 6)))
    conditions = [*BY_NUMBER, {"left": "v", "right": "v", **zero}]
    amount = {"left": "v", "right": "v"}
    recipe = document(rules=rules(conditions), output={"amount": amount})
    done = on_every_engine(tmp_path, recipe, left, right)
    assert len(pairs(done)) == len(LARGE)
    totals = {name: side.amounts["matched"] for name, side in done.evidence.sides.items()}
    assert totals["left"] == totals["right"] == {"": f"{sum(map(Decimal, LARGE)):.6f}"}


@pytest.mark.parametrize("value", [1e22, 1.5e300, float("nan"), float("-inf")])
def test_floats_that_are_no_amounts_are_refused_by_every_engine(
    tmp_path: Path,
    engine: str,
    value: float,
) -> None:
    recipe = document(rules=rules([*BY_NUMBER, {**SAME[0], "op": "tolerance", "absolute": 0}]))
    wrong = table(pa.array([1.0, value]))
    with pytest.raises(InvalidInput, match=r"the first is .* in the record with id '1'"):
        execute(tmp_path / "run", recipe, table(pa.array([1.0, 2.0])), wrong, engine=engine)


def test_floats_have_one_text_on_every_engine(tmp_path: Path) -> None:
    numbers = [1e16, 1e-7, 100.0, -0.0, 0.1, 123456789.125, None]
    texts = ["10000000000000000", "0.0000001", "100.0", "0.0", "0.1", "123456789.125", None]
    steps = [{"left": "v", "op": "normalized", "right": "v", "steps": ["trim"]}]
    left, right = table(pa.array(numbers)), table(pa.array(texts))
    done = on_every_engine(tmp_path, document(rules=rules(steps)), left, right)
    assert len(pairs(done)) == len(numbers) - 1


def test_moments_that_differ_by_a_nanosecond_are_two_keys(tmp_path: Path) -> None:
    ticks = pa.array([-1, 0, 1, 1], pa.int64()).cast(pa.timestamp("ns"))
    recipe = document("v", "id", rules=rules(BY_NUMBER))
    done = on_every_engine(tmp_path, recipe, table(ticks), table(pa.array([1])))
    assert [row["key"] for row in rows(done, "duplicates")] == ['["1970-01-01T00:00:00.000000001"]']


def test_currencies_of_any_type_are_told_apart(tmp_path: Path) -> None:
    """Zero and false are no currency that is missing."""
    pair = {"left": "v", "right": "v"}
    output = {"currency": pair, "amount": {"left": "n", "right": "n"}}
    recipe = document(rules=rules(BY_NUMBER), output=output)
    for name, values in (("number", [0, 1, None]), ("flag", [False, True, None])):
        (tmp_path / name).mkdir()
        both = table(pa.array(values))
        done = on_every_engine(tmp_path / name, recipe, both, both)
        texts = {str(v).lower() if v is not None else "": str(n) for n, v in enumerate(values)}
        totals = done.evidence.sides["left"].amounts["total"]
        assert {name: Decimal(total) for name, total in totals.items()} == {
            name: Decimal(total) for name, total in texts.items()
        }


# what free SQL reads


@pytest.mark.parametrize("kind", [pa.decimal128(20, 8), pa.string()])
@pytest.mark.parametrize("call", ["tolerance_match(l.v, r.v, 0)", "pct_match(l.v, r.v, 0)"])
def test_free_sql_rounds_no_decimals_away(
    tmp_path: Path,
    engine: str,
    call: str,
    kind: pa.DataType,
) -> None:
    sides = [table(pa.array([text]).cast(kind)) for text in ("1.00000004", "1.00000000")]
    with pytest.raises(RuleFailed, match=r"1\.00000004 has more than 6 decimals"):
        execute(tmp_path / "run", document(match_sql=SQL.format(call)), *sides, engine=engine)


@pytest.mark.parametrize(
    "call", ["tolerance_match(l.n, r.n, 1e-7)", "pct_match(l.n, r.n, 0.00001)"]
)
def test_free_sql_takes_no_bound_that_it_would_round(
    tmp_path: Path,
    engine: str,
    call: str,
) -> None:
    sides = [table(pa.array([1]))] * 2
    with pytest.raises(InvalidInput, match=r"has more than [46] decimals"):
        execute(tmp_path / "run", document(match_sql=SQL.format(call)), *sides, engine=engine)


FREE = {
    "tolerance_match(l.v, r.v, 0.01 + 0.01)": [(0, 0)],
    "l.v + 0.02 = r.v": [(0, 0)],
    "tolerance_match(similarity(l.t, r.t), 1, 0) AND l.n = r.n": [(0, 0), (1, 1)],
    "similarity(l.t, r.t) = 1 AND r.t = 'penstock_call_0_'": [(0, 0)],
    "l.w < r.w": [(0, 1), (1, 1)],
}


@pytest.mark.parametrize("condition", FREE)
def test_free_sql_reads_numbers_and_texts_as_they_are(tmp_path: Path, condition: str) -> None:
    """Literals are decimals, our functions may be inside each other, a text may look like the
    stand-in of one, and decimals of 40 digits have the order of numbers."""
    wide = pa.decimal256(40, 2)
    one, other = pa.decimal128(10, 2), pa.decimal128(12, 3)
    texts = {"t": ["penstock_call_0_", "x"]}
    left = table(
        pa.array([Decimal("0.10"), Decimal(7)], one),
        w=pa.array([Decimal(9), Decimal(10)], wide),
        **texts,
    )
    right = table(
        pa.array([Decimal("0.12"), Decimal(8)], other),
        w=pa.array([Decimal(1), Decimal(100)], wide),
        **texts,
    )
    recipe = document(match_sql=SQL.format(condition))
    done = on_every_engine(tmp_path, recipe, left, right)
    assert pairs(done) == FREE[condition]
