"""`python -m tests.graphdb.algorithms.reference` writes the tables of docs/reference/algorithms.md
anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.graphdb.algorithms.allowed import ALLOWED, CATEGORY
from penstock.graphdb.algorithms.catalog import CATALOGUE, CATEGORIES
from penstock.graphdb.algorithms.equivalents import NATIVE

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.algorithm import Algorithm
    from penstock.graphdb.algorithms.parameters import Parameter

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "algorithms.md"
BEGIN, END = "<!-- from the catalogue -->", "<!-- end of the catalogue -->"


def tables() -> str:
    parts = [line for category in CATEGORIES for line in _category(category)]
    return "\n".join([*parts, *_networkx()])


def _category(category: str) -> list[str]:
    lines = [f"### {category.capitalize()}", ""]
    for each in CATALOGUE.values():
        if each.category == category:
            lines += _algorithm(each)
    return lines


def _algorithm(each: Algorithm) -> list[str]:
    direction = {"either": f"directed (default {str(each.directed).lower()})"}.get(
        each.direction, each.direction
    )
    weights = {
        "ignored": "no weights",
        "optional": "weights of at least 0",
        "positive": "weights of more than 0",
    }
    result = (
        "one value per node" if each.suffixes == ("",) else f"per node: {', '.join(each.suffixes)}"
    )
    facts = [direction, weights[each.weights], result if each.per_node else "result in the answer"]
    lines = [
        f"#### `{each.name}`",
        "",
        f"{each.description} *{'; '.join(facts).capitalize()}.*",
        "",
    ]
    if each.parameters:
        lines += ["| parameter | type | default | range | |", "|---|---|---|---|---|"]
        lines += [_row(p) for p in each.parameters]
        lines.append("")
    return lines


def _row(p: Parameter) -> str:
    default = (
        "required" if p.required else "–" if p.default is None else f"`{str(p.default).lower()}`"
    )
    return f"| `{p.name}` | {p.type} | {default} | {p.range() or '–'} | {p.description} |"


def _networkx() -> list[str]:
    lines = [
        "### NetworkX",
        "",
        "A name in bold is computed by a library above, with the same result.",
        "",
    ]
    for category in CATEGORIES:
        names = [
            f"**{name}**" if name in NATIVE else name
            for name in sorted(ALLOWED)
            if CATEGORY[name] == category
        ]
        if names:
            lines += [f"{category.capitalize()}: {', '.join(names)}.", ""]
    return lines


def rewritten(page: str) -> str:
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{tables()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
