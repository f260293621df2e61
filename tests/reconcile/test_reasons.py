"""Reasons of breaks whose key many records share: correct, or reported as not examined."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.reconcile.matching.matcher import MatchLimits
from tests.reconcile.book_runs import digests, document, execute, rows

if TYPE_CHECKING:
    from pathlib import Path

KEY = {"left": "ref", "op": "eq", "right": "ref"}
CLOSE = {"left": "amount", "op": "tolerance", "right": "amount", "absolute": 1}
RULES = [{"name": "close", "conditions": [KEY, CLOSE]}]
MANY = 1_100


def test_a_key_that_a_thousand_records_share_hides_no_reason(engine: str, tmp_path: Path) -> None:
    left = pa.table({"id": range(MANY), "ref": ["a"] * (MANY - 1) + ["z"], "amount": range(MANY)})
    amounts = [10**6 + number for number in range(MANY)]
    right = pa.table({"id": range(MANY), "ref": ["a"] * MANY, "amount": amounts})
    done = execute(tmp_path / "run", document(rules=RULES), left, right, engine=engine)
    away = [Decimal(10**6 - number) for number in range(MANY - 1)]
    assert [
        (row["reason"], row["nearest_id"], row["nearest_difference"])
        for row in rows(done, "unmatched_left")
    ] == [
        *(("amount_out_of_tolerance", 0, difference) for difference in away),
        ("no_key", None, None),
    ]
    assert {(row["reason"], row["nearest_id"]) for row in rows(done, "unmatched_right")} == {
        ("amount_out_of_tolerance", MANY - 2)
    }
    assert done.warnings == []


def skewed(dice: random.Random, count: int) -> pa.Table:
    """Records of which some share a key with half of all, and few have one of their own."""
    refs = [dice.choice(["a", "a", "b", f"r{dice.randrange(count)}", None]) for _ in range(count)]
    amounts = [dice.choice([None, Decimal(dice.randrange(500)) / 10]) for _ in refs]
    days = [dice.randrange(40) for _ in refs]
    columns = {"id": range(count), "ref": refs, "amount": pa.array(amounts, pa.decimal128(9, 1))}
    return pa.table(columns | {"day": pa.array(days, pa.int32()).cast(pa.date32())})


SUM = {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}
WINDOW = {"left": "day", "op": "date_window", "right": "day", "days": 1}
BOOKS: dict[str, list[dict[str, Any]]] = {
    "one rule": [{"name": "one", "conditions": [KEY, {**CLOSE, "absolute": 0}, WINDOW]}],
    "several rules": [
        {"name": "one", "conditions": [KEY, {**CLOSE, "absolute": 0}, WINDOW]},
        {"name": "parts", "pattern": "1:N", "conditions": [KEY, SUM]},
        {
            "name": "same day",
            "conditions": [KEY, {"left": "day", "op": "eq", "right": "day"}, CLOSE],
        },
        {"name": "groups", "pattern": "M:N", "conditions": [KEY, SUM]},
    ],
}


@pytest.mark.parametrize("book", BOOKS)
def test_slices_of_pairs_say_what_all_pairs_at_once_say(
    engine: str, tmp_path: Path, book: str
) -> None:
    dice = random.Random(7)
    left, right, recipe = skewed(dice, 200), skewed(dice, 180), document(rules=BOOKS[book])
    whole = execute(tmp_path / "whole", recipe, left, right, engine=engine)
    limits = MatchLimits(examined_at_once=0)
    sliced = execute(tmp_path / "sliced", recipe, left, right, engine=engine, limits=limits)
    assert digests(sliced) == digests(whole)
    assert len({row["reason"] for row in rows(whole, "unmatched_left")}) >= 3


def test_what_was_not_examined_is_said_and_counted(engine: str, tmp_path: Path) -> None:
    """The records with the fewest candidates are examined first."""
    left = pa.table(
        {"id": range(30), "ref": ["b"] * 10 + ["a"] * 10 + ["z"] * 10, "amount": range(30)}
    )
    right = pa.table({"id": range(60), "ref": ["a"] * 50 + ["b"] * 10, "amount": [1000] * 60})
    rules = [*RULES, {"name": "other", "conditions": [KEY, {**CLOSE, "absolute": 2}]}]
    for number, these in enumerate((RULES, rules)):
        limits = MatchLimits(examined_at_once=0, examined=120)
        run = tmp_path / str(number)
        done = execute(run, document(rules=these), left, right, engine=engine, limits=limits)
        reasons = [
            (row["reason"], row["nearest_id"], row["rule"]) for row in rows(done, "unmatched_left")
        ]
        assert reasons == (
            [("amount_out_of_tolerance", 50, "close")] * 10
            + [("not_examined", None, None)] * 10
            + [("no_key", None, None)] * 10
        )
        assert done.evidence.sides["left"].reasons["not_examined"] == 10
        [of_left, of_right] = done.warnings
        assert (of_left.path, of_left.severity) == ("sources.left", "warning")
        assert "10 unmatched records have no reason (not_examined)" in of_left.message
        assert of_right.path == "sources.right"
        assert sum(done.evidence.sides["right"].reasons.values()) == 60


def test_nothing_is_examined_where_the_limit_is_below_one_record(
    engine: str, tmp_path: Path
) -> None:
    left = pa.table({"id": range(3), "ref": ["a", "a", "z"], "amount": range(3)})
    right = pa.table({"id": range(9), "ref": ["a"] * 9, "amount": [1000] * 9})
    limits = MatchLimits(examined_at_once=0, examined=1)
    done = execute(
        tmp_path / "run", document(rules=RULES), left, right, engine=engine, limits=limits
    )
    assert [row["reason"] for row in rows(done, "unmatched_left")] == [
        *("not_examined", "not_examined", "no_key"),
    ]
