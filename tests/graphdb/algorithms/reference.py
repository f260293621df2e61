"""Writes the tables of docs/reference/algorithms.md: `python -m
tests.graphdb.algorithms.reference`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.graphdb.algorithms.allowed import ALLOWED, CATEGORY
from penstock.graphdb.algorithms.catalog import CATALOG, CATEGORIES
from penstock.graphdb.algorithms.equivalents import NATIVE

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.algorithm import Algorithm
    from penstock.graphdb.algorithms.parameters import Parameter

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "algorithms.md"
BEGIN, END = "<!-- from the catalog -->", "<!-- end of the catalog -->"


def tables() -> str:
    parts = [line for category in CATEGORIES for line in _category(category)]
    return "\n".join([*parts, *_networkx()])


def _category(category: str) -> list[str]:
    lines = [f"### {category.capitalize()}", ""]
    for algorithm in CATALOG.values():
        if algorithm.category == category:
            lines += _algorithm(algorithm)
    return lines


def _algorithm(algorithm: Algorithm) -> list[str]:
    direction = {"either": f"directed (default {str(algorithm.directed).lower()})"}.get(
        algorithm.direction, algorithm.direction
    )
    weights = {
        "ignored": "no weights",
        "optional": "weights of at least 0",
        "positive": "weights of more than 0",
    }
    result = (
        "one value per node"
        if algorithm.suffixes == ("",)
        else f"per node: {', '.join(algorithm.suffixes)}"
    )
    facts = [
        direction,
        weights[algorithm.weights],
        result if algorithm.per_node else "result in the answer",
    ]
    lines = [
        f"#### `{algorithm.name}`",
        "",
        f"{algorithm.description} *{'; '.join(facts).capitalize()}.*",
        "",
    ]
    if algorithm.parameters:
        lines += ["| parameter | type | default | range | |", "|---|---|---|---|---|"]
        lines += [_row(p) for p in algorithm.parameters]
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
