from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.kit.errors import InvalidInput
from penstock.reconcile.matching.column import columns
from penstock.reconcile.recipes import suggestion, validation
from penstock.reconcile.recipes.draft import whole
from penstock.reconcile.recipes.suggestion import suggest
from tests.reconcile.match_run import recipe

COUNT = 50
INVOICES = pa.table(
    {
        "id": list(range(COUNT)),
        "invoice_no": [f"INV-{n:04d}" for n in range(COUNT)],
        "amount": pa.array([Decimal(n) for n in range(COUNT)], pa.decimal128(12, 2)),
        "due_date": [date(2024, 1, 1) + timedelta(days=n) for n in range(COUNT)],
    }
)
PAYMENTS = pa.table(
    {
        "payment_id": [f"P{n}" for n in range(COUNT)],
        "reference": [f" inv {n:04d}" for n in range(COUNT)],
        "paid_amount": pa.array(
            [Decimal(n) + Decimal("0.05") for n in range(COUNT)], pa.decimal128(12, 2)
        ),
        "paid_date": [date(2024, 1, 3) + timedelta(days=n) for n in range(COUNT)],
    }
)


def test_the_key_the_amounts_and_the_dates_are_found() -> None:
    suggestion = suggest(INVOICES, PAYMENTS)
    first, parts = suggestion.rules
    assert first["conditions"] == [
        {
            "left": "invoice_no",
            "op": "normalized",
            "right": "reference",
            "steps": ["trim", "case", "punctuation", "spaces"],
        },
        {"left": "amount", "op": "tolerance", "right": "paid_amount", "absolute": "0.050000"},
        {"left": "due_date", "op": "date_window", "right": "paid_date", "days": 2},
    ]
    assert parts["pattern"] == "1:N"
    assert len(suggestion.why) == 3
    document = recipe(rules=suggestion.rules)
    read = validation.read(document)
    assert not [
        fault
        for fault in validation.against(
            whole(read), {"left": columns(INVOICES.schema), "right": columns(PAYMENTS.schema)}
        )
        if fault.severity == "error" and "primary_key" not in fault.path
    ]
    assert suggest(INVOICES, PAYMENTS) == suggestion


def test_confirmed_pairs_say_how_far_things_are_apart() -> None:
    pairs = list(zip(INVOICES.to_pylist()[:5], PAYMENTS.to_pylist()[1:6], strict=True))
    conditions = suggest(INVOICES, PAYMENTS, pairs).rules[0]["conditions"]
    assert (conditions[1]["absolute"], conditions[2]["days"]) == ("1.050000", 3)


def test_strangers_suggest_nothing() -> None:
    suggestion = suggest(INVOICES, pa.table({"x": ["a", "b"]}))
    assert (suggestion.rules, "share" in suggestion.why[0]) == ([], True)


def test_files_of_text_and_moments_suggest_as_much_as_tables_do() -> None:
    rules = suggest(INVOICES, PAYMENTS).rules
    text = [
        pa.table({name: side[name].cast(pa.string()) for name in side.column_names})
        for side in (INVOICES, PAYMENTS)
    ]
    assert suggest(*text).rules == rules
    moments = PAYMENTS["paid_date"].cast(pa.timestamp("us", "UTC"))
    assert suggest(INVOICES, PAYMENTS.set_column(3, "paid_date", moments)).rules == rules


def test_a_currency_that_both_name_is_compared_with_the_amounts() -> None:
    sides = [
        side.append_column("Currency", pa.array(["EUR", "JPY"] * (COUNT // 2)))
        for side in (INVOICES, PAYMENTS)
    ]
    suggestion = suggest(*sides)
    assert suggestion.rules[0]["conditions"][1] == {
        "left": "Currency",
        "op": "eq",
        "right": "Currency",
    }
    assert suggestion.why[1] == "Currency and Currency are the same in 100% of the pairs."
    turned = sides[1].set_column(4, "Currency", pa.array(["JPY", "EUR"] * (COUNT // 2)))
    assert not any(
        c["left"] == "Currency" for c in suggest(sides[0], turned).rules[0]["conditions"]
    )


def test_values_that_are_no_amounts_do_not_stop_a_suggestion() -> None:
    odd = pa.table(
        {
            "invoice_no": INVOICES["invoice_no"],
            "amount": pa.array([float("nan"), 1.5] * (COUNT // 2)),
        }
    )
    suggestion = suggest(odd, odd)
    assert suggestion.rules[0]["conditions"][1]["absolute"] == "0.000000"
    pairs = [({"invoice_no": "x", "amount": "n/a"}, {"invoice_no": "x", "amount": "1.5"})]
    text = pa.table({"invoice_no": ["x", "y"], "amount": ["1.5", "2.5"]})
    assert len(suggest(text, text, pairs).rules[0]["conditions"]) == 1


def test_rules_are_found_among_as_many_columns_as_allowed_and_not_one_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every column is held against every other: of thousands that takes hours of a thread that
    nothing stops."""
    monkeypatch.setattr(suggestion, "MAX_COLUMNS", 3)
    table = pa.table({name: ["1", "2"] for name in "abc"})
    assert suggest(table, table).rules
    wider = table.append_column("d", pa.array(["1", "2"]))
    for sides in ((wider, table), (table, wider)):
        with pytest.raises(InvalidInput, match="4 columns; rules are found among at most 3"):
            suggest(*sides)


def test_finding_rules_ends_at_its_deadline() -> None:
    table = pa.table({f"c{number}": ["1", "2"] for number in range(20)})
    asked = 0

    def ticks() -> float:
        nonlocal asked
        asked += 1
        return float(asked)

    with pytest.raises(InvalidInput, match="more than 50 s"):
        suggest(table, table, seconds=50, ticks=ticks)
    assert asked == 51
    row = dict.fromkeys(table.column_names, "1")
    with pytest.raises(InvalidInput, match="more than 50 s"):
        suggest(table, table, [(row, row)], seconds=50, ticks=ticks)


def test_no_more_rows_than_become_few_values_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestion, "MAX_CELLS", 4)
    left = pa.table({"a": ["1", "2", "x"], "b": ["x", "x", "x"]})
    right = pa.table({"a": ["1", "2", "y"], "b": ["y", "y", "y"]})
    assert suggest(left, right).why[0] == "a and a share 100% of their values."
