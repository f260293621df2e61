"""Read-only Cypher as a tree, and the tree as text."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Value: TypeAlias = "bool | int | float | str | dt.date | dt.datetime | list[Value] | None"
Direction: TypeAlias = Literal["out", "in", "both"]
Kind: TypeAlias = Literal["INT", "NARROW", "FLOAT", "STR", "BOOL", "DATE", "MOMENT"]
"""NARROW is an integer of fewer than 64 bits, whose arithmetic differs between the engines."""


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Attribute:
    variable: str
    name: str


@dataclass(frozen=True, slots=True)
class Unary:
    """NOT, IS NULL, IS NOT NULL, -."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Joined:
    """Two texts with a + between them."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`argument` is None for count(*)."""

    function: str
    argument: Expression | None = None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list, item by item."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case:
    condition: Expression
    then: Expression
    otherwise: Expression | None


Expression: TypeAlias = (
    "Constant | Parameter | Variable | Attribute | Unary | Binary | Call | Aggregate | Items | Case"
)


@dataclass(frozen=True, slots=True)
class NodePattern:
    variable: str
    label: str | None = None
    properties: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class EdgePattern:
    """`length` is None for one relationship, else the least and the most."""

    direction: Direction
    types: tuple[str, ...] = ()
    variable: str | None = None
    length: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A node, and then an edge and a node each; `variable` names the whole path."""

    start: NodePattern
    steps: tuple[tuple[EdgePattern, NodePattern], ...] = ()
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    patterns: tuple[Pattern, ...]
    where: Expression | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Unwind:
    expression: Expression
    variable: str


@dataclass(frozen=True, slots=True)
class Column:
    expression: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Projection:
    """WITH or RETURN; `order` has names of columns and whether each descends."""

    columns: tuple[Column, ...]
    distinct: bool = False
    order: tuple[tuple[str, bool], ...] = ()
    skip: int | None = None
    limit: int | None = None
    where: Expression | None = None
    """Only after WITH."""


Clause: TypeAlias = "Match | Unwind | Projection"


@dataclass(frozen=True, slots=True)
class Query:
    """The last clause is the RETURN."""

    clauses: tuple[Clause, ...]
    parameters: dict[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        *before, last = self.clauses
        written = [*(_clause(clause) for clause in before), "RETURN " + _projection(last)]
        return " ".join(written)

    @property
    def returned(self) -> Projection:
        last = self.clauses[-1]
        assert isinstance(last, Projection)
        return last


def _clause(clause: Clause) -> str:
    match clause:
        case Match():
            head = "OPTIONAL MATCH " if clause.optional else "MATCH "
            return head + ", ".join(map(_pattern, clause.patterns)) + _where(clause.where)
        case Unwind():
            return f"UNWIND {text(clause.expression)} AS {clause.variable}"
        case Projection():
            return "WITH " + _projection(clause) + _where(clause.where)


def _where(condition: Expression | None) -> str:
    return "" if condition is None else f" WHERE {text(condition)}"


def _projection(clause: Clause) -> str:
    assert isinstance(clause, Projection)
    columns = ", ".join(f"{text(column.expression)} AS {column.name}" for column in clause.columns)
    order = ", ".join(f"{name}{' DESC' if descends else ''}" for name, descends in clause.order)
    return (
        ("DISTINCT " if clause.distinct else "")
        + columns
        + (f" ORDER BY {order}" if order else "")
        + ("" if clause.skip is None else f" SKIP {clause.skip}")
        + ("" if clause.limit is None else f" LIMIT {clause.limit}")
    )


def _pattern(pattern: Pattern) -> str:
    name = "" if pattern.variable is None else f"{pattern.variable} = "
    return (
        name
        + _node(pattern.start)
        + "".join(_edge(edge) + _node(node) for edge, node in pattern.steps)
    )


def _node(node: NodePattern) -> str:
    label = "" if node.label is None else f":{node.label}"
    properties = ", ".join(f"{name}: {text(value)}" for name, value in node.properties)
    return f"({node.variable}{label}{f' {{{properties}}}' if properties else ''})"


def _edge(edge: EdgePattern) -> str:
    types = f":{'|'.join(edge.types)}" if edge.types else ""
    length = "" if edge.length is None else f"*{edge.length[0]}..{edge.length[1]}"
    inside = f"[{edge.variable or ''}{types}{length}]"
    return (
        f"{'<' if edge.direction == 'in' else ''}-{inside}-{'>' if edge.direction == 'out' else ''}"
    )


def text(expression: Expression) -> str:  # noqa: C901 - one case a kind
    match expression:
        case Constant(value):
            return literal(value)
        case Parameter(name):
            return f"${name}"
        case Variable(name):
            return name
        case Attribute(variable, name):
            return f"{variable}.{name}"
        case Unary("NOT" | "-" as operator, operand):
            return f"({operator} {text(operand)})"
        case Unary(operator, operand):
            return f"({text(operand)} {operator})"
        case Binary(operator, left, right):
            return f"({text(left)} {operator} {text(right)})"
        case Joined(left, right):
            return f"({text(left)} + {text(right)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(text, arguments))})"
        case Aggregate(function, None, _):
            return f"{function}(*)"
        case Aggregate(function, argument, distinct):
            return f"{function}({'DISTINCT ' if distinct else ''}{text(argument)})"
        case Items(items):
            return f"[{', '.join(map(text, items))}]"
        case Case(condition, then, otherwise):
            rest = "" if otherwise is None else f" ELSE {text(otherwise)}"
            return f"CASE WHEN {text(condition)} THEN {text(then)}{rest} END"


def literal(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if value >= 0 else f"({value})"
        case float():
            assert math.isfinite(value)
            return repr(value) if value >= 0 else f"({value!r})"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case dt.date():
            return f"date('{value.isoformat()}')"
    raise TypeError(value)


def walk(part: object) -> Iterator[object]:
    """A query or a part of one, and all that is in it."""
    yield part
    if isinstance(part, tuple):
        for inner in part:
            yield from walk(inner)
    elif is_dataclass(part) and not isinstance(part, type):
        for one in fields(part):
            yield from walk(getattr(part, one.name))
