"""Validation rules for definitions, on create and on update. All problems are reported at once.

Names are compared case-insensitively: most sources and graph databases do so.
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
"""Limit for all queries of a mapping together; each is parsed while the author waits."""
MAX_REPORTED = 100
_CYPHER = """
    add all and as asc ascending by case constraint contains create delete desc descending detach
    distinct do drop else end ends exists false for in is limit mandatory match merge not null of on
    optional or order remove require return scalar set
    skip starts then true union unique unwind when where with xor
"""
RESERVED = frozenset(_CYPHER.split())
"""Reserved words of openCypher, case-insensitive."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_NAME_HINT = "Use 1 to 64 letters, digits and _, beginning with a letter."
_TYPE_HINT = "Use 1 to 64 capital letters, digits and _, beginning with a letter, like WORKS_AT."
_MAX_SHOWN = 64


def check(definitions: Definitions) -> None:
    """Raise InvalidInput with all problems."""
    if problems := list(broken(definitions)):
        raise refused(problems)


def refused(problems: Sequence[Problem]) -> InvalidInput:
    first, *others = problems
    more = f" ({len(others)} more)" if others else ""
    return InvalidInput(
        f"{first.entity}: {first.problem}{more}",
        hint=first.suggestion,
        problems=[asdict(problem) for problem in problems[:MAX_REPORTED]],
        count=len(problems),
    )


def broken(definitions: Definitions) -> Iterator[Problem]:
    yield from _counts(definitions)
    for node in definitions.nodes:
        yield from _node(node)
    labels = {node.label for node in definitions.nodes}
    for edge in definitions.edges:
        yield from _edge(edge, labels)
    yield from _repeated_labels(definitions)
    yield from _repeated_edges(definitions)


def _counts(definitions: Definitions) -> Iterator[Problem]:
    if not definitions.nodes:
        yield _problem(
            "Mapping", "node_definitions", "A mapping needs at least one node.", "Define a node."
        )
    for name, count, most in (
        ("node_definitions", len(definitions.nodes), MAX_NODES),
        ("edge_definitions", len(definitions.edges), MAX_EDGES),
    ):
        if count > most:
            yield _problem(
                "Mapping",
                name,
                f"There are {count} {name}; the maximum is {most}.",
                "Split the mapping.",
            )
    written = sum(
        len(sql)
        for sql in (*(n.sql for n in definitions.nodes), *(e.sql for e in definitions.edges))
    )
    if written > MAX_ALL_SQL:
        problem = (
            f"All queries together have {written:,} characters; the maximum is {MAX_ALL_SQL:,}."
        )
        hint = "Create views at the source, or split the mapping."
        yield _problem("Mapping", "sql", problem, hint)


def _node(node: NodeDefinition) -> Iterator[Problem]:
    entity = _node_name(node)
    yield from _word(entity, "label", node.label, _NAME, _NAME_HINT)
    yield from _sql(entity, node.sql)
    key = node.primary_key
    yield from _word(entity, "primary_key", key.name, _NAME, _NAME_HINT)
    if key.type not in KEY_TYPES:
        problem = (
            f"The primary key {_shortened(key.name)!r} cannot have type {_shortened(key.type)!r}."
        )
        yield _problem(entity, key.name, problem, f"Choose one of {', '.join(KEY_TYPES)}.")
    yield from _properties(entity, node.properties)
    yield from _repeated(entity, [column.name for column in node.columns])


def _edge(edge: EdgeDefinition, labels: set[str]) -> Iterator[Problem]:
    entity = _edge_name(edge)
    yield from _word(entity, "type", edge.type, _TYPE, _TYPE_HINT)
    yield from _sql(entity, edge.sql)
    for field, label in (("from_node", edge.from_node), ("to_node", edge.to_node)):
        if label not in labels:
            names = ", ".join(_shortened(name) for name in sorted(labels)[:10]) or "none"
            yield _problem(
                entity,
                field,
                f"There is no node {_shortened(label)!r}.",
                f"The labels are: {names}.",
            )
    for field, name in (("from_key", edge.from_key), ("to_key", edge.to_key)):
        yield from _word(entity, field, name, _NAME, _NAME_HINT)
    yield from _properties(entity, edge.properties)
    yield from _repeated(
        entity, [edge.from_key, edge.to_key, *(column.name for column in edge.properties)]
    )


def _properties(entity: str, properties: Sequence[Property]) -> Iterator[Problem]:
    if len(properties) > MAX_PROPERTIES:
        problem = f"There are {len(properties)} properties; the maximum is {MAX_PROPERTIES}."
        yield _problem(entity, "properties", problem, "Remove some.")
    for column in properties:
        yield from _word(entity, column.name, column.name, _NAME, _NAME_HINT)
        if column.type not in TYPES:
            problem = (
                f"Property {_shortened(column.name)!r} has an unknown type"
                f" {_shortened(column.type)!r}."
            )
            yield _problem(entity, column.name, problem, f"Choose one of {', '.join(TYPES)}.")


def _word(
    entity: str, column: str, word: str, form: re.Pattern[str], hint: str
) -> Iterator[Problem]:
    if not form.fullmatch(word):
        yield _problem(entity, column, f"{_shortened(word)!r} is not a valid name.", hint)
    elif word.lower() in RESERVED:
        yield _problem(
            entity,
            column,
            f"{word!r} is a reserved word of Cypher.",
            f"Choose another, such as {word}_1.",
        )


def _sql(entity: str, sql: str) -> Iterator[Problem]:
    if not sql.strip():
        yield _problem(entity, "sql", "Its query is empty.", "Write one SELECT statement.")
    elif len(sql) > MAX_SQL:
        problem = f"Its query has {len(sql):,} characters; the maximum is {MAX_SQL:,}."
        yield _problem(entity, "sql", problem, "Create a view at the source.")
    elif "\x00" in sql:
        yield _problem(entity, "sql", "Its query contains a NUL character.", "Remove it.")


def _repeated(entity: str, names: Iterable[str]) -> Iterator[Problem]:
    for name, times in Counter(name.lower() for name in names).items():
        if times > 1:
            problem = f"{times} of its keys and properties are named {_shortened(name)!r}."
            yield _problem(entity, name, problem, "Give each a unique name.")


def _repeated_labels(definitions: Definitions) -> Iterator[Problem]:
    for label, times in Counter(node.label.lower() for node in definitions.nodes).items():
        if times > 1:
            problem = f"{times} nodes have the label {_shortened(label)!r}."
            yield _problem(
                f"Node {_shortened(label)}", "label", problem, "Give each node a unique label."
            )


def _repeated_edges(definitions: Definitions) -> Iterator[Problem]:
    counts = Counter(edge.key for edge in definitions.edges)
    for edge in {edge.key: edge for edge in definitions.edges}.values():
        if counts[edge.key] > 1:
            problem = f"It is defined {counts[edge.key]} times between the same two labels."
            yield _problem(
                _edge_name(edge),
                "type",
                problem,
                "Join the queries with UNION ALL, or rename one type.",
            )


def _node_name(node: NodeDefinition) -> str:
    return f"Node {_shortened(node.label)}"


def _edge_name(edge: EdgeDefinition) -> str:
    return (
        f"Edge {_shortened(edge.type)} ({_shortened(edge.from_node)} to {_shortened(edge.to_node)})"
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _problem(entity: str, column: str, problem: str, suggestion: str) -> Problem:
    return Problem(entity=entity, column=_shortened(column), problem=problem, suggestion=suggestion)
