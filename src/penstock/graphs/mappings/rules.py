"""The rules that definitions keep, on create and on update alike. All that is broken is told at
once.

Names are compared without regard to case: most sources and graph databases take `Name` and `name`
for the same.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from penstock.graphs.mappings.columns import TYPES, Problem
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.graphs.mappings.definition import (
        Definitions,
        EdgeDefinition,
        NodeDefinition,
        Property,
    )

KEY_TYPES = ("STRING", "INT64", "DATE", "UUID")
MAX_NODES = 500
MAX_EDGES = 500
MAX_PROPERTIES = 100
MAX_SQL = 100_000
MAX_ALL_SQL = 1_000_000
"""Of all queries of a mapping together; each is read by a parser while its author waits."""
MAX_TOLD = 100
_CYPHER = """
    add all and as asc ascending by case constraint contains create delete desc descending detach distinct do drop else
    end ends exists false for in is limit mandatory match merge not null of on optional or order remove require return
    scalar set skip starts then true union unique unwind when where with xor
"""
RESERVED = frozenset(_CYPHER.split())
"""The words that openCypher keeps for itself, in any case of letters."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_NAME_HINT = "Use 1 to 64 letters, digits and _, beginning with a letter."
_TYPE_HINT = "Use 1 to 64 capital letters, digits and _, beginning with a letter, like WORKS_AT."
_SHOWN = 64


def check(definitions: Definitions) -> None:
    """Raises with every problem that there is."""
    if problems := list(broken(definitions)):
        raise refused(problems)


def refused(problems: Sequence[Problem]) -> InvalidInput:
    first, *others = problems
    more = f" ({len(others)} more)" if others else ""
    return InvalidInput(
        f"{first.entity}: {first.problem}{more}",
        hint=first.suggestion,
        problems=[asdict(problem) for problem in problems[:MAX_TOLD]],
        count=len(problems),
    )


def broken(definitions: Definitions) -> Iterator[Problem]:
    yield from _amounts(definitions)
    for node in definitions.nodes:
        yield from _node(node)
    labels = {node.label for node in definitions.nodes}
    for edge in definitions.edges:
        yield from _edge(edge, labels)
    yield from _repeated_labels(definitions)
    yield from _repeated_edges(definitions)


def _amounts(definitions: Definitions) -> Iterator[Problem]:
    if not definitions.nodes:
        yield _problem(
            "Mapping", "node_definitions", "A mapping has at least one node.", "Define a node."
        )
    for name, found, most in (
        ("node_definitions", len(definitions.nodes), MAX_NODES),
        ("edge_definitions", len(definitions.edges), MAX_EDGES),
    ):
        if found > most:
            yield _problem(
                "Mapping",
                name,
                f"There are {found} {name}; at most {most} are taken.",
                "Split the mapping.",
            )
    written = sum(
        len(sql)
        for sql in (*(n.sql for n in definitions.nodes), *(e.sql for e in definitions.edges))
    )
    if written > MAX_ALL_SQL:
        problem = (
            f"All queries together have {written:,} characters; at most {MAX_ALL_SQL:,} are taken."
        )
        yield _problem("Mapping", "sql", problem, "Make views at the source, or split the mapping.")


def _node(node: NodeDefinition) -> Iterator[Problem]:
    entity = _node_name(node)
    yield from _word(entity, "label", node.label, _NAME, _NAME_HINT)
    yield from _sql(entity, node.sql)
    key = node.primary_key
    yield from _word(entity, "primary_key", key.name, _NAME, _NAME_HINT)
    if key.type not in KEY_TYPES:
        problem = f"The primary key {_cut(key.name)!r} cannot be {_cut(key.type)!r}."
        yield _problem(entity, key.name, problem, f"Choose one of {', '.join(KEY_TYPES)}.")
    yield from _properties(entity, node.properties)
    yield from _repeated(entity, [column.name for column in node.columns])


def _edge(edge: EdgeDefinition, labels: set[str]) -> Iterator[Problem]:
    entity = _edge_name(edge)
    yield from _word(entity, "type", edge.type, _TYPE, _TYPE_HINT)
    yield from _sql(entity, edge.sql)
    for field, label in (("from_node", edge.from_node), ("to_node", edge.to_node)):
        if label not in labels:
            known = ", ".join(_cut(each) for each in sorted(labels)[:10]) or "none"
            yield _problem(
                entity, field, f"There is no node {_cut(label)!r}.", f"The labels are: {known}."
            )
    for field, name in (("from_key", edge.from_key), ("to_key", edge.to_key)):
        yield from _word(entity, field, name, _NAME, _NAME_HINT)
    yield from _properties(entity, edge.properties)
    yield from _repeated(
        entity, [edge.from_key, edge.to_key, *(each.name for each in edge.properties)]
    )


def _properties(entity: str, properties: Sequence[Property]) -> Iterator[Problem]:
    if len(properties) > MAX_PROPERTIES:
        problem = f"There are {len(properties)} properties; at most {MAX_PROPERTIES} are taken."
        yield _problem(entity, "properties", problem, "Leave some out.")
    for each in properties:
        yield from _word(entity, each.name, each.name, _NAME, _NAME_HINT)
        if each.type not in TYPES:
            problem = f"Property {_cut(each.name)!r} has the type {_cut(each.type)!r}, which there is not."
            yield _problem(entity, each.name, problem, f"Choose one of {', '.join(TYPES)}.")


def _word(
    entity: str, column: str, word: str, form: re.Pattern[str], hint: str
) -> Iterator[Problem]:
    if not form.fullmatch(word):
        yield _problem(entity, column, f"{_cut(word)!r} is not a valid name.", hint)
    elif word.lower() in RESERVED:
        yield _problem(
            entity,
            column,
            f"{word!r} is a word of Cypher's own.",
            f"Choose another, such as {word}_1.",
        )


def _sql(entity: str, sql: str) -> Iterator[Problem]:
    if not sql.strip():
        yield _problem(entity, "sql", "Its query is empty.", "Write one SELECT statement.")
    elif len(sql) > MAX_SQL:
        problem = f"Its query has {len(sql):,} characters; at most {MAX_SQL:,} are taken."
        yield _problem(entity, "sql", problem, "Make a view of it at the source.")
    elif "\x00" in sql:
        yield _problem(entity, "sql", "Its query holds a NUL character.", "Take it out.")


def _repeated(entity: str, names: Iterable[str]) -> Iterator[Problem]:
    for name, times in Counter(name.lower() for name in names).items():
        if times > 1:
            problem = f"{times} of its keys and properties are called {_cut(name)!r}."
            yield _problem(entity, name, problem, "Give each a name of its own.")


def _repeated_labels(definitions: Definitions) -> Iterator[Problem]:
    for label, times in Counter(node.label.lower() for node in definitions.nodes).items():
        if times > 1:
            problem = f"{times} nodes have the label {_cut(label)!r}."
            yield _problem(
                f"Node {_cut(label)}", "label", problem, "Give each node a label of its own."
            )


def _repeated_edges(definitions: Definitions) -> Iterator[Problem]:
    found = Counter(edge.key for edge in definitions.edges)
    for edge in {edge.key: edge for edge in definitions.edges}.values():
        if found[edge.key] > 1:
            problem = f"It is defined {found[edge.key]} times between the same two labels."
            yield _problem(
                _edge_name(edge),
                "type",
                problem,
                "Join the queries with UNION ALL, or rename one type.",
            )


def _node_name(node: NodeDefinition) -> str:
    return f"Node {_cut(node.label)}"


def _edge_name(edge: EdgeDefinition) -> str:
    return f"Edge {_cut(edge.type)} ({_cut(edge.from_node)} to {_cut(edge.to_node)})"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _problem(entity: str, column: str, problem: str, suggestion: str) -> Problem:
    return Problem(entity=entity, column=_cut(column), problem=problem, suggestion=suggestion)
