"""Act three of the demo: invoices and payments that should agree, and the breaks that say where
they do not."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.cli.output import out
from penstock.cli.tabular import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.client import Client
    from penstock.client.totals import Money, RuleTotals, SideTotals

RECIPE_ID = "invoices-vs-payments"
RECIPE: dict[str, object] = {
    "recipe_id": RECIPE_ID,
    "name": "October: invoices against payments",
    "sources": {
        "left": {"source": "demo", "table": "invoices", "primary_key": ["invoice_no"]},
        "right": {"source": "demo", "table": "payments", "primary_key": ["payment_no"]},
    },
    "compare": [{"left": "amount", "right": "amount"}],
    "rules": [
        {
            "name": "to the cent",
            "conditions": [
                {"left": "invoice_no", "op": "eq", "right": "invoice_no"},
                {"left": "amount", "op": "eq", "right": "amount"},
                {"left": "issued", "op": "date_window", "right": "paid", "days": 30},
            ],
        },
        {
            "name": "bank charges taken off",
            "conditions": [
                {"left": "invoice_no", "op": "eq", "right": "invoice_no"},
                {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.50"},
                {"left": "issued", "op": "date_window", "right": "paid", "days": 30},
            ],
        },
        {
            "name": "paid in parts",
            "pattern": "1:N",
            "conditions": [
                {"left": "invoice_no", "op": "eq", "right": "invoice_no"},
                {"left": "amount", "op": "sum_within", "right": "amount", "absolute": "0.00"},
            ],
        },
    ],
}


SIDES = {"left": "unmatched_left", "right": "unmatched_right"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A record without a partner, and the nearest one that it might have had."""

    record: str
    amount: Decimal
    reason: str
    nearest: str
    difference: str
    days: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str
    matches: int
    left: Decimal
    right: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side read, matched and left open, in rows and in money."""

    rows: int
    matched: int
    read_amount: Decimal
    matched_amount: Decimal
    breaks: tuple[Break, ...]

    @property
    def reasons(self) -> dict[str, tuple[int, Decimal]]:
        """Rows and money of each reason, the dearest first."""
        totals: dict[str, tuple[int, Decimal]] = {}
        for row in self.breaks:
            rows, amount = totals.get(row.reason, (0, Decimal()))
            totals[row.reason] = (rows + 1, amount + row.amount)
        return dict(sorted(totals.items(), key=lambda item: -item[1][1]))

    @property
    def open_amount(self) -> Decimal:
        return sum((row.amount for row in self.breaks), Decimal())

    @property
    def ties(self) -> bool:
        """What was read is what was matched plus every break of the evidence, to the row and to the
        cent."""
        return self.rows == self.matched + len(self.breaks) and (
            self.read_amount == self.matched_amount + self.open_amount
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    run_id: int
    sides: dict[str, Side]
    rules: tuple[Rule, ...]
    evidence_sha256: str
    seconds: float

    @property
    def good(self) -> bool:
        return all(side.ties for side in self.sides.values())


def prepare(ps: Client) -> str:
    """The recipe, saved where it is not yet; returns its id."""
    if all(recipe["recipe_id"] != RECIPE_ID for recipe in ps.reconcile.recipes()):
        ps.reconcile.save(RECIPE)
    return RECIPE_ID


def agree(ps: Client, recipe_id: str, say: Callable[[str], None], *, quiet: bool) -> Books:
    run = ps.reconcile.run(recipe_id).wait(progress=not quiet)
    totals = run.totals
    books = Books(
        run_id=run.id,
        sides={side: _side(totals[side], run.evidence(breaks)) for side, breaks in SIDES.items()},
        rules=tuple(map(_rule, run.rules)),
        evidence_sha256=run.info.evidence_sha256 or "",
        seconds=sum((run.info.timings or {}).values()),
    )
    counts = [f"{side.rows:,}" for side in books.sides.values()]
    say(f"{counts[0]} invoices against {counts[1]} payments in {books.seconds:.1f} s")
    return books


def _side(totals: SideTotals, evidence: bytes) -> Side:
    return Side(
        rows=totals["rows"],
        matched=totals["matched"],
        read_amount=_money(totals["amounts"]["total"]),
        matched_amount=_money(totals["amounts"]["matched"]),
        breaks=tuple(_break(row) for row in csv.DictReader(io.StringIO(evidence.decode()))),
    )


def _break(row: dict[str, str]) -> Break:
    record, nearest = (
        ("payment_no", "nearest_invoice_no")
        if "payment_no" in row
        else ("invoice_no", "nearest_payment_no")
    )
    return Break(
        record=row[record],
        amount=Decimal(row["amount"]),
        reason=row["reason"],
        nearest=row[nearest],
        difference=row["nearest_difference"],
        days=row["nearest_days"],
    )


def _rule(rule: RuleTotals) -> Rule:
    sums = {side: _money(amounts) for side, amounts in rule["amounts"].items()}
    return Rule(name=rule["name"], matches=rule["matches"], left=sums["left"], right=sums["right"])


def _money(by_currency: Money) -> Decimal:
    return sum(map(Decimal, by_currency.values()), Decimal())


def show(books: Books) -> None:
    figures = ("invoices", "EUR", "payments", "EUR")
    drawn = table("", *figures, right=figures, title="Invoices against payments")
    sides = tuple(books.sides.values())
    for rule in books.rules:
        drawn.add_row(
            f"[green]✓[/green] {rule.name}",
            f"{rule.matches:,}",
            f"{rule.left:,.2f}",
            "",
            f"{rule.right:,.2f}",
        )
    for reason in dict.fromkeys(reason for side in sides for reason in side.reasons):
        cells = (side.reasons.get(reason, (0, Decimal())) for side in sides)
        texts = (text for rows, amount in cells for text in (f"{rows:,}", f"{amount:,.2f}"))
        drawn.add_row(f"[red]✗[/red] {reason.replace('_', ' ')}", *texts)
    drawn.add_row(
        "[bold]read[/bold]",
        *(text for side in sides for text in (f"{side.rows:,}", f"{side.read_amount:,.2f}")),
    )
    out.print(drawn)
    mark = "[green]✓[/green] It ties to the cent" if books.good else "[red]✗[/red] It does not tie"
    out.print(
        f"\n{mark}: matched plus breaks is what was read, on both sides. Matched in "
        f"{books.seconds:.1f} s."
    )


def document(books: Books) -> dict[str, object]:
    return {
        "run_id": books.run_id,
        "rules": {rule.name: rule.matches for rule in books.rules},
        "sides": {
            name: {
                "rows": side.rows,
                "matched": side.matched,
                "breaks": {reason: rows for reason, (rows, _) in side.reasons.items()},
                "amounts": {
                    "read": side.read_amount,
                    "matched": side.matched_amount,
                    "open": side.open_amount,
                },
            }
            for name, side in books.sides.items()
        },
        "seconds": books.seconds,
        "ok": books.good,
    }
