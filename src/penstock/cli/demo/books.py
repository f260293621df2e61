"""Act three of the demo: invoices and payments that should agree, and the breaks that say where they do not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.table import Table

from penstock.cli.output import out

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.client import Client

_PARTS = ("total", "matched", "unmatched")
RECIPE: dict[str, Any] = {
    "name": "October",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What a run found, side by side; amounts are decimals as text."""

    rows: dict[str, int]
    matched: dict[str, int]
    rules: dict[str, int]
    breaks: dict[str, dict[str, int]]
    amounts: dict[str, dict[str, str]]
    seconds: float
    report: str

    @property
    def good(self) -> bool:
        """Whether both sides tie: what was read is what was matched plus what was not, in rows and in money."""
        return all(
            self.rows[side] == self.matched[side] + sum(self.breaks[side].values())
            and Decimal(money["read"]) == Decimal(money["matched"]) + Decimal(money["unmatched"])
            for side, money in self.amounts.items()
        )


def agree(ps: Client, report: Path, say: Callable[[str], None], *, quiet: bool) -> Books:
    run = ps.reconcile.run(RECIPE).wait(progress=not quiet)
    run.report(report)
    books = _books(run.data, report)
    say(f"{books.rows['left']:,} invoices against {books.rows['right']:,} payments in {books.seconds:.1f} s")
    return books


def _books(run: dict[str, Any], report: Path) -> Books:
    totals = run["totals"]
    return Books(
        rows={side: found["rows"] for side, found in totals.items()},
        matched={side: found["matched"] for side, found in totals.items()},
        rules={rule["name"]: rule["matches"] for rule in run["rules"]},
        breaks={side: found["reasons"] for side, found in totals.items()},
        amounts={side: _money(found["amounts"]) for side, found in totals.items()},
        seconds=sum(run["timings"].values()),
        report=str(report),
    )


def _money(amounts: dict[str, dict[str, str]]) -> dict[str, str]:
    read, matched, unmatched = (str(sum(map(Decimal, amounts[name].values()))) for name in _PARTS)
    return {"read": read, "matched": matched, "unmatched": unmatched}


def show(books: Books) -> None:
    table = Table(title="Invoices against payments", box=None, header_style="bold", title_justify="left")
    for heading in ("", "invoices", "payments"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("read", *(f"{books.rows[side]:,}" for side in ("left", "right")))
    for name, matches in books.rules.items():
        table.add_row(f"[green]✓[/green] {name}", f"{matches:,}", "")
    for reason in sorted({*books.breaks["left"], *books.breaks["right"]}):
        counts = (books.breaks[side].get(reason, 0) for side in ("left", "right"))
        table.add_row(f"[red]✗[/red] {reason.replace('_', ' ')}", *(f"{count:,}" for count in counts))
    for part in ("read", "matched", "unmatched"):
        table.add_row(f"EUR {part}", *(f"{Decimal(books.amounts[side][part]):,.2f}" for side in ("left", "right")))
    out.print(table)
    mark = "[green]✓[/green] It ties to the cent" if books.good else "[red]✗[/red] It does not tie"
    out.print(f"\n{mark}: matched plus unmatched is what was read, on both sides. Matched in {books.seconds:.1f} s.")


def document(books: Books) -> dict[str, Any]:
    return asdict(books) | {"ok": books.good}
