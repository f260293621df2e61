"""Generates random queries that every engine supports and that are well typed."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.graphdb.oracle import graphs
from tests.graphdb.oracle.syntax import (
    Aggregate,
    Attribute,
    Binary,
    Call,
    Case,
    Clause,
    Column,
    Constant,
    EdgePattern,
    Items,
    Joined,
    Match,
    NodePattern,
    Parameter,
    Pattern,
    Projection,
    Query,
    Unary,
    Unwind,
    Variable,
)

if TYPE_CHECKING:
    from random import Random

    from penstock.graphdb.contract import GraphSchema
    from tests.graphdb.oracle.graphs import Traits
    from tests.graphdb.oracle.syntax import Direction, Expression, Kind, Value

What: TypeAlias = str
"""In a scope: a label, `*` for any label, `edge:TYPE`, `path`, `bag` for what was collected, or a
`Kind`."""
ENDS = {"LOVES": (("A", "A"),), "HAS": (("A", "B"),), "ABOUT": (("A", "C"), ("B", "C"))}
COMMON = {"i": "INT64", "s": "STRING"}
"""Properties that every label has, with the same type."""
SCALARS: tuple[Kind, ...] = ("INT", "FLOAT", "STR", "BOOL", "DATE")
BORROWED: tuple[Kind, ...] = ("MOMENT", "NARROW")
"""Kinds without a literal that every engine reads: they need a property or a column."""
ORDERED = frozenset({*SCALARS, *BORROWED})


@dataclass(slots=True)
class Generator:
    random: Random
    schema: GraphSchema
    traits: Traits
    scope: dict[str, What] = field(default_factory=dict)
    parameters: dict[str, Value] = field(default_factory=dict)
    names: int = 0

    def query(self) -> Query:
        self.scope, self.parameters, self.names = {}, {}, 0
        clauses: list[Clause] = []
        if self._chance(0.15):
            clauses.append(self._unwind())
        clauses.append(self._match(optional=False))
        for make, chance in ((self._optional, 0.3), (self._unwind, 0.2), (self._with, 0.45)):
            if self._chance(chance):
                clauses.append(make())
        if isinstance(clauses[-1], Projection) and self._chance(0.4):
            clauses.append(self._match(optional=self._chance(0.4)))
        clauses.append(self._return())
        return Query(tuple(clauses), dict(self.parameters))

    # clauses

    def _match(self, *, optional: bool) -> Match:
        patterns = [self._pattern(bound=optional)]
        if self._chance(0.2) and not optional:
            patterns.append(self._pattern())
        where = self.expression("BOOL", 2) if self._chance(0.6) else None
        return Match(tuple(patterns), where, optional)

    def _optional(self) -> Match:
        return self._match(optional=True)

    def _unwind(self) -> Unwind:
        """A list that was collected, a parameter, or a list that is written out."""
        bags = [name for name, what in self.scope.items() if what == "bag:INT"]
        kind: Kind = self.random.choice(("INT", "STR"))
        expression: Expression
        if bags and self._chance(0.7):
            expression, kind = Variable(self.random.choice(bags)), "INT"
        elif self._chance(0.3):
            expression = self._parameter(
                [self._constant(kind) for _ in range(self.random.randrange(4))]
            )
        else:
            expression = self._list(kind)
        return Unwind(expression, self._bind(kind))

    def _with(self) -> Projection:
        before = dict(self.scope)
        projection = self._projection(passing=True)
        where = self.expression("BOOL", 1) if self._chance(0.4) else None
        if not self.scope:
            self.scope = before
        return replace(projection, where=where)

    def _return(self) -> Projection:
        return self._projection(passing=False)

    def _projection(self, *, passing: bool) -> Projection:
        is_grouped = self._chance(0.45)
        columns: list[Column] = []
        kinds: list[What] = []
        if passing or self._chance(0.3):
            for name in self.random.sample(
                sorted(self.scope), min(len(self.scope), self.random.randint(1, 2))
            ):
                what = self.scope[name]
                if what == "path" or what.startswith("edges"):
                    continue
                if is_grouped and what.startswith("bag"):
                    continue
                columns.append(Column(Variable(name), name))
                kinds.append(what)
        for _ in range(self.random.randint(0 if columns else 1, 2)):
            kind = self._kind()
            columns.append(Column(self.expression(kind, 2), self._name("c")))
            kinds.append(kind)
        if is_grouped:
            for _ in range(self.random.randint(1, 2)):
                aggregate, what = self._aggregate()
                columns.append(Column(aggregate, self._name("g")))
                kinds.append(what)
        distinct = (
            not is_grouped and not any(w.startswith("bag") for w in kinds) and self._chance(0.2)
        )
        projection = Projection(tuple(columns), distinct=distinct)
        self.scope = {column.name: what for column, what in zip(columns, kinds, strict=True)}
        if all(what in ORDERED for what in kinds):
            # Ladybug and Ryugraph sort in a WITH only to cut.
            projection = self._ordered(projection, cut=self._chance(0.5), passing=passing)
        return projection

    def _ordered(self, projection: Projection, *, cut: bool, passing: bool) -> Projection:
        """By all columns, so that what is cut off is the same whoever sorts."""
        if not cut and (passing or self._chance(0.5)):
            return projection
        names = [column.name for column in projection.columns]
        self.random.shuffle(names)
        order = tuple((name, self._chance(0.4)) for name in names)
        skip = self.random.choice((None, None, 0, 1, 2)) if cut else None
        limit = self.random.choice((0, 1, 2, 3, 5)) if cut else None
        return replace(projection, order=order, skip=skip, limit=limit)

    def _aggregate(self) -> tuple[Aggregate, What]:
        match self.random.randrange(8):
            case 0:
                return Aggregate("count"), "INT"
            case 1:
                argument = self.expression(self._kind(), 1)
                return Aggregate("count", argument, self._chance(0.3)), "INT"
            case 2:
                return Aggregate("sum", self.expression("INT", 1)), "INT"
            case 3:
                return Aggregate("sum", self._finite(), self._chance(0.3)), "FLOAT"
            case 4:
                return Aggregate(
                    "avg", self.random.choice((self.expression("INT", 0), self._finite()))
                ), "FLOAT"
            case 5 | 6:
                kind = self.random.choice(("INT", "STR", "DATE"))
                return Aggregate(self.random.choice(("min", "max")), self.expression(kind, 1)), kind
        kind = self.random.choice(("INT", "STR", "INT"))
        return Aggregate("collect", self.expression(kind, 1), self._chance(0.2)), f"bag:{kind}"

    # patterns

    def _pattern(self, *, bound: bool = False) -> Pattern:
        """From a node that is there already where there is one: always if `bound`, else mostly."""
        nodes = [name for name, what in self.scope.items() if what in ("A", "B", "C")]
        least = 0
        if nodes and (bound or self._chance(0.7)):
            name = self.random.choice(nodes)
            start, label, least = NodePattern(name), self.scope[name], 1
        else:
            label = self.random.choice(("A", "A", "A", "B", "C"))
            start = NodePattern(self._bind(label), label, self._properties(label))
        steps = []
        for _ in range(max(least, self.random.choice((0, 1, 1, 1, 2, 2)))):
            step = self._step(label)
            if step is None:
                break
            edge, node, label = step
            steps.append((edge, node))
            if label == "*":
                break
        variable = None
        if steps and self._chance(0.1):
            variable = self._bind("path")
        return Pattern(start, tuple(steps), variable)

    def _step(self, label: str) -> tuple[EdgePattern, NodePattern, str] | None:
        ways = [
            (kind, direction, end)
            for kind, pairs in ENDS.items()
            for start, stop in pairs
            for here, end, direction in ((start, stop, "out"), (stop, start, "in"))
            if here == label
        ]
        kind, direction, end = self.random.choice(ways)
        types: tuple[str, ...] = (kind,)
        length = None
        if self._chance(0.15):
            length = self.random.choice(((1, 2), (1, 3), (2, 2), (2, 3), (1, 1)))
        if self._chance(0.15):
            types, end = (), "*"
        elif label == "A" and self._chance(0.15) and direction == "out":
            types, end = ("LOVES", "HAS"), "*"
        way: Direction = "both" if self._chance(0.25) else "out" if direction == "out" else "in"
        if length is not None and types != ("LOVES",):
            end = "*"
        if way == "both" and types == ("ABOUT",):
            end = "*"
        return self._edge(types, way, length), self._end(end), end

    def _edge(
        self, types: tuple[str, ...], direction: Direction, length: tuple[int, int] | None
    ) -> EdgePattern:
        if length is not None or not types or self._chance(0.5):
            return EdgePattern(direction, types, None, length)
        return EdgePattern(direction, types, self._bind(f"edge:{types[0]}"))

    def _end(self, label: str) -> NodePattern:
        bound = [name for name, what in self.scope.items() if what == label]
        if bound and self._chance(0.03):
            return NodePattern(self.random.choice(bound))
        if label == "*":
            return NodePattern(self._bind("*"))
        if self._chance(0.2):
            return NodePattern(self._bind(label), label, self._properties(label))
        return NodePattern(self._bind(label), label)

    def _properties(self, label: str) -> tuple[tuple[str, Expression], ...]:
        if not self._chance(0.15):
            return ()
        if self._chance(0.5):
            return (("i", Constant(self.random.choice(self.traits.ints))),)
        return (("s", self._parameter(self.random.choice(graphs.STRINGS))),)

    # expressions

    def expression(self, kind: Kind, depth: int) -> Expression:
        if depth <= 0 or self._chance(0.25):
            return self._leaf(kind)
        if kind in ("INT", "FLOAT", "STR", "BOOL") and self._chance(0.06):
            otherwise = self.expression(kind, depth - 1) if self._chance(0.7) else None
            return Case(
                self.expression("BOOL", depth - 1), self.expression(kind, depth - 1), otherwise
            )
        if kind in ("INT", "FLOAT", "STR", "DATE") and self._chance(0.08):
            return Call("coalesce", (self.expression(kind, depth - 1), self._leaf(kind)))
        match kind:
            case "BOOL":
                return self._condition(depth)
            case "INT":
                return self._whole_number(depth)
            case "FLOAT":
                return self._number(depth)
            case "STR":
                return self._text(depth)
        return self._leaf(kind)

    def _kind(self) -> Kind:
        here = {
            graphs.KINDS.get(kind)
            for what in self.scope.values()
            for kind in self._columns(what).values()
        }
        here |= set(self.scope.values())
        borrowed = tuple(kind for kind in BORROWED if kind in here)
        return self.random.choice((*SCALARS, *borrowed, "INT", "STR"))

    def _condition(self, depth: int) -> Expression:
        match self.random.randrange(9):
            case 0 | 1:
                operator = self.random.choice(("AND", "OR", "XOR", "AND", "OR"))
                return Binary(
                    operator, self.expression("BOOL", depth - 1), self.expression("BOOL", depth - 1)
                )
            case 2:
                return Unary("NOT", self.expression("BOOL", depth - 1))
            case 3:
                kind = self._kind()
                return Unary(
                    self.random.choice(("IS NULL", "IS NOT NULL")), self.expression(kind, depth - 1)
                )
            case 4:
                kind = self.random.choice(("INT", "STR"))
                items = (
                    self._list(kind)
                    if self._chance(0.7)
                    else self._parameter(self._constants(kind))
                )
                return Binary("IN", self.expression(kind, depth - 1), items)
            case 5:
                operator = self.random.choice(("STARTS WITH", "ENDS WITH", "CONTAINS"))
                return Binary(
                    operator, self.expression("STR", depth - 1), self.expression("STR", 0)
                )
        kind = self._kind()
        operators = ("=", "<>") if kind == "BOOL" else ("=", "<>", "<", "<=", ">", ">=")
        other: Kind = "INT" if kind == "NARROW" or (kind == "FLOAT" and self._chance(0.3)) else kind
        left, right = self.expression(kind, depth - 1), self.expression(other, depth - 1)
        return Binary(self.random.choice(operators), left, right)

    def _whole_number(self, depth: int) -> Expression:
        match self.random.randrange(7):
            case 0 | 1:
                operator = self.random.choice("+-")
                return Binary(operator, self.expression("INT", depth - 1), self._leaf("INT"))
            case 2:
                return Binary("*", self._leaf("INT"), Constant(self.random.choice((2, 3, -1))))
            case 3:
                operator = self.random.choice("/%")
                return Binary(
                    operator,
                    self.expression("INT", depth - 1),
                    Constant(self.random.choice((2, 3, 7, -2))),
                )
            case 4:
                return Call("abs", (self._leaf("INT"),))
            case 5:
                return Call("size", (self.expression("STR", depth - 1),))
        paths = [name for name, what in self.scope.items() if what == "path"]
        if paths:
            return Call("length", (Variable(self.random.choice(paths)),))
        bags = [name for name, what in self.scope.items() if what.startswith("bag")]
        if bags:
            return Call("size", (Variable(self.random.choice(bags)),))
        return Unary("-", self._leaf("INT"))

    def _number(self, depth: int) -> Expression:
        match self.random.randrange(4):
            case 0:
                return Binary(self.random.choice("+-*"), self._leaf("FLOAT"), self._leaf("FLOAT"))
            case 1:
                return Binary(
                    "/", self._leaf("FLOAT"), Constant(self.random.choice((2.0, 0.5, -4.0)))
                )
            case 2:
                return Call(self.random.choice(("abs", "ceil", "floor")), (self._leaf("FLOAT"),))
        return Binary(self.random.choice("+-"), self._leaf("FLOAT"), self._leaf("INT"))

    def _text(self, depth: int) -> Expression:
        inner = self.expression("STR", depth - 1)
        match self.random.randrange(6):
            case 0:
                return Joined(inner, self._leaf("STR"))
            case 1:
                return Call(self.random.choice(("toUpper", "toLower")), (inner,))
            case 2:
                return Call(self.random.choice(("trim", "lTrim", "rTrim")), (inner,))
            case 3:
                return Call("reverse", (inner,))
            case 4:
                side = self.random.choice(("left", "right"))
                return Call(side, (inner, Constant(self.random.randrange(3))))
        return Call("substring", (inner, Constant(1), Constant(self.random.randint(1, 3))))

    def _leaf(self, kind: Kind) -> Expression:
        candidates: list[Expression] = [
            Variable(name) for name, what in self.scope.items() if what == kind
        ]
        for name, what in self.scope.items():
            candidates += [
                Attribute(name, column)
                for column, declared in self._columns(what).items()
                if graphs.KINDS.get(declared) == kind
            ]
        if candidates and (kind in BORROWED or self._chance(0.8)):
            return self.random.choice(candidates)
        constant = self._constant(kind)
        if kind != "DATE" and constant is not None and self._chance(0.25):
            return self._parameter(constant)
        return Constant(constant)

    def _columns(self, what: What) -> dict[str, str]:
        if what == "*":
            return dict(COMMON)
        if what.startswith("edge:"):
            table = next(t for t in self.schema.edges if t.type == what.removeprefix("edge:"))
            return {p.name: p.type for p in table.properties}
        table_of = self.schema.node(what)
        return {} if table_of is None else {p.name: p.type for p in table_of.columns}

    def _finite(self) -> Expression:
        """A number that is never NaN or infinite: sums of those depend on the order."""
        edges = [name for name, what in self.scope.items() if what == "edge:HAS"]
        if edges and self._chance(0.6):
            return Attribute(self.random.choice(edges), "g")
        return Binary("*", self._leaf("INT"), Constant(0.5))

    def _list(self, kind: Kind) -> Items:
        return Items(tuple(Constant(value) for value in self._constants(kind)))

    def _constants(self, kind: Kind) -> list[Value]:
        values: list[Value] = [self._constant(kind) for _ in range(self.random.randint(1, 3))]
        if self._chance(0.2):
            values.append(None)
        return values

    def _constant(self, kind: Kind) -> Any:
        match kind:
            case "INT":
                return self.random.choice(graphs.SMALL_INTS)
            case "FLOAT":
                return self.random.choice(graphs.FLOATS)
            case "STR":
                return self.random.choice(graphs.STRINGS)
            case "BOOL":
                return self._chance(0.5)
            case "DATE":
                return self.random.choice((*self.traits.days, dt.date(1999, 12, 31)))
        raise ValueError(kind)

    def _parameter(self, value: Value) -> Parameter:
        name = self._name("p")
        self.parameters[name] = value
        return Parameter(name)

    def _bind(self, what: What) -> str:
        name = self._name("v")
        self.scope[name] = what
        return name

    def _name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def _chance(self, share: float) -> bool:
        return self.random.random() < share
