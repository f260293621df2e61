"""Shrinks a failing query: parts are removed or simplified while it still fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.graphdb.oracle.syntax import (
    Aggregate,
    Binary,
    Call,
    Case,
    Column,
    Constant,
    Items,
    Joined,
    Match,
    Pattern,
    Projection,
    Query,
    Unary,
    Unwind,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.graphdb.oracle.syntax import Clause, Expression

MOST_TRIES = 400


def shrink(query: Query, is_wrong: Callable[[Query], bool]) -> Query:
    """`is_wrong` is asked of candidates that may make no sense at all; those are not wrong."""
    tries = 0
    progress = True
    while progress and tries < MOST_TRIES:
        progress = False
        for candidate in _smaller(query):
            tries += 1
            if tries >= MOST_TRIES:
                break
            if len(str(candidate)) < len(str(query)) and is_wrong(candidate):
                query, progress = candidate, True
                break
    return query


def _smaller(query: Query) -> Iterator[Query]:
    clauses = query.clauses
    for i in range(len(clauses) - 1):
        yield replace(query, clauses=clauses[:i] + clauses[i + 1 :])
    for i, clause in enumerate(clauses):
        for simpler in _clause(clause):
            yield replace(query, clauses=(*clauses[:i], simpler, *clauses[i + 1 :]))


def _clause(clause: Clause) -> Iterator[Clause]:
    match clause:
        case Match():
            yield from (replace(clause, where=simpler) for simpler in _optional(clause.where))
            for i, pattern in enumerate(clause.patterns):
                if len(clause.patterns) > 1:
                    yield replace(clause, patterns=clause.patterns[:i] + clause.patterns[i + 1 :])
                for simpler in _pattern(pattern):
                    yield replace(
                        clause, patterns=(*clause.patterns[:i], simpler, *clause.patterns[i + 1 :])
                    )
        case Unwind():
            yield from (
                replace(clause, expression=simpler) for simpler in _expression(clause.expression)
            )
        case Projection():
            yield from _projection(clause)


def _projection(clause: Projection) -> Iterator[Projection]:
    yield replace(clause, order=(), skip=None, limit=None)
    yield replace(clause, distinct=False)
    yield from (replace(clause, where=simpler) for simpler in _optional(clause.where))
    for i, column in enumerate(clause.columns):
        if len(clause.columns) > 1:
            remaining = clause.columns[:i] + clause.columns[i + 1 :]
            order = tuple(part for part in clause.order if part[0] != column.name)
            yield replace(clause, columns=remaining, order=order)
        for simpler in _expression(column.expression):
            columns = (*clause.columns[:i], Column(simpler, column.name), *clause.columns[i + 1 :])
            yield replace(clause, columns=columns)


def _pattern(pattern: Pattern) -> Iterator[Pattern]:
    if pattern.variable is not None:
        yield replace(pattern, variable=None)
    if pattern.steps:
        yield replace(pattern, steps=pattern.steps[:-1])
        yield Pattern(pattern.steps[0][1], pattern.steps[1:], pattern.variable)
    if pattern.start.properties:
        yield replace(pattern, start=replace(pattern.start, properties=()))
    for i, (edge, node) in enumerate(pattern.steps):
        if edge.variable is not None:
            step = (replace(edge, variable=None), node)
            yield replace(pattern, steps=(*pattern.steps[:i], step, *pattern.steps[i + 1 :]))
        if edge.length is not None:
            step = (replace(edge, length=None), node)
            yield replace(pattern, steps=(*pattern.steps[:i], step, *pattern.steps[i + 1 :]))


def _optional(expression: Expression | None) -> Iterator[Expression | None]:
    if expression is not None:
        yield None
        yield from _expression(expression)


def _expression(expression: Expression) -> Iterator[Expression]:  # noqa: C901 - one case a kind
    """Its parts in its place, or itself with simpler parts."""
    match expression:
        case Unary(operator, operand):
            yield operand
            yield from (Unary(operator, simpler) for simpler in _expression(operand))
        case Binary(operator, left, right):
            yield left
            yield right
            yield from (Binary(operator, simpler, right) for simpler in _expression(left))
            yield from (Binary(operator, left, simpler) for simpler in _expression(right))
        case Joined(left, right):
            yield left
            yield right
            yield from (Joined(simpler, right) for simpler in _expression(left))
            yield from (Joined(left, simpler) for simpler in _expression(right))
        case Call(function, arguments):
            yield from arguments
            for i, argument in enumerate(arguments):
                for simpler in _expression(argument):
                    yield Call(function, (*arguments[:i], simpler, *arguments[i + 1 :]))
        case Aggregate(function, argument, distinct) if argument is not None:
            if distinct:
                yield Aggregate(function, argument)
            yield Aggregate("count")
            yield from (Aggregate(function, simpler, distinct) for simpler in _expression(argument))
        case Items(items) if len(items) > 1:
            yield from (Items(items[:i] + items[i + 1 :]) for i in range(len(items)))
        case Case(condition, then, otherwise):
            yield condition
            yield then
            if otherwise is not None:
                yield otherwise
            yield from (Case(simpler, then, otherwise) for simpler in _expression(condition))
            yield from (Case(condition, simpler, otherwise) for simpler in _expression(then))
        case Constant(str(text)) if text not in ("", "a"):
            yield Constant("a")
