"""Values in rules: exact numbers, days in a zone, and an error message for invalid values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.kit.errors import InvalidInput
from penstock.reconcile.errors import BadValue, RecipeInvalid, RuleFailed, ThresholdPassed
from penstock.reconcile.matching.execution import check_thresholds
from penstock.reconcile.recipes import validation
from tests.reconcile.book_runs import document, execute, rows

if TYPE_CHECKING:
    from pathlib import Path

KEY = {"left": "ref", "op": "eq", "right": "ref"}
WINDOW = {"left": "v", "op": "date_window", "right": "v", "days": 0}


def side(values: Any, kind: pa.DataType | None = None) -> pa.Table:
    numbers = range(len(values))
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "ref": [f"R{n}" for n in numbers],
            "v": pa.array(values, kind),
        }
    )


def rule(**condition: Any) -> list[dict[str, Any]]:
    return [{"name": "rule", "conditions": [KEY, {"left": "v", "right": "v", **condition}]}]


NEAR = {"op": "tolerance", "absolute": "0.02"}
GOOD = side(["1.00", "1.00"])
WRONG: dict[str, tuple[pa.Table, dict[str, Any], str]] = {
    "a text that is no number": (side(["1.00", "12,50"]), NEAR, "'12,50'"),
    "a text of more decimals than are kept": (side(["1.00", "1.2345678"]), NEAR, "'1.2345678'"),
    "a text of more digits than an amount has": (side(["1.00", "9" * 23]), NEAR, f"'{'9' * 23}'"),
    "a float that is no number": (side([1.0, float("nan")]), NEAR, "'nan'"),
    "a float without end": (side([1.0, float("-inf")]), NEAR, "'-inf'"),
    "a float of more digits than an amount has": (side([1.0, 1e23]), NEAR, "'1e+23'"),
    "an amount of 29 digits": (
        side([Decimal(1), Decimal("1" + "0" * 26 + ".00")], pa.decimal128(38, 2)),
        NEAR,
        f"'1{'0' * 26}.00'",
    ),
    "an amount of 41 digits": (
        side([Decimal(1), Decimal("1" + "0" * 38 + ".00")], pa.decimal256(41, 2)),
        NEAR,
        f"'1{'0' * 38}.00'",
    ),
    "a day that the calendar does not have": (
        side(["2024-01-31", "2024-02-30"]),
        WINDOW,
        "'2024-02-30'",
    ),
    "a day in another order": (side(["2024-01-31", "31.1.2024"]), WINDOW, "'31.1.2024'"),
    "a day with something behind it": (
        side(["2024-01-31", "2024-01-31 noon"]),
        WINDOW,
        "'2024-01-31 noon'",
    ),
    "an hour that there is not": (
        side(["2024-01-31", "2024-01-31T25:00"]),
        WINDOW,
        "'2024-01-31T25:00'",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_value_that_a_rule_cannot_read_is_named_with_its_record(
    engine: str,
    tmp_path: Path,
    what: str,
) -> None:
    wrong, condition, value = WRONG[what]
    good = side(["2024-01-31"] * 2) if condition is WINDOW else GOOD
    with pytest.raises(BadValue) as caught:
        execute(tmp_path / "run", document(rules=rule(**condition)), good, wrong, engine=engine)
    error = caught.value
    assert "Column v of the right side has 1 values that are no " in error.message
    assert value in error.message
    assert "in the record with id 'k1'" in error.message
    assert error.hint
    assert {error.details["side"], error.details["column"], *error.details["key"]} == {
        "right",
        "v",
        "k1",
    }
    assert not any(word in error.message for word in ("LINE", "SELECT", "CREATE", "CAST"))


def test_a_wrong_value_s_record_has_its_key_as_evidence_shows_it(
    engine: str, tmp_path: Path
) -> None:
    wrong = {
        "bytes": pa.array([b"\xff\x01"]),
        "float": pa.array([1e16]),
        "moment": pa.array(
            [datetime(2024, 1, 31, 23, 30, tzinfo=UTC)], pa.timestamp("us", "Europe/Vienna")
        ),
        "ref": pa.array(["A"]),
        "v": pa.array(["n/a"]),
    }
    recipe = document(
        "id",
        ["bytes", "float", "moment"],
        rules=rule(left="v", op="tolerance", right="v", absolute="0.01"),
    )
    with pytest.raises(BadValue) as caught:
        execute(tmp_path / "run", recipe, GOOD, pa.table(wrong), engine=engine)
    assert caught.value.details["key"] == [
        "ff01",
        "10000000000000000",
        "2024-01-31T23:30:00.000000Z",
    ]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 2), pa.decimal256(40, 2)])
def test_numbers_of_38_digits_are_equal_when_all_their_digits_are(
    engine: str, tmp_path: Path, kind: pa.DataType
) -> None:
    """As doubles all of them are one."""
    left = side([Decimal("9" * 36 + ".01"), Decimal("9" * 36 + ".02")], kind)
    right = side([Decimal("9" * 36 + ".01"), Decimal("9" * 36 + ".03")], kind)
    done = execute(tmp_path / "run", document(rules=rule(op="eq")), left, right, engine=engine)
    assert [row["left_id"] for row in rows(done, "matched")] == ["k0"]


def test_a_tolerance_is_exact_in_a_type_of_more_than_38_digits(engine: str, tmp_path: Path) -> None:
    kind, whole = pa.decimal256(40, 2), "9" * 25
    left = side([Decimal(f"{whole}.10"), Decimal(f"{whole}.10")], kind)
    right = side([Decimal(f"{whole}.12"), Decimal(f"{whole}.13")], kind)
    compare = [{"left": "v", "right": "v"}]
    done = execute(
        tmp_path / "run", document(rules=rule(**NEAR), compare=compare), left, right, engine=engine
    )
    [row] = rows(done, "matched")
    assert (row["left_id"], row["diff_v"]) == ("k0", Decimal("0.02"))


def test_many_decimals_are_not_rounded(engine: str, tmp_path: Path) -> None:
    kind = pa.decimal128(30, 20)
    left, right = (side([Decimal(f"1.{end:020d}")], kind) for end in (1, 2))
    done = execute(tmp_path / "run", document(rules=rule(op="eq")), left, right, engine=engine)
    assert rows(done, "matched") == []


def test_a_float_is_read_to_six_decimals_beside_a_type_of_more(engine: str, tmp_path: Path) -> None:
    """100.06 is no double: its binary digits go on."""
    right = side([Decimal("100.06")], pa.decimal128(28, 20))
    done = execute(
        tmp_path / "run", document(rules=rule(op="eq")), side([100.06]), right, engine=engine
    )
    assert [row["left_id"] for row in rows(done, "matched")] == ["k0"]


def test_a_share_of_a_large_amount_is_computed(engine: str, tmp_path: Path) -> None:
    kind, amount = pa.decimal128(17, 2), Decimal("999999999999802.00")
    share = rule(op="tolerance", percent=2)
    done = execute(
        tmp_path / "run",
        document(rules=share),
        side([amount], kind),
        side([amount], kind),
        engine=engine,
    )
    assert len(rows(done, "matched")) == 1


def test_totals_have_all_their_digits(engine: str, tmp_path: Path) -> None:
    """Python rounds sums of decimals to 28 digits unless it is told otherwise."""
    amounts = [Decimal("9" * 28), Decimal("9" * 28), Decimal(1)]
    table = side(amounts, pa.decimal128(28, 0))
    done = execute(
        tmp_path / "run",
        document(rules=rule(op="tolerance", absolute=0)),
        table,
        table,
        engine=engine,
    )
    totals = done.evidence.sides["left"].amounts
    assert totals["total"] == totals["matched"] == {"": str(2 * (10**28 - 1) + 1)}
    limits = {"max_unmatched_amount": str(2 * (10**28 - 1))}
    recipe = document(rules=rule(op="tolerance", absolute=0), thresholds=limits)
    nothing = side([None] * 3, pa.decimal128(28, 0))
    other = execute(tmp_path / "other", recipe, table, nothing, engine=engine)
    with pytest.raises(ThresholdPassed, match="of the left side is unmatched"):
        check_thresholds(validation.read(recipe), other.evidence)


@pytest.mark.parametrize("pattern", ["1:N", "M:N"])
def test_a_sum_may_have_more_digits_than_an_amount(
    engine: str,
    tmp_path: Path,
    pattern: str,
) -> None:
    kind, part = pa.decimal128(28, 0), Decimal("9" * 28)
    total = {"left": "v", "op": "sum_within", "right": "v", "absolute": 0}
    rules = [{"name": "sum", "pattern": pattern, "conditions": [KEY, total]}]
    left = side([part], kind)
    right = pa.table({"id": ["a", "b"], "ref": ["R0"] * 2, "v": pa.array([part, part], kind)})
    done = execute(tmp_path / "run", document(rules=rules), left, right, engine=engine)
    assert [row["nearest_difference"] for row in rows(done, "unmatched_left")] == [part]
    share = [{"name": "sum", "pattern": pattern, "conditions": [KEY, {**total, "percent": 1}]}]
    with pytest.raises(RuleFailed, match="Rule 'sum' cannot be computed") as caught:
        execute(tmp_path / "share", document(rules=share), left, right, engine=engine)
    assert "28 with a percentage" in (caught.value.hint or "")


def test_a_bound_that_amounts_of_so_many_decimals_cannot_have_is_a_fault_of_the_recipe(
    tmp_path: Path,
) -> None:
    kind = pa.decimal128(28, 28)
    table = side([Decimal("0.1")], kind)
    with pytest.raises(RecipeInvalid, match="1 has more than 28 digits"):
        execute(tmp_path / "run", document(rules=rule(op="tolerance", absolute=1)), table, table)


# days


MOMENT = datetime(2024, 1, 31, 23, 30, tzinfo=UTC)
"""Half past eleven in the evening of 31 January in UTC, half past midnight of 1 February in
Vienna."""
INSTANTS: dict[str, tuple[Any, pa.DataType | None]] = {
    "UTC": (MOMENT, pa.timestamp("us", "UTC")),
    "another zone": (MOMENT, pa.timestamp("ms", "Asia/Tokyo")),
    "nanoseconds": (MOMENT, pa.timestamp("ns", "UTC")),
    "text in UTC": ("2024-01-31T23:30:00Z", None),
    "text with an offset": ("2024-01-31 18:30:00-05:00", None),
    "text with a short offset": ("2024-02-01T05:00+0530", None),
    "text with a fraction": (" 2024-02-01T00:30:00.000000+01", None),
}


@pytest.mark.parametrize("written", INSTANTS)
@pytest.mark.parametrize(
    ("zone", "day"), [(None, 31), ("UTC", 31), ("Europe/Vienna", 1), ("America/New_York", 31)]
)
def test_an_instant_falls_on_one_day_however_it_is_written(
    engine: str, tmp_path: Path, written: str, zone: str | None, day: int
) -> None:
    value, kind = INSTANTS[written]
    right = side([date(2024, 1, 31) if day == 31 else date(2024, 2, 1)])
    more = {} if zone is None else {"time_zone": zone}
    for number, condition in enumerate(
        (WINDOW, {"op": "eq"}, {"op": "normalized", "steps": ["month"]})
    ):
        recipe = document(rules=rule(**condition), **more)
        done = execute(tmp_path / str(number), recipe, side([value], kind), right, engine=engine)
        assert len(rows(done, "matched")) == 1, condition


@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna"])
def test_free_sql_counts_days_in_the_same_zone(engine: str, tmp_path: Path, zone: str) -> None:
    sql = (
        "SELECT l.id AS left_id, r.id AS right_id FROM left_src l, right_src r"
        " WHERE date_match(l.v, r.v, 0)"
    )
    left = side([MOMENT], pa.timestamp("us", "UTC"))
    right = side(["2024-01-31T23:30:00Z", "2024-01-31", "2024-02-01"])
    done = execute(
        tmp_path / "run", document(match_sql=sql, time_zone=zone), left, right, engine=engine
    )
    same_day = "k1" if zone == "UTC" else "k2"
    assert sorted(row["right_id"] for row in rows(done, "matched")) == sorted(["k0", same_day])


def test_a_reading_of_a_clock_falls_on_the_day_that_it_shows(engine: str, tmp_path: Path) -> None:
    left = side([MOMENT.replace(tzinfo=None)], pa.timestamp("us"))
    right = side(["2024-01-31T23:30:00"])
    recipe = document(rules=rule(**WINDOW), time_zone="Europe/Vienna")
    assert len(rows(execute(tmp_path / "run", recipe, left, right, engine=engine), "matched")) == 1


def test_moments_are_equal_to_the_nanosecond(engine: str, tmp_path: Path) -> None:
    ticks = 1_706_743_800_000_000
    left = side([ticks * 1000 + 1, ticks * 1000], pa.int64()).set_column(
        2, "v", pa.array([ticks * 1000 + 1, ticks * 1000], pa.timestamp("ns", "UTC"))
    )
    right = side([0, 0], pa.int64()).set_column(
        2, "v", pa.array([ticks, ticks], pa.timestamp("us", "UTC"))
    )
    done = execute(tmp_path / "run", document(rules=rule(op="eq")), left, right, engine=engine)
    assert [row["left_id"] for row in rows(done, "matched")] == ["k1"]


def test_an_unknown_zone_is_a_fault_of_the_recipe() -> None:
    with pytest.raises(InvalidInput, match="time_zone: This is not a time zone"):
        validation.read(document(rules=rule(op="eq"), time_zone="Europe/Atlantis"))
    assert validation.read(document(rules=rule(op="eq"))).digest == (
        validation.read(document(rules=rule(op="eq"), time_zone="UTC")).digest
    )


# thresholds


@pytest.mark.parametrize("currency", [False, True])
def test_open_amounts_of_both_signs_do_not_cancel_under_a_threshold(
    engine: str, tmp_path: Path, currency: bool
) -> None:
    amounts = ["1000000.00", "-1000000.00", None]
    left = side(amounts).append_column("currency", pa.array(["EUR", "EUR", "USD"]))
    right = side([]).cast(side(["0"]).schema).append_column("currency", pa.array([], pa.string()))
    output: dict[str, Any] = {"amount": {"left": "v", "right": "v"}}
    output |= {"currency": {"left": "currency", "right": "currency"}} if currency else {}
    parts: dict[str, Any] = {"rules": [{"name": "rule", "conditions": [KEY]}], "output": output}
    done = execute(tmp_path / "run", document(**parts), left, right, engine=engine)
    amounts_of = done.evidence.sides["left"].amounts
    by = "EUR" if currency else ""
    assert Decimal(amounts_of["unmatched"][by]) == 0
    assert Decimal(amounts_of["unmatched_absolute"][by]) == 2_000_000

    def held(most: str) -> None:
        recipe = document(**parts, thresholds={"max_unmatched_amount": most})
        check_thresholds(validation.read(recipe), done.evidence)

    held("2000000")
    with pytest.raises(ThresholdPassed, match="of the left side is unmatched"):
        held("1999999.99")
