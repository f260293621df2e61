from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa

from penstock.reconcile import validation
from penstock.reconcile.column import columns
from penstock.reconcile.draft import whole
from penstock.reconcile.suggestion import suggest
from tests.reconcile.stand import recipe

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
        "paid_amount": pa.array([Decimal(n) + Decimal("0.05") for n in range(COUNT)], pa.decimal128(12, 2)),
        "paid_date": [date(2024, 1, 3) + timedelta(days=n) for n in range(COUNT)],
    }
)


def test_the_key_the_amounts_and_the_dates_are_found() -> None:
    found = suggest(INVOICES, PAYMENTS)
    first, parts = found.rules
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
    assert len(found.why) == 3
    document = recipe(rules=found.rules)
    read = validation.read(document)
    assert not [
        fault
        for fault in validation.against(
            whole(read), {"left": columns(INVOICES.schema), "right": columns(PAYMENTS.schema)}
        )
        if fault.severity == "error" and "primary_key" not in fault.path
    ]
    assert suggest(INVOICES, PAYMENTS) == found


def test_confirmed_pairs_say_how_far_things_are_apart() -> None:
    pairs = list(zip(INVOICES.to_pylist()[:5], PAYMENTS.to_pylist()[1:6], strict=True))
    conditions = suggest(INVOICES, PAYMENTS, pairs).rules[0]["conditions"]
    assert (conditions[1]["absolute"], conditions[2]["days"]) == ("1.050000", 3)


def test_strangers_suggest_nothing() -> None:
    found = suggest(INVOICES, pa.table({"x": ["a", "b"]}))
    assert (found.rules, "share" in found.why[0]) == ([], True)
