"""The page's second section: what matched, what did not and why, and that it ties."""

from __future__ import annotations

from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING

from penstock.cli.demo.page import charts
from penstock.cli.demo.page.charts import Bar
from penstock.cli.demo.page.markup import Row, cell, number, section, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.cli.demo.books import Books, Break

REASONS = {
    "no_key": "never paid",
    "amount_out_of_tolerance": "another amount",
    "date_out_of_window": "paid too late",
    "ambiguous": "paid twice",
}
"""What the planted breaks are, in a bookkeeper's words."""
SHADES = {
    "no_key": "bad",
    "amount_out_of_tolerance": "amber",
    "date_out_of_window": "violet",
    "ambiguous": "accent",
}
SAMPLES = 3
NAMES = {"left": "Invoices", "right": "Payments"}


def books_section(books: Books) -> str:
    stacks = (_side_bar(books, side) for side in books.sides)
    keys = (
        f'<span class="{SHADES.get(r, "ghost")}"><i class="key"></i>{escape(_reason(r))}</span>'
        for r in _reasons(books)
    )
    return section(
        "books",
        "Invoices against payments, to the cent",
        "A recipe of three rules matched one month. What is left over has a reason each; matched "
        "plus breaks is what was read, in rows and in money, or the run would have failed.",
        *stacks,
        f'<p class="keys"><span class="good"><i class="key"></i>matched</span>{"".join(keys)}</p>',
        "<h3>Breaks by reason</h3>",
        charts.bars(list(_reason_bars(books))),
        "<h3>It ties</h3>",
        _ties(books),
        "<h3>Some of the breaks</h3>",
        _samples(books),
        f'<p class="soft">Evidence <code>{escape(books.evidence_sha256)}</code>: the same input '
        "and recipe give the"
        f" same bytes. All of it: <code>penstock evidence {books.run_id} unmatched_left --to "
        "breaks.csv</code></p>",
    )


def _side_bar(books: Books, name: str) -> str:
    side = books.sides[name]
    matched = Bar(
        label="matched",
        value=float(side.matched_amount),
        shown=f"EUR {side.matched_amount:,.2f}",
        kind="good",
    )
    rest = [
        Bar(
            label=_reason(reason),
            value=float(amount),
            shown=f"EUR {amount:,.2f}",
            kind=SHADES.get(reason, "ghost"),
        )
        for reason, (_, amount) in side.reasons.items()
    ]
    return charts.stack(f"{NAMES[name]}, EUR {side.read_amount:,.2f}", [matched, *rest])


def _reason_bars(books: Books) -> Iterable[Bar]:
    for name, side in books.sides.items():
        for reason, (rows, amount) in side.reasons.items():
            yield Bar(
                label=f"{NAMES[name]}: {_reason(reason)}",
                value=float(amount),
                shown=f"{rows:,} · EUR {amount:,.2f}",
                kind=SHADES.get(reason, "ghost"),
            )


def _ties(books: Books) -> str:
    left, right = books.sides["left"], books.sides["right"]
    rows: list[Row] = [
        (
            cell(f"matched: {rule.name}"),
            cell(""),
            number(f"{rule.left:,.2f}"),
            cell(""),
            number(f"{rule.right:,.2f}"),
        )
        for rule in books.rules
    ]
    sides = (left, right)
    rows.append(_figures("matched", *((side.matched, side.matched_amount) for side in sides)))
    rows += [
        _figures(
            f"break: {_reason(reason)}",
            *(side.reasons.get(reason, (0, Decimal())) for side in sides),
        )
        for reason in _reasons(books)
    ]
    rows.append(_figures("breaks", *((len(side.breaks), side.open_amount) for side in sides)))
    rows.append(_figures("read", *((side.rows, side.read_amount) for side in sides)))
    sums = (len(books.rules), len(rows) - 2, len(rows) - 1)
    mark = (
        '<p class="ok">✓ It ties on both sides.</p>'
        if books.good
        else '<p class="no">✗ It does not tie.</p>'
    )
    heads = ("", "invoices", "EUR", "payments", "EUR")
    return table(heads, rows, right=(1, 2, 3, 4), sums=sums) + mark


def _figures(name: str, *sides: tuple[int, Decimal]) -> Row:
    cells = (
        text for rows, amount in sides for text in (number(f"{rows:,}"), number(f"{amount:,.2f}"))
    )
    return (cell(name), *cells)


def _samples(books: Books) -> str:
    rows = [
        (
            cell(row.record),
            number(f"{row.amount:,.2f}"),
            cell(_reason(row.reason)),
            cell(row.nearest or "nobody"),
            number(f"{Decimal(row.difference):+,.2f}" if row.difference else "–"),
            number(f"{row.days} d" if row.days else "–"),
        )
        for side in books.sides.values()
        for row in _few(side.breaks)
    ]
    return table(
        ("record", "EUR", "reason", "nearest", "differs by", "days apart"), rows, right=(1, 4, 5)
    )


def _few(breaks: Sequence[Break]) -> list[Break]:
    """The first ones of each reason."""
    seen: dict[str, list[Break]] = {}
    for row in breaks:
        seen.setdefault(row.reason, []).append(row)
    return [row for group in seen.values() for row in group[:SAMPLES]]


def _reasons(books: Books) -> list[str]:
    return list(dict.fromkeys(reason for side in books.sides.values() for reason in side.reasons))


def _reason(reason: str) -> str:
    return REASONS.get(reason, reason.replace("_", " "))
