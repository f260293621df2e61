"""Rewrites branching patterns for which Ladybug would lose rows.

Ladybug plans `(a)-[:R]->(b), (a)-[:S]->(c), (b)-[:T]->(d)` as three extensions, one after the
other. The last of them flattens the vector of `b`. Where the extension below it has more than one
vector of nodes `c` for the same `b` (more than 2,048 neighbors, both directions, several types),
only the last `b` continues with the rest, and rows are lost without an error.

So the plan of a query that could branch is checked before the query runs. Where it extends from a
node that was not matched last, the query is rewritten to an equivalent one: with a condition on
nodes between relationships (`id(b) IS NOT NULL`, which makes the engine scan and join them), or in
parts of two relationships with `WITH *` between them. A query that loses rows in every form is
refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphdb.cypher.patterns import Patterns, with_inserted
from penstock.graphdb.errors import CypherError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_OPERATOR = re.compile(r"([A-Z_]+)\[\d+\]")
_DIRECTION = re.compile(r"Direction: \((.*)\)<?-\[.*\]->?\((.*)\)")
_THROUGH = frozenset({"FILTER", "PROJECTION", "SEMI_MASKER"})
"""Operators that pass their input through, vector by vector."""


@dataclass(frozen=True, slots=True)
class _Operator:
    name: str
    source: str | None = None
    target: str | None = None


def without_lost_rows(text: str, explain: Callable[[str], str]) -> str:
    """The statement, or an equivalent one, whose plan loses no rows. `explain` returns the plan of
    a statement."""
    patterns = Patterns(text)
    if not patterns.could_branch:
        return text
    for candidate in _candidates(text, patterns):
        if not extended_late(explain(candidate)):
            return candidate
    raise CypherError(
        "The engine would lose rows of this pattern, which has several relationships at one node.",
        hint="Match it in parts with a WITH between: MATCH (a)-[]->(b) WITH * MATCH (b)-[]->(c).",
    )


def _candidates(text: str, patterns: Patterns) -> Iterator[str]:
    yield text
    if not patterns.returns_all:
        text = with_inserted(text, patterns.missing_names())
        patterns = Patterns(text)
        yield text
    yield with_inserted(text, patterns.conditions())
    yield with_inserted(text, patterns.parts())


def extended_late(plan: str) -> set[str]:
    """The nodes that a plan extends from although others were matched after them."""
    return {node for column in _columns(plan) for node in _late(column)}


def _late(operators: Sequence[_Operator]) -> Iterator[str]:
    """The late nodes of one operator pipeline. Nodes without a name count as one node, matched
    where the first of them was."""
    matched_at: dict[str, int] = {}
    for place, operator in enumerate(operators):
        if operator.source is None or operator.target is None:
            continue
        if operator.source in matched_at:
            between = operators[matched_at.pop(operator.source) + 1 : place]
            if any(other.name not in _THROUGH for other in between):
                yield operator.source
        if operator.target or operator.target not in matched_at:
            matched_at[operator.target] = place


def _columns(plan: str) -> list[list[_Operator]]:
    """The operators of each column of the drawn plan tree, the lowest first. An operator's first
    input is below it, its other inputs are in separate columns."""
    lines = plan.splitlines()
    width = len(lines[0]) + 1 if lines else 1
    columns: dict[int, list[_Operator]] = {}
    for line in lines:
        start = 0
        for cell in line.split("│"):
            column, start = (start + len(cell) // 2) // width, start + len(cell) + 1
            content = cell.strip()
            if (name := _OPERATOR.fullmatch(content)) is not None:
                columns.setdefault(column, []).append(_Operator(name[1]))
            elif (ends := _DIRECTION.fullmatch(content)) is not None and columns.get(column):
                above = columns[column][-1]
                columns[column][-1] = _Operator(above.name, ends[1], ends[2])
    return [column[::-1] for column in columns.values()]
