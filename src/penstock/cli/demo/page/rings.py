"""The page's first section: the rings, drawn and listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.demo.page import picture
from penstock.cli.demo.page.markup import cell, number, section, table

if TYPE_CHECKING:
    from penstock.cli.demo.rings import Rings


def rings_section(rings: Rings) -> str:
    rows = [
        (
            number(ring.accounts),
            number(f"{ring.passed:,.2f}"),
            cell(ring.device or "–"),
            cell(", ".join(ring.people)),
        )
        for ring in rings.found
    ]
    return section(
        "rings",
        "Accounts that pass money in a circle",
        f"{rings.nodes:,} people, accounts and devices and {rings.edges:,} edges went from SQL "
        f"tables into a graph server of their own in {rings.seconds_to_graph:.1f} s. One "
        "algorithm (strongly connected components over large transfers) and one Cypher question "
        "found these.",
        f'<div class="graph">{picture.drawn(rings)}</div>',
        table(("accounts", "passed around, CHF", "what they share", "owners"), rows, right=(0, 1)),
    )
