"""What a query answers, by openCypher's rules: every row, every candidate, one after the other.

Values are Python's: null is None, a node or an edge a `Node` or `Edge`, a path the list of its
edges. A truth value is True, False or None. An engine's documented differences (`Dialect`) are the
only way in which this may depart from openCypher.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cmp_to_key, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.graphdb.oracle.syntax import (
    Aggregate,
    Attribute,
    Binary,
    Call,
    Case,
    Constant,
    Items,
    Joined,
    Match,
    NodePattern,
    Parameter,
    Projection,
    Unary,
    Unwind,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import networkx as nx

    from tests.graphdb.oracle import syntax
    from tests.graphdb.oracle.syntax import EdgePattern, Expression, Pattern, Query

    Row: TypeAlias = dict[str, Any]

_LEAST, _MOST = -(2**63), 2**63 - 1


class Impossible(Exception):
    """The query is an error on these data, such as a division by zero."""


@dataclass(frozen=True, slots=True)
class Node:
    id: str


@dataclass(frozen=True, slots=True)
class Edge:
    number: int
    type: str
    start: str
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """An engine's departures from openCypher; each is a difference in `differences.py`, under the
    same name."""

    walks: bool = False
    loops_twice: bool = False
    in_ignores_null: bool = False
    sum_of_nothing_is_null: bool = False
    collect_of_nothing_is_null: bool = False
    substring_counts_from_one: bool = False
    text_plus_null_is_text: bool = False
    nan_is_below: bool = False


@dataclass(slots=True)
class Reference:
    graph: nx.MultiDiGraph
    dialect: Dialect = field(default_factory=Dialect)
    parameters: dict[str, Any] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)
    """Differences (`differences.py`) that an engine which has them may have met on the way."""

    def answer(self, query: Query) -> list[Row]:
        """The rows, in their order where the query has one."""
        self.parameters = dict(query.parameters)
        rows: list[Row] = [{}]
        for clause in query.clauses:
            rows = self._clause(clause, rows)
        return rows

    def _clause(self, clause: syntax.Clause, rows: list[Row]) -> list[Row]:
        match clause:
            case Match():
                return [extended for row in rows for extended in self._match(clause, row)]
            case Unwind():
                return [
                    row | {clause.variable: item}
                    for row in rows
                    for item in self.value(clause.expression, row) or ()
                ]
            case Projection():
                return self._project(clause, rows)

    # patterns

    def _match(self, clause: Match, row: Row) -> list[Row]:
        if clause.optional and any(self._has_dead_end(pattern, row) for pattern in clause.patterns):
            self.met.add("optional_of_several_steps")
        matches = [
            extended
            for extended, _ in self._patterns(clause.patterns, row, frozenset())
            if clause.where is None or self.value(clause.where, extended) is True
        ]
        if matches or not clause.optional:
            return matches
        return [dict.fromkeys(_names(clause)) | row]

    def _has_dead_end(self, pattern: Pattern, row: Row) -> bool:
        """Whether there are matches of its first steps that are none of the whole."""
        for node in self._nodes(pattern.start, row):
            bound = row | {pattern.start.variable: node}
            wholes = [
                extended
                for extended, _, _ in self._steps(pattern.steps, node, bound, (), frozenset())
            ]
            for count in range(1, len(pattern.steps)):
                names = [step[1].variable for step in pattern.steps[:count]]
                ends = {tuple(whole[name] for name in names) for whole in wholes}
                for extended, _, _ in self._steps(
                    pattern.steps[:count], node, bound, (), frozenset()
                ):
                    if tuple(extended[name] for name in names) not in ends:
                        return True
        return False

    def _patterns(
        self, patterns: Sequence[Pattern], row: Row, used: frozenset[int]
    ) -> Iterator[tuple[Row, frozenset[int]]]:
        """All ways to match the patterns after what `row` has; no relationship is there twice."""
        if not patterns:
            yield row, used
            return
        first, *rest = patterns
        for node in self._nodes(first.start, row):
            bound = row | {first.start.variable: node}
            for extended, path, more in self._steps(first.steps, node, bound, (), used):
                named = (
                    extended if first.variable is None else extended | {first.variable: list(path)}
                )
                yield from self._patterns(rest, named, more)

    def _steps(
        self,
        steps: Sequence[tuple[EdgePattern, NodePattern]],
        here: Node,
        row: Row,
        path: tuple[Edge, ...],
        used: frozenset[int],
    ) -> Iterator[tuple[Row, tuple[Edge, ...], frozenset[int]]]:
        if not steps:
            yield row, path, used
            return
        (edge, node), *rest = steps
        for way, there in self._ways(edge, here, used):
            if not self._fits(node, there, row):
                continue
            value: object = list(way) if edge.length is not None else way[0]
            bound = row if edge.variable is None else row | {edge.variable: value}
            more = used if self.dialect.walks else used | {one.number for one in way}
            yield from self._steps(rest, there, bound | {node.variable: there}, path + way, more)

    def _ways(
        self, pattern: EdgePattern, here: Node, used: frozenset[int]
    ) -> Iterator[tuple[tuple[Edge, ...], Node]]:
        """One relationship, or a chain of them of a length within the bounds."""
        least, most = (1, 1) if pattern.length is None else pattern.length
        ways: list[tuple[tuple[Edge, ...], Node]] = [((), here)]
        for length in range(most + 1):
            if length >= least:
                yield from ways
            ways = [
                ((*way, edge), there)
                for way, end in ways
                for edge, there in self._edges(pattern, end)
                if self.dialect.walks
                or (edge.number not in used and edge.number not in {one.number for one in way})
            ]
            if pattern.length is not None and self._is_tangled(here, ways):
                self.met.add("variable_length")

    @staticmethod
    def _is_tangled(here: Node, ways: list[tuple[tuple[Edge, ...], Node]]) -> bool:
        """Whether one of the paths meets a node twice."""
        paths = [_nodes_of(here, way) for way, _ in ways]
        return any(len(set(path)) < len(path) for path in paths)

    def _edges(self, pattern: EdgePattern, here: Node) -> Iterator[tuple[Edge, Node]]:
        for start, end, data in self.graph.edges(data=True):
            edge = Edge(data["number"], data["type"], start, end)
            if pattern.types and edge.type not in pattern.types:
                continue
            forth = start == here.id and pattern.direction in ("out", "both")
            back = end == here.id and pattern.direction in ("in", "both")
            if forth:
                yield edge, Node(end)
            if back and (not forth or start != end or self.dialect.loops_twice):
                yield edge, Node(start)

    def _nodes(self, pattern: NodePattern, row: Row) -> Iterator[Node]:
        anywhere = (Node(name) for name in self.graph.nodes)
        for node in [row[pattern.variable]] if pattern.variable in row else anywhere:
            if node is not None and self._fits(pattern, node, row):
                yield node

    def _fits(self, pattern: NodePattern, node: Node, row: Row) -> bool:
        if pattern.variable in row and row[pattern.variable] != node:
            return False
        data = self.graph.nodes[node.id]
        if pattern.label is not None and data["label"] != pattern.label:
            return False
        return all(
            equal(data["properties"].get(name), self.value(value, row)) is True
            for name, value in pattern.properties
        )

    # projections

    def _project(self, clause: Projection, rows: list[Row]) -> list[Row]:
        if any(_has_aggregate(column.expression) for column in clause.columns):
            projected = self._grouped(clause, rows)
        else:
            projected = [
                {column.name: self.value(column.expression, row) for column in clause.columns}
                for row in rows
            ]
        if clause.distinct:
            projected = list(
                {_identity(tuple(row.values())): row for row in reversed(projected)}.values()
            )[::-1]
        for name, descends in reversed(clause.order):
            projected.sort(key=partial(_column_key, name), reverse=descends)
        end = None if clause.limit is None else (clause.skip or 0) + clause.limit
        projected = projected[clause.skip or 0 : end]
        return [
            row
            for row in projected
            if clause.where is None or self.value(clause.where, row) is True
        ]

    def _grouped(self, clause: Projection, rows: list[Row]) -> list[Row]:
        keys = [column for column in clause.columns if not _has_aggregate(column.expression)]
        groups: dict[Any, list[Row]] = {} if keys else {(): []}
        for row in rows:
            key = _identity(tuple(self.value(column.expression, row) for column in keys))
            groups.setdefault(key, []).append(row)
        return [
            {column.name: self._of_group(column.expression, group) for column in clause.columns}
            for group in groups.values()
        ]

    def _of_group(self, expression: Expression, group: list[Row]) -> Any:
        if isinstance(expression, Aggregate):
            return self._aggregate(expression, group)
        return self.value(expression, group[0])

    def _aggregate(self, aggregate: Aggregate, group: list[Row]) -> Any:
        if aggregate.argument is None:
            return len(group)
        values = [self.value(aggregate.argument, row) for row in group]
        values = [value for value in values if value is not None]
        if aggregate.distinct:
            values = list({_identity(value): value for value in reversed(values)}.values())[::-1]
        match aggregate.function:
            case "count":
                return len(values)
            case "collect":
                return None if self.dialect.collect_of_nothing_is_null and not values else values
            case "sum":
                return (
                    None
                    if self.dialect.sum_of_nothing_is_null and not values
                    else within(sum(values))
                )
            case "avg":
                return sum(values) / len(values) if values else None
            case "min" | "max":
                ordered = sorted(values, key=sort_key)
                return None if not ordered else ordered[0 if aggregate.function == "min" else -1]
        raise ValueError(aggregate.function)

    # expressions

    def value(self, expression: Expression, row: Row) -> Any:  # noqa: C901 - one case a kind
        match expression:
            case Constant(value):
                return value
            case Parameter(name):
                return self.parameters[name]
            case Variable(name):
                return row[name]
            case Attribute(variable, name):
                return self._property(row[variable], name)
            case Unary(operator, operand):
                return _unary(operator, self.value(operand, row))
            case Binary(operator, left, right):
                return self._binary(operator, self.value(left, row), self.value(right, row))
            case Joined(left, right):
                return self._joined(self.value(left, row), self.value(right, row))
            case Call(function, arguments):
                return self._call(function, [self.value(argument, row) for argument in arguments])
            case Items(items):
                return [self.value(item, row) for item in items]
            case Case(condition, then, otherwise):
                if self.value(condition, row) is True:
                    return self.value(then, row)
                return None if otherwise is None else self.value(otherwise, row)
        raise ValueError(expression)

    def _property(self, owner: Node | Edge | None, name: str) -> Any:
        match owner:
            case Node(id=node):
                return self.graph.nodes[node]["properties"].get(name)
            case Edge(number=number):
                return next(
                    data["properties"].get(name)
                    for _, _, data in self.graph.edges(data=True)
                    if data["number"] == number
                )
        return None

    def _binary(self, operator: str, left: Any, right: Any) -> Any:
        if operator in _LOGIC:
            return _LOGIC[operator](left, right)
        if operator == "IN":
            return self._in(left, right)
        if operator == "=":
            return equal(left, right)
        if operator == "<>":
            return negated(equal(left, right))
        if left is None or right is None:
            return None
        if operator in _COMPARISONS:
            compared = _COMPARISONS[operator](left, right)
            if self.dialect.nan_is_below and operator in ("<", "<="):
                return not _COMPARISONS[">=" if operator == "<" else ">"](left, right)
            return compared
        if operator in ("STARTS WITH", "ENDS WITH", "CONTAINS"):
            return self._text(operator, left, right)
        return arithmetic(operator, left, right)

    def _in(self, item: Any, items: Any) -> bool | None:
        if items is None:
            return None
        answers = [equal(item, one) for one in items]
        if True in answers:
            return True
        if self.dialect.in_ignores_null and item is not None:
            return False
        return None if None in answers else False

    def _text(self, operator: str, left: str, right: str) -> bool:
        match operator:
            case "STARTS WITH":
                return left.startswith(right)
            case "ENDS WITH":
                return left.endswith(right)
        if not right:
            self.met.add("contains_empty")
        return right in left

    def _joined(self, left: str | None, right: str | None) -> str | None:
        if self.dialect.text_plus_null_is_text:
            return (left or "") + (right or "")
        return None if left is None or right is None else left + right

    def _call(self, function: str, arguments: list[Any]) -> Any:
        if function == "coalesce":
            return next((value for value in arguments if value is not None), None)
        if None in arguments:
            return None
        if function == "substring":
            text, start, length = arguments
            start -= self.dialect.substring_counts_from_one
            return text[start : start + length]
        return _FUNCTIONS[function](*arguments)


# truth


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    return negated(_and(negated(left), negated(right)))


def _xor(left: bool | None, right: bool | None) -> bool | None:
    return None if left is None or right is None else left != right


def _unary(operator: str, value: Any) -> Any:
    match operator:
        case "NOT":
            return negated(value)
        case "IS NULL":
            return value is None
        case "IS NOT NULL":
            return value is not None
        case "-":
            return None if value is None else within(-value)
    raise ValueError(operator)


_LOGIC: dict[str, Callable[[Any, Any], bool | None]] = {"AND": _and, "OR": _or, "XOR": _xor}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def equal(left: Any, right: Any) -> bool | None:
    """Null equals nothing, not even null; NaN nothing, not even itself."""
    if left is None or right is None:
        return None
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return False
        answers = [equal(one, other) for one, other in zip(left, right, strict=True)]
        return False if False in answers else None if None in answers else True
    return bool(left == right)


# numbers and texts


def within(number: Any) -> Any:
    if isinstance(number, int) and not _LEAST <= number <= _MOST:
        raise Impossible("an integer beyond 64 bits")
    return number


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    match operator:
        case "+":
            return within(left + right)
        case "-":
            return within(left - right)
        case "*":
            return within(left * right)
        case "/" | "%" if isinstance(left, int) and isinstance(right, int):
            if right == 0:
                raise Impossible("division by zero")
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        case "/":
            return _quotient(left, right)
        case "%":
            return math.fmod(left, right)
    raise ValueError(operator)


def _quotient(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)
    return left / right


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda number: within(abs(number)),
    "ceil": lambda number: _whole(math.ceil, number),
    "floor": lambda number: _whole(math.floor, number),
    "size": len,
    "length": len,
    "toUpper": str.upper,
    "toLower": str.lower,
    "trim": lambda text: text.strip(" "),
    "lTrim": lambda text: text.lstrip(" "),
    "rTrim": lambda text: text.rstrip(" "),
    "reverse": lambda text: text[::-1],
    "left": lambda text, length: text[:length],
    "right": lambda text, length: text[-length:] if length else "",
}


def _whole(function: Callable[[float], int], number: float) -> float:
    return float(function(number)) if math.isfinite(number) else float(number)


# order and identity


def _column_key(name: str, row: Row) -> Any:
    return sort_key(row[name])


def sort_key(value: Any) -> Any:
    return cmp_to_key(_compare)(value)


def _compare(left: Any, right: Any) -> int:
    """Ascending: numbers, then NaN, then null; false before true; texts by their characters'
    numbers."""
    if left is None or right is None:
        return (left is None) - (right is None)
    if isinstance(left, list):
        for one, other in zip(left, right, strict=False):
            if order := _compare(one, other):
                return order
        return len(left) - len(right)
    odd, other_odd = (isinstance(value, float) and math.isnan(value) for value in (left, right))
    if odd or other_odd:
        return odd - other_odd
    if isinstance(left, Node | Edge):
        left, right = str(left), str(right)
    return int(left > right) - int(left < right)


def _identity(value: Any) -> Any:
    """For DISTINCT and grouping: null is null, NaN is NaN, 1 is 1.0."""
    if isinstance(value, list | tuple):
        return tuple(map(_identity, value))
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return (isinstance(value, bool), value)


def _nodes_of(start: Node, way: tuple[Edge, ...]) -> tuple[str, ...]:
    """The names of the nodes of a path, from its start."""
    nodes = [start.id]
    for edge in way:
        nodes.append(edge.end if edge.start == nodes[-1] else edge.start)
    return tuple(nodes)


def _names(clause: Match) -> list[str]:
    names = []
    for pattern in clause.patterns:
        names += [pattern.start.variable, *([pattern.variable] if pattern.variable else [])]
        for edge, node in pattern.steps:
            names += [node.variable, *([edge.variable] if edge.variable else [])]
    return names


def _has_aggregate(expression: Expression) -> bool:
    return isinstance(expression, Aggregate)
