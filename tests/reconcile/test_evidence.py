"""Evidence: a reason for every break, totals that tie, and reproducible bytes."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engines.contract import EngineLimits
from penstock.engines.registry import ENGINES
from penstock.reconcile.errors import BadValue, ThresholdPassed
from penstock.reconcile.evidence.manifest import manifest
from penstock.reconcile.matching.execution import Executed, Execution, check_thresholds
from penstock.reconcile.recipes import validation
from tests.reconcile.match_run import recipe

if TYPE_CHECKING:
    from pathlib import Path

KEY = {"left": "ref", "op": "eq", "right": "ref"}
AMOUNT = {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.02"}
WINDOW = {"left": "day", "op": "date_window", "right": "day", "days": 3}
RULE = {"name": "it's exact", "conditions": [KEY, AMOUNT, WINDOW]}


def side(*rows: tuple[Any, ...]) -> pa.Table:
    ids, refs, amounts, days = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "ref": pa.array(refs, pa.string()),
            "amount": pa.array(
                [None if a is None else Decimal(a) for a in amounts], pa.decimal128(12, 2)
            ),
            "day": pa.array([None if d is None else date(2024, 1, d) for d in days], pa.date32()),
            "reason": pa.array(["rent"] * len(ids), pa.string()),
        }
    )


LEFT = side(
    ("i1", "A", "10.00", 1),
    ("i2", "B", "10.00", 1),
    ("i3", "C", "10.00", 1),
    ("i4", "D", "10.00", 1),
    ("i5", "E", "10.00", 1),
    ("i5", "E", "10.00", 1),
    ("i6", "F", "10.00", 1),
    ("i7", "F", "10.00", 1),
    ("i8", None, "1.00", 1),
)
RIGHT = side(
    ("p1", "A", "10.02", 4),
    ("p2", "B", "10.03", 1),
    ("p3", "C", "10.00", 9),
    ("p5", "E", "10.00", 1),
    ("p6", "F", "10.00", 1),
)


def execute(
    folder: Path,
    left: pa.Table,
    right: pa.Table,
    *,
    engine: str = "duckdb",
    pieces: int = 1,
    **parts: Any,
) -> Executed:
    files: dict[Any, list[Path]] = {}
    folder.mkdir()
    for name, rows in (("left", left), ("right", right)):
        step = -(-len(rows) // pieces) or 1
        cuts = [rows.slice(start, step) for start in range(0, max(len(rows), 1), step)]
        files[name] = [folder / f"{name}-{number}.parquet" for number in range(len(cuts))]
        for cut, place in zip(cuts, files[name], strict=True):
            pq.write_table(cut, place)
    document = recipe(**({"rules": [RULE]} | parts))
    return Execution(
        recipe=validation.read(document), files=files, scratch=folder / "s", engine=engine
    ).run()


def table(executed: Executed, name: str) -> list[dict[str, Any]]:
    files = [file.path for file in executed.evidence.files if file.table == name]
    rows: list[dict[str, Any]] = pa.concat_tables(
        [pq.read_table(file) for file in files]
    ).to_pylist()
    return rows


def test_matched_has_keys_rule_differences_and_score(engine: str, tmp_path: Path) -> None:
    done = execute(
        tmp_path / "a",
        LEFT,
        RIGHT,
        engine=engine,
        compare=[{"left": "amount", "right": "amount"}, {"left": "day", "right": "day"}],
    )
    first = table(done, "matched")[0]
    assert first == {
        "match_id": "1-0",
        "rule": "it's exact",
        "pattern": "1:1",
        "left_id": "i1",
        "right_id": "p1",
        "diff_amount": Decimal("0.02"),
        "diff_day": 3,
        "score": 1.0,
        "ambiguous": False,
    }


def test_every_break_has_its_reason_and_its_nearest_candidate(engine: str, tmp_path: Path) -> None:
    done = execute(tmp_path / "a", LEFT, RIGHT, engine=engine)
    breaks = [
        (
            row["id"],
            row["reason"],
            row["nearest_id"],
            row["nearest_difference"],
            row["nearest_days"],
        )
        for row in table(done, "unmatched_left")
    ]
    assert breaks == [
        ("i2", "amount_out_of_tolerance", "p2", Decimal("0.030000"), 0),
        ("i3", "date_out_of_window", "p3", Decimal("0.000000"), 8),
        ("i4", "no_key", None, None, None),
        ("i5", "duplicate", "p5", Decimal("0.000000"), 0),
        ("i7", "ambiguous", "p6", Decimal("0.000000"), 0),
        ("i8", "no_key", None, None, None),
    ]
    assert table(done, "unmatched_left")[0]["source_reason"] == "rent"


def test_duplicate_keys_are_reported_not_multiplied(engine: str, tmp_path: Path) -> None:
    done = execute(tmp_path / "a", LEFT, RIGHT, engine=engine)
    assert table(done, "duplicates") == [{"side": "left", "key": '["i5"]', "count": 2}]
    assert [row["left_id"] for row in table(done, "ambiguous")] == ["i5", "i6"]


@pytest.mark.parametrize(
    ("ids", "repeated"),
    [
        (("a", "b", "b", "c"), ["b"]),
        (("a", "b", "c", "a"), ["a"]),
        (("d", "c", "b", "a"), []),
        (("a", "b", "c", "d"), []),
        (("a", None, None, "b"), [None]),
    ],
)
def test_a_key_is_repeated_wherever_in_the_files_it_comes_again(
    ids: tuple[str | None, ...], repeated: list[str | None], tmp_path: Path
) -> None:
    left = side(*((name, "A", "10.00", 1) for name in ids))
    done = execute(tmp_path / "run", left, RIGHT, pieces=2, rules=[RULE])
    assert [json.loads(row["key"]) for row in table(done, "duplicates")] == [
        [name] for name in repeated
    ]


def test_totals_tie_in_rows_and_amounts(engine: str, tmp_path: Path) -> None:
    totals = execute(tmp_path / "a", LEFT, RIGHT, engine=engine).evidence.sides["left"]
    assert (totals.rows, totals.matched, totals.unmatched) == (9, 3, 6)
    sums = {
        "total": "81.00",
        "matched": "30.00",
        "unmatched": "51.00",
        "unmatched_absolute": "51.00",
    }
    assert totals.amounts == {name: {"": amount} for name, amount in sums.items()}
    assert sum(totals.reasons.values()) == 6


def test_amounts_of_several_currencies_are_totalled_apart(engine: str, tmp_path: Path) -> None:
    money = pa.array(["EUR"] * 4 + ["JPY"] * 4 + [None])
    done = execute(
        tmp_path / "a",
        LEFT.append_column("ccy", money),
        RIGHT.append_column("ccy", money[:5]),
        engine=engine,
        output={"currency": {"left": "ccy", "right": "ccy"}},
    )
    assert done.evidence.sides["left"].amounts["total"] == {
        "": "1.00",
        "EUR": "40.00",
        "JPY": "40.00",
    }


def test_a_sum_that_does_not_fit_says_so(engine: str, tmp_path: Path) -> None:
    rule = {
        "name": "parts",
        "pattern": "1:N",
        "conditions": [
            KEY,
            {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0},
        ],
    }
    left = side(("i1", "A", "10.00", 1), ("i2", "B", "10.00", 1))
    right = side(("p1", "A", "4.00", 1), ("p2", "A", "6.00", 1), ("p3", "B", "4.00", 1))
    done = execute(tmp_path / "a", left, right, engine=engine, rules=[rule])
    assert [(row["left_id"], row["right_id"]) for row in table(done, "matched")] == [
        ("i1", "p1"),
        ("i1", "p2"),
    ]
    assert [row["reason"] for row in table(done, "unmatched_left")] == ["sum_mismatch"]
    assert [row["reason"] for row in table(done, "unmatched_right")] == ["sum_mismatch"]


@pytest.mark.parametrize("pattern", ["1:N", "M:1", "M:N"])
def test_a_sum_that_does_not_fit_shows_by_how_much_the_sum_differs(
    engine: str,
    tmp_path: Path,
    pattern: str,
) -> None:
    """4 + 5 are one less than 10; one part alone would be five or six less."""
    total = {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}
    one = side(("i1", "A", "10.00", 1))
    parts = side(("p1", "A", "4.00", 1), ("p2", "A", "5.00", 1))
    left, right = (parts, one) if pattern == "M:1" else (one, parts)
    rules = [{"name": "sum", "pattern": pattern, "conditions": [KEY, total]}]
    done = execute(tmp_path / "a", left, right, engine=engine, rules=rules)
    away = Decimal(1) if pattern == "M:1" else Decimal(-1)
    for name in ("unmatched_left", "unmatched_right"):
        assert {(row["reason"], row["nearest_difference"]) for row in table(done, name)} == {
            ("sum_mismatch", away)
        }


def test_rivals_for_a_part_show_what_their_sums_lacked(engine: str, tmp_path: Path) -> None:
    """i1 takes both parts; nothing is left for i2, so no sum of its was compared."""
    total = {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}
    left = side(("i1", "A", "9.00", 1), ("i2", "A", "7.00", 1), ("i3", "A", "1.00", 1))
    right = side(("p1", "A", "4.00", 1), ("p2", "A", "5.00", 1))
    rules = [{"name": "sum", "pattern": "1:N", "conditions": [KEY, total]}]
    done = execute(tmp_path / "a", left, right, engine=engine, rules=rules)
    assert {row["left_id"] for row in table(done, "matched")} == {"i1"}
    assert {row["reason"] for row in table(done, "unmatched_left")} == {"ambiguous"}
    other = execute(tmp_path / "b", left.slice(1), right, engine=engine, rules=rules)
    lacking = {row["id"]: row["nearest_difference"] for row in table(other, "unmatched_left")}
    assert lacking == {"i2": Decimal(2), "i3": Decimal(8)}


def test_an_amount_that_is_missing_is_not_a_wrong_sum(engine: str, tmp_path: Path) -> None:
    total = {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}
    rules = [{"name": "sum", "pattern": "1:N", "conditions": [KEY, total]}]
    left, right = side(("i1", "A", None, 1)), side(("p1", "A", "4.00", 1))
    done = execute(tmp_path / "a", left, right, engine=engine, rules=rules)
    [row] = table(done, "unmatched_left")
    assert (row["reason"], row["nearest_difference"]) == ("amount_out_of_tolerance", None)


def test_one_payment_alone_makes_no_sum_and_the_earlier_rule_says_why(
    engine: str, tmp_path: Path
) -> None:
    parts = {
        "name": "parts",
        "pattern": "1:N",
        "conditions": [
            KEY,
            {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0},
        ],
    }
    left = side(("i1", "A", "10.00", 1), ("i2", "B", "10.00", 1), ("i3", "C", "10.00", 1))
    right = side(
        ("p1", "A", "9.99", 9),
        ("p2", "B", "9.00", 1),
        ("p3", "C", "4.00", 1),
        ("p4", "C", "5.00", 1),
    )
    done = execute(tmp_path / "a", left, right, engine=engine, rules=[RULE, parts])
    late, less, parted = "date_out_of_window", "amount_out_of_tolerance", "sum_mismatch"
    lefts = {row["id"]: row["reason"] for row in table(done, "unmatched_left")}
    assert lefts == {"i1": late, "i2": less, "i3": parted}
    rights = {row["id"]: row["reason"] for row in table(done, "unmatched_right")}
    assert rights == {"p1": late, "p2": less, "p3": parted, "p4": parted}


def test_a_group_of_many_and_many_has_each_record_once(engine: str, tmp_path: Path) -> None:
    rule = {
        "name": "group",
        "pattern": "M:N",
        "conditions": [
            KEY,
            {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0},
        ],
    }
    left = side(
        ("i1", "A", "1.00", 1),
        ("i2", "A", "2.00", 1),
        ("i3", "A", "3.00", 1),
        ("i4", "B", "1.00", 1),
    )
    right = side(("p1", "A", "6.00", 1), ("p2", "B", "2.00", 1))
    done = execute(tmp_path / "a", left, right, engine=engine, rules=[rule])
    links = [(row["match_id"], row["left_id"], row["right_id"]) for row in table(done, "matched")]
    assert links == [("1-0", "i1", "p1"), ("1-0", "i2", None), ("1-0", "i3", None)]
    assert [row["reason"] for row in table(done, "unmatched_right")] == ["sum_mismatch"]


@pytest.mark.parametrize("empty", ["left", "right", "both"])
def test_a_side_without_rows_is_a_result(engine: str, tmp_path: Path, empty: str) -> None:
    left = side() if empty in ("left", "both") else LEFT
    right = side() if empty in ("right", "both") else RIGHT
    done = execute(tmp_path / "a", left, right, engine=engine)
    assert done.evidence.rows("matched") == 0
    assert done.evidence.rows("unmatched_left") == len(left)
    assert done.evidence.rows("unmatched_right") == len(right)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    rows = [(f"i{n}", f"R{n * 7 % 500}", f"{n % 9}.00", n % 28 + 1) for n in range(1000)]
    runs = [execute(tmp_path / str(n), side(*rows), side(*rows), pieces=1) for n in range(2)]
    documents = [
        manifest(run, validation.read(recipe(rules=[RULE])), version=1, inputs={}, run={"id": n})
        for n, run in enumerate(runs)
    ]
    assert documents[0]["files"] == documents[1]["files"]
    assert documents[0]["evidence_sha256"] == documents[1]["evidence_sha256"]


@pytest.mark.parametrize("pattern", ["1:1", "1:N", "M:1", "M:N"])
def test_however_the_input_is_cut_the_evidence_is_the_same(
    engine: str, pattern: str, tmp_path: Path
) -> None:
    rows = [(f"i{n}", f"R{n * 7 % 500}", f"{n % 9}.00", n % 28 + 1) for n in range(1000)]
    sums = {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 20}
    rule = {
        "name": "rule",
        "pattern": pattern,
        "conditions": [KEY, WINDOW] if pattern == "1:1" else [KEY, sums],
    }
    runs = [
        execute(
            tmp_path / str(pieces),
            side(*rows),
            side(*rows[:900]),
            engine=engine,
            pieces=pieces,
            rules=[rule],
        )
        for pieces in (1, 7)
    ]
    files = [[(file.name, file.rows, file.sha256) for file in run.evidence.files] for run in runs]
    assert files[0] == files[1]
    assert runs[0].evidence.rows("matched")


def test_the_number_of_threads_does_not_show_in_the_bytes(tmp_path: Path) -> None:
    """More rows than a thread takes at once."""
    count, refs = 150_000, 140_000
    numbers = range(count)
    left, right = (
        pa.table(
            {
                "id": pa.array([f"{name}{n}" for n in numbers]),
                "ref": pa.array([f"R{n * step % refs}" for n in numbers]),
                "amount": pa.array([n * step % refs % 97 for n in numbers], pa.int64()),
                "day": pa.array([date(2024, 1, n % 5 + 1) for n in numbers]),
            }
        )
        for name, step in (("i", 1), ("p", 3))
    )
    for name, rows in (("left", left), ("right", right)):
        pq.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=50_000)
    runs = [
        Execution(
            recipe=validation.read(recipe(rules=[RULE])),
            files={"left": [tmp_path / "left.parquet"], "right": [tmp_path / "right.parquet"]},
            scratch=tmp_path / f"s{threads}",
            limits=EngineLimits(threads=threads),
        ).run()
        for threads in (1, 2)
    ]
    files = [[(file.table, file.rows, file.sha256) for file in run.evidence.files] for run in runs]
    assert files[0] == files[1]


def test_both_engines_write_the_same_breaks(tmp_path: Path) -> None:
    done = [execute(tmp_path / name, LEFT, RIGHT, engine=name) for name in sorted(ENGINES)]
    for name in ("matched", "unmatched_left", "unmatched_right", "duplicates", "ambiguous"):
        assert table(done[0], name) == table(done[1], name)


SQL = """SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r ON l.ref = r.ref
    WHERE tolerance_match(l.amount, r.amount, 0.02) AND date_match(l.day, r.day, 3)"""


def test_free_sql_says_why_it_returned_no_pair_of_a_record(engine: str, tmp_path: Path) -> None:
    left = side(
        ("i1", "A", "10.00", 1),
        ("i2", "B", "10.00", 1),
        ("i4", "D", "10.00", 1),
        ("i8", None, "1.00", 1),
    )
    done = execute(tmp_path / "a", left, RIGHT, engine=engine, rules=[], match_sql=SQL)
    assert [(row["left_id"], row["right_id"]) for row in table(done, "matched")] == [("i1", "p1")]
    reasons = {row["id"]: row["reason"] for row in table(done, "unmatched_left")}
    assert reasons == {"i2": "rejected_by_sql", "i4": "no_candidate", "i8": "no_key"}
    reasons = {row["id"]: row["reason"] for row in table(done, "unmatched_right")}
    assert reasons == {"p2": "rejected_by_sql", **dict.fromkeys(("p3", "p5", "p6"), "no_candidate")}
    assert done.evidence.sides["left"].reasons == {
        "no_key": 1,
        "no_candidate": 1,
        "rejected_by_sql": 1,
    }


@pytest.mark.parametrize(
    ("pattern", "ambiguous", "ids"),
    [
        (None, {"p1", "p2", "p3"}, ["1-0", "1-0", "1-1", "1-2"]),
        ("1:1", {"p1", "p2", "p3"}, ["1-0", "1-0", "1-1", "1-2"]),
        ("1:N", {"p3"}, ["1-0", "1-0", "1-1", "1-2"]),
        ("M:1", {"p1", "p2"}, ["1-0", "1-1", "1-2", "1-2"]),
        ("M:N", set(), ["1-0", "1-0", "1-1", "1-2"]),
    ],
)
def test_free_sql_is_ambiguous_only_beyond_the_pattern_that_it_declares(
    engine: str, tmp_path: Path, pattern: str | None, ambiguous: set[str], ids: list[str]
) -> None:
    """i1 has two payments, p3 pays two invoices."""
    left = side(("i1", "A", "1.00", 1), ("i2", "B", "1.00", 1), ("i3", "B", "1.00", 1))
    right = side(("p1", "A", "1.00", 1), ("p2", "A", "1.00", 1), ("p3", "B", "1.00", 1))
    declared = {} if pattern is None else {"match_pattern": pattern}
    sql = "SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r USING (ref)"
    done = execute(tmp_path / "a", left, right, engine=engine, rules=[], match_sql=sql, **declared)
    matched = table(done, "matched")
    assert {row["right_id"] for row in matched if row["ambiguous"]} == ambiguous
    assert [row["match_id"] for row in matched] == ids
    assert {row["pattern"] for row in matched} == {"sql"}


def test_free_sql_that_returns_a_key_of_no_record_is_refused(engine: str, tmp_path: Path) -> None:
    swapped = (
        "SELECT r.id AS left_id, l.id AS right_id FROM left_src l JOIN right_src r ON l.ref = r.ref"
    )
    with pytest.raises(BadValue, match="which no record of that side has") as caught:
        execute(tmp_path / "a", LEFT, RIGHT, engine=engine, rules=[], match_sql=swapped)
    assert "swapped" in (caught.value.hint or "")


def test_keys_of_outer_joins_that_are_not_there_name_nobody(engine: str, tmp_path: Path) -> None:
    sql = (
        "SELECT l.id AS left_id, r.id AS right_id FROM left_src l"
        " FULL JOIN right_src r ON l.ref = r.ref"
    )
    left, right = (
        side(("i1", "A", "1.00", 1), (None, "B", "1.00", 1)),
        side(("p1", "A", "1.00", 1), ("p2", "C", "1.00", 1)),
    )
    done = execute(tmp_path / "a", left, right, engine=engine, rules=[], match_sql=sql)
    assert [(row["left_id"], row["right_id"]) for row in table(done, "matched")] == [("i1", "p1")]
    assert [row["reason"] for row in table(done, "unmatched_left")] == ["no_key"]
    assert [row["reason"] for row in table(done, "unmatched_right")] == ["no_candidate"]


def test_free_sql_that_returns_a_key_of_several_records_is_refused(
    engine: str,
    tmp_path: Path,
) -> None:
    """It returned one of the twins; which one, nobody can tell."""
    sql = f"{SQL} AND l.amount = 10"
    left = side(("i5", "E", "10.00", 1), ("i5", "E", "99.00", 1), ("i6", "F", "10.00", 1))
    with pytest.raises(BadValue, match=r"left key 'i5' \(id\), which 2 records have") as caught:
        execute(tmp_path / "a", left, RIGHT, engine=engine, rules=[], match_sql=sql)
    assert "primary_key" in (caught.value.hint or "")


def test_a_threshold_is_held_at_it_and_past_it(tmp_path: Path) -> None:
    done = execute(tmp_path / "a", LEFT, RIGHT).evidence

    def limit(**thresholds: Any) -> None:
        check_thresholds(validation.read(recipe(rules=[RULE], thresholds=thresholds)), done)

    limit(max_unmatched_pct="66.67", max_unmatched_amount=51)
    with pytest.raises(ThresholdPassed, match=r"66\.67 % of the left side"):
        limit(max_unmatched_pct="66.66")
    with pytest.raises(ThresholdPassed, match=r"51\.00 of the left side"):
        limit(max_unmatched_amount="50.99")
