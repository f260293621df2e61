"""The list of differences between the engines and openCypher, each with a probe query.

A difference that is a field of `Dialect` is modeled by the reference. For the others a `feature`,
or the reference during evaluation, tells which queries are affected: these are not run on that
engine. `docs/reference/cypher.md` is generated from here (`python -m
tests.graphdb.oracle.differences`), and the tests run the probes, so a difference that a new version
of an engine fixes is noticed.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tests.graphdb.oracle.reference import Dialect
from tests.graphdb.oracle.syntax import (
    Aggregate,
    Attribute,
    Binary,
    Call,
    Case,
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
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.graphdb.oracle.graphs import Traits
    from tests.graphdb.oracle.syntax import Expression

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cypher.md"
Engines: TypeAlias = tuple[str, ...]
Rows: TypeAlias = "list[list[Any]]"
EMBEDDED: Engines = ("ladybug", "ryugraph")
LADYBUG: Engines = ("ladybug",)
RYUGRAPH: Engines = ("ryugraph",)
FALKORDB: Engines = ("falkordb",)
NAN = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`expected` is openCypher's answer to the probe on `graphs.small()`, `actual` the engine's."""

    name: str
    engines: Engines
    text: str
    probe: str
    expected: Rows | Literal["an error"]
    actual: Rows | Literal["refused", "crashed"]
    parameters: dict[str, Any] = field(default_factory=dict)
    refused_too: tuple[str, ...] = ()
    """Other queries that the text speaks of and that are refused."""
    feature: Callable[[Query, Traits], bool] | None = None
    """Whether a query meets it on a graph with those traits."""
    is_met_in_reference: bool = False
    """Whether it depends on the data which queries meet it: the reference says so when it does."""


# which queries meet a difference


def _has(query: Query, kind: type, test: Callable[[Any], bool] = lambda _: True) -> bool:
    return any(isinstance(part, kind) and test(part) for part in walk(query.clauses))


def _compares_with_null_list(query: Query, _: Traits) -> bool:
    def has_null(condition: Binary) -> bool:
        match condition:
            case Binary("IN", _, Items(items)):
                return Constant(None) in items
            case Binary("IN", _, Parameter(name)):
                values = query.parameters[name]
                return isinstance(values, list) and None in values
        return False

    return _has(query, Binary, has_null)


def _counts_distinct_beside_nan(query: Query, traits: Traits) -> bool:
    def is_one(projection: Projection) -> bool:
        aggregates = [
            c.expression for c in projection.columns if isinstance(c.expression, Aggregate)
        ]
        keys = [c.expression for c in projection.columns if not isinstance(c.expression, Aggregate)]
        return any(a.distinct for a in aggregates) and any(is_double(query, key) for key in keys)

    return traits.nan and _has(query, Projection, is_one)


def _loses_an_aggregate(query: Query, _: Traits) -> bool:
    def is_one(projection: Projection) -> bool:
        kinds = [
            c.expression.distinct for c in projection.columns if isinstance(c.expression, Aggregate)
        ]
        return (
            len(kinds) < len(projection.columns)
            and True in kinds
            and False in kinds[kinds.index(True) :]
        )

    return _has(query, Projection, is_one)


def _closes_a_pattern(query: Query, _: Traits) -> bool:
    def is_closed(clause: Match) -> bool:
        seen: set[str] = set()
        for pattern in clause.patterns:
            names = _nodes(pattern)
            if len(names) != len(set(names)) or len(seen & set(names)) > 1:
                return True
            seen |= set(names)
        return False

    return _has(query, Match, is_closed)


def _nodes(pattern: Pattern) -> list[str]:
    return [pattern.start.variable, *(node.variable for _, node in pattern.steps)]


def _asks_null_outside_of_optional(query: Query, traits: Traits) -> bool:
    """What was there before and may be null, in the WHERE of an OPTIONAL MATCH."""
    nulls = Nulls.of(query, traits)
    before: set[str] = set()
    for clause in query.clauses:
        if isinstance(clause, Match) and clause.optional:
            parts = (part for part in walk(clause.where) if isinstance(part, Variable | Attribute))
            if any(_variables(part) & before and nulls.can_be(part) for part in parts):
                return True
        before |= _bound(clause)
    return False


def _variables(part: object) -> set[str]:
    names = {one.name for one in walk(part) if isinstance(one, Variable)}
    return names | {one.variable for one in walk(part) if isinstance(one, Attribute)}


def _bound(clause: object) -> set[str]:
    match clause:
        case Match():
            named = [
                part
                for part in walk(clause.patterns)
                if isinstance(part, NodePattern | EdgePattern | Pattern)
            ]
            return {part.variable for part in named if part.variable is not None}
        case Unwind():
            return {clause.variable}
        case Projection():
            return {column.name for column in clause.columns}
    return set()


def _uses_constant_aggregate_in_match(query: Query, _: Traits) -> bool:
    """A column that was aggregated from constants, in the WHERE of a later MATCH."""
    names: set[str] = set()
    for clause in query.clauses:
        if isinstance(clause, Match) and _variables(clause.where) & names:
            return True
        if isinstance(clause, Projection):
            names = {
                c.name
                for c in clause.columns
                if (isinstance(c.expression, Aggregate) and not _variables(c))
                or _variables(c) & names
            }
    return False


def _groups(query: Query, test: Callable[[Expression], bool]) -> bool:
    """Whether a column that is grouped by, or told apart by DISTINCT, is one of those."""

    def is_one(projection: Projection) -> bool:
        keys = [c.expression for c in projection.columns if not isinstance(c.expression, Aggregate)]
        return (projection.distinct or len(keys) < len(projection.columns)) and any(map(test, keys))

    return _has(query, Projection, is_one)


def _groups_by_relationship(query: Query, _: Traits) -> bool:
    """One without direction, or of a type between several pairs of labels."""
    edges = {
        part.variable
        for part in walk(query.clauses)
        if isinstance(part, EdgePattern)
        and (part.direction == "both" or part.types not in (("LOVES",), ("HAS",)))
    }
    return _groups(query, lambda key: isinstance(key, Variable) and key.name in edges)


def _groups_by_nan(query: Query, traits: Traits) -> bool:
    return traits.nan and _groups(query, lambda key: is_double(query, key))


def is_double(query: Query, expression: Expression) -> bool:
    """Whether there is a DOUBLE in it; of a column of a WITH, in what it was made of."""
    columns = {
        column.name: column.expression
        for clause in query.clauses
        if isinstance(clause, Projection)
        for column in clause.columns
        if column.expression != Variable(column.name)
    }

    def is_one(part: object) -> bool:
        match part:
            case Attribute(_, name):
                return name in ("f", "g")
            case Constant(value):
                return isinstance(value, float)
            case Parameter(name):
                return isinstance(query.parameters[name], float)
            case Variable(name) if name in columns:
                return is_double(query, columns[name])
            case Aggregate("avg", _):
                return True
        return False

    return any(map(is_one, walk(expression)))


def _divides_wide(query: Query, traits: Traits) -> bool:
    return traits.wide and _has(query, Binary, lambda binary: binary.operator == "/")


def _unwinds_nothing(query: Query, _: Traits) -> bool:
    def is_empty(clause: Unwind) -> bool:
        match clause.expression:
            case Parameter(name):
                values = query.parameters[name]
                return isinstance(values, list) and all(value is None for value in values)
            case Items(items):
                return all(item == Constant(None) for item in items)
        return False

    return _has(query, Unwind, is_empty)


def _aggregates_an_aggregate(query: Query, _: Traits) -> bool:
    """A column that was aggregated, both by itself and in another aggregate."""
    names: set[str] = set()
    for clause in query.clauses:
        if isinstance(clause, Projection):
            aggregates = tuple(c for c in clause.columns if isinstance(c.expression, Aggregate))
            keys = tuple(c for c in clause.columns if not isinstance(c.expression, Aggregate))
            if _variables(aggregates) & _variables(keys) & names:
                return True
            names |= {column.name for column in aggregates}
    return False


def _compares_far_dates(query: Query, traits: Traits) -> bool:
    def is_date(part: object) -> bool:
        if isinstance(part, Attribute):
            return part.name == "d"
        return isinstance(part, Constant) and isinstance(part.value, dt.date)

    has_date = any(is_date(part) for part in walk(query.clauses))
    compares = _has(query, Binary, lambda b: b.operator in ("<", "<=", ">", ">="))
    ranks = _has(query, Aggregate, lambda a: a.function in ("min", "max"))
    sorts = _has(query, Projection, lambda p: bool(p.order))
    return traits.wide and has_date and (compares or ranks or sorts)


def _sorts_nan(query: Query, traits: Traits) -> bool:
    def is_one(projection: Projection) -> bool:
        return bool(projection.order) and any(
            is_double(query, column.expression) for column in projection.columns
        )

    return traits.nan and _has(query, Projection, is_one)


def _cuts_what_is_optional(query: Query, _: Traits) -> bool:
    """`substring` of something that an OPTIONAL MATCH bound, or that was made of it."""
    names: set[str] = set()
    for clause in query.clauses:
        if isinstance(clause, Match) and clause.optional:
            names |= _bound(clause)
        elif isinstance(clause, Projection):
            names |= {
                column.name for column in clause.columns if _variables(column.expression) & names
            }
    return _has(
        query, Call, lambda call: call.function == "substring" and bool(_variables(call) & names)
    )


def _matches_after_optional(query: Query, _: Traits) -> bool:
    optional = False
    for clause in query.clauses:
        if isinstance(clause, Match):
            if optional and not clause.optional:
                return True
            optional = clause.optional
        elif isinstance(clause, Projection):
            optional = False
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Nulls:
    """Which expressions of a query may be null on a graph; a name means the same wherever it is."""

    parameters: dict[str, Any]
    has_nulls: bool
    names: set[str] = field(default_factory=set)
    """Variables that may be null."""

    @classmethod
    def of(cls, query: Query, traits: Traits) -> Nulls:
        nulls = cls(parameters=query.parameters, has_nulls=traits.nulls)
        seen: set[str] = set()
        for clause in query.clauses:
            match clause:
                case Match(optional=True):
                    nulls.names.update(_bound(clause) - seen)
                case Unwind(expression, variable) if nulls._has_null(expression):
                    nulls.names.add(variable)
                case Projection(columns):
                    nulls.names.update(
                        column.name for column in columns if nulls.can_be(column.expression)
                    )
            seen |= _bound(clause)
        return nulls

    def can_be(self, expression: Expression) -> bool:  # noqa: C901 - one case a kind
        match expression:
            case Constant(value):
                return value is None
            case Parameter(name):
                return self.parameters[name] is None
            case Variable(name):
                return name in self.names
            case Attribute(variable, name):
                return variable in self.names or (self.has_nulls and name not in ("id", "name"))
            case Unary("IS NULL" | "IS NOT NULL", _) | Items():
                return False
            case Unary(_, operand):
                return self.can_be(operand)
            case Binary("IN", item, items):
                return self.can_be(item) or self._has_null(items)
            case Binary(_, left, right) | Joined(left, right):
                return self.can_be(left) or self.can_be(right)
            case Call("coalesce", arguments):
                return all(map(self.can_be, arguments))
            case Call(_, arguments):
                return any(map(self.can_be, arguments))
            case Case(_, then, otherwise):
                return otherwise is None or self.can_be(then) or self.can_be(otherwise)
            case Aggregate(function, _):
                return function != "count"
        raise TypeError(expression)

    def _has_null(self, items: Expression) -> bool:
        match items:
            case Items(values):
                return any(map(self.can_be, values))
            case Parameter(name):
                values = self.parameters[name]
                return values is None or (isinstance(values, list) and None in values)
        return self.can_be(items)


# the list

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        name="walks",
        engines=(*EMBEDDED, *FALKORDB),
        text="One relationship may be used twice in a pattern.",
        probe="MATCH (a:P {id: 4})-[e:K]->(b:P)-[f:K]->(c:P) RETURN count(*) AS n",
        expected=[[0]],
        actual=[[1]],
    ),
    Difference(
        name="loops_twice",
        engines=EMBEDDED,
        text="A relationship from a node to itself is met twice by a pattern without direction.",
        probe="MATCH (a:P {id: 4})-[e:K]-(b:P) RETURN count(*) AS n",
        expected=[[1]],
        actual=[[2]],
    ),
    Difference(
        name="closed_patterns",
        engines=EMBEDDED,
        text="A pattern that comes back to a node, joined with another, counts parallel"
        " relationships of its last"
        " step once.",
        probe="MATCH (r:R)<-[:H]-(p:P), (r)-[:M]->(q:Q)<-[:M]-(r) RETURN count(*) AS n",
        expected=[[6]],
        actual=[[3]],
        feature=_closes_a_pattern,
    ),
    Difference(
        name="variable_length",
        engines=FALKORDB,
        text="A path of variable length does not go on from a node that it has met before, and one"
        " that returns to its"
        " start has its nodes and relationships in the wrong order.",
        probe="MATCH (a:P)-[:K*2..2]->(b:P) WHERE a.id > 2 RETURN a.id AS i, b.id AS j ORDER BY i,"
        " j",
        expected=[[3, 1], [3, 2], [3, 2]],
        actual=[[3, 2], [3, 2]],
        is_met_in_reference=True,
    ),
    Difference(
        name="relationships_of_a_path",
        engines=FALKORDB,
        text="The variable of a relationship of variable length is a path, or one relationship, and"
        " not a list. Name"
        " the path, as in `p = (a)-[:K*1..2]->(b)`, and ask for `relationships(p)`.",
        probe="MATCH (a:P {id: 2})-[e:K*2..2]->(b:P {id: 1}) RETURN size(e) AS n",
        expected=[[2]],
        actual="refused",
    ),
    Difference(
        name="every_variable",
        engines=FALKORDB,
        text="A `*` cannot stand for the variables after DISTINCT, beside an aggregate or in a"
        " UNION, where a pattern"
        " has relationships and no name. Write their names.",
        probe="MATCH (a:P {id: 1})-[:K]->(b:P) WITH DISTINCT * RETURN b.id AS n",
        expected=[[2]],
        actual="refused",
        refused_too=(
            "MATCH (a:P {id: 1})-[:K]->(b:P) WITH *, count(*) AS c RETURN c",
            "MATCH (a:P)-[:K]->(b:P) RETURN * UNION MATCH (a:P)-[:K]->(b:P) RETURN *",
        ),
    ),
    Difference(
        name="zero_length",
        engines=RYUGRAPH,
        text="The path of no step from a node with a relationship to itself has length 1.",
        probe="MATCH p = (a:P {id: 4})-[:K*0..1]->(b:P) RETURN length(p) AS l ORDER BY l",
        expected=[[0], [1]],
        actual=[[1], [1]],
    ),
    Difference(
        name="optional_is_null",
        engines=EMBEDDED,
        text="In the WHERE of an OPTIONAL MATCH, a null property of what was matched before lets"
        " nothing match,"
        " whatever the condition says of it. Compute the condition in a WITH before.",
        probe="MATCH (a:P) OPTIONAL MATCH (b:P) WHERE a.s IS NULL RETURN count(*) AS n",
        expected=[[7]],
        actual=[[4]],
        feature=_asks_null_outside_of_optional,
    ),
    Difference(
        name="optional_of_several_steps",
        engines=FALKORDB,
        text="An OPTIONAL MATCH of several steps gives what its first steps match, though the whole"
        " does not.",
        probe="MATCH (a:P {id: 2}) OPTIONAL MATCH (a)-[e:K]->(b:P)-[:H]->(r:R) RETURN b.id AS b,"
        " r.id AS r",
        expected=[[None, None]],
        actual=[[3, None]],
        is_met_in_reference=True,
    ),
    Difference(
        name="match_after_optional",
        engines=FALKORDB,
        text="A MATCH after an OPTIONAL MATCH needs a WITH between them.",
        probe="OPTIONAL MATCH (a:P) MATCH (b:P) RETURN count(*) AS n",
        expected=[[16]],
        actual="refused",
        feature=_matches_after_optional,
    ),
    Difference(
        name="node_alone",
        engines=LADYBUG,
        text="A node that an OPTIONAL MATCH bound cannot stand alone in the pattern of a later"
        " MATCH.",
        probe="OPTIONAL MATCH (a:P) MATCH (b:P), (a) RETURN count(*) AS n",
        expected=[[16]],
        actual="refused",
    ),
    Difference(
        name="in_ignores_null",
        engines=EMBEDDED,
        text="`IN` of a list with null is false where it should be null.",
        probe="RETURN 2 IN [1, null] AS x",
        expected=[[None]],
        actual=[[False]],
    ),
    Difference(
        name="null_in_list",
        engines=RYUGRAPH,
        text="A null in the list of an `IN` equals 0 and the empty text.",
        probe="MATCH (n:P {id: 4}) RETURN n.s IN ['Ada', null] AS x",
        expected=[[None]],
        actual=[[True]],
        feature=_compares_with_null_list,
    ),
    Difference(
        name="sort_without_cut",
        engines=EMBEDDED,
        text="WITH … ORDER BY needs a SKIP or a LIMIT.",
        probe="MATCH (n:P) WITH n.id AS x ORDER BY x RETURN x",
        expected=[[1], [2], [3], [4]],
        actual="refused",
    ),
    Difference(
        name="sum_of_nothing_is_null",
        engines=EMBEDDED,
        text="The sum of no rows is null and not 0.",
        probe="MATCH (n:P) WHERE n.id > 99 RETURN sum(n.id) AS x",
        expected=[[0]],
        actual=[[None]],
    ),
    Difference(
        name="lost_aggregates",
        engines=RYUGRAPH,
        text="After an aggregate with DISTINCT, one without it is lost where there are groups. Such"
        " a query is refused:"
        " put the aggregates with DISTINCT last.",
        probe="MATCH (n:P) RETURN n.b AS b, count(DISTINCT n.m) AS d, count(*) AS n",
        expected=[[True, 2, 2], [None, 1, 1], [False, 0, 1]],
        actual="refused",
        feature=_loses_an_aggregate,
    ),
    Difference(
        name="collect_of_nothing_is_null",
        engines=RYUGRAPH,
        text="`collect` of no rows is null and not an empty list.",
        probe="MATCH (n:P) WHERE n.id > 99 RETURN collect(n.id) AS x",
        expected=[[[]]],
        actual=[[None]],
    ),
    Difference(
        name="sum_is_a_double",
        engines=FALKORDB,
        text="The sum of integers is a DOUBLE: beyond 2⁵³ it is not exact.",
        probe="UNWIND [9007199254740993, 0] AS x RETURN sum(x) AS x",
        expected=[[9007199254740993]],
        actual=[[9007199254740990.0]],
    ),
    Difference(
        name="aggregate_of_aggregate",
        engines=RYUGRAPH,
        text="A column that was aggregated cannot be aggregated again beside itself.",
        probe="MATCH (n:P) WITH n.b AS b, count(*) AS c RETURN c AS d, sum(c) AS e",
        expected=[[2, 2], [1, 2]],
        actual="refused",
        feature=_aggregates_an_aggregate,
    ),
    Difference(
        name="aggregate_in_a_condition",
        engines=EMBEDDED,
        text="An aggregate of constants cannot be in the condition of a later MATCH.",
        probe="WITH sum(1) AS g MATCH (p:P) WHERE p.f > g RETURN count(*) AS n",
        expected=[[2]],
        actual="refused",
        feature=_uses_constant_aggregate_in_match,
    ),
    Difference(
        name="count_of_null",
        engines=EMBEDDED,
        text="A literal null has no type and cannot be counted.",
        probe="RETURN count(null) AS x",
        expected=[[0]],
        actual="refused",
    ),
    Difference(
        name="distinct_in_groups",
        engines=EMBEDDED,
        text="A DISTINCT aggregate beside a grouping DOUBLE that may be NaN crashes the engine,"
        " which is restarted.",
        probe="UNWIND [0.0 / 0.0, 1.0] AS f RETURN f, collect(DISTINCT true) AS c",
        expected=[[NAN, [True]], [1.0, [True]]],
        actual="crashed",
        feature=_counts_distinct_beside_nan,
    ),
    Difference(
        name="grouping_by_relationship",
        engines=EMBEDDED,
        text="A relationship that is met in both directions is two where it is grouped by, and one"
        " of a type between"
        " several pairs of labels may be lost there, which is an error. Group by `id(e)`.",
        probe="MATCH (a:P)-[e:K]-(b:P) WITH e, count(*) AS n RETURN count(*) AS n",
        expected=[[6]],
        actual=[[12]],
        feature=_groups_by_relationship,
    ),
    Difference(
        name="nan_is_no_group",
        engines=EMBEDDED,
        text="Each NaN is a group of its own.",
        probe="UNWIND [0.0 / 0.0, 0.0 / 0.0] AS f WITH f, count(*) AS n RETURN count(*) AS n",
        expected=[[1]],
        actual=[[2]],
        feature=_groups_by_nan,
    ),
    Difference(
        name="contains_empty",
        engines=EMBEDDED,
        text="`CONTAINS ''` is false, or now and then true where nodes have several labels.",
        probe="RETURN 'abc' CONTAINS '' AS x",
        expected=[[True]],
        actual=[[False]],
        is_met_in_reference=True,
    ),
    Difference(
        name="text_plus_null_is_text",
        engines=EMBEDDED,
        text="Text + null is the text and not null.",
        probe="MATCH (n:P {id: 3}) RETURN n.s + 'x' AS x",
        expected=[[None]],
        actual=[["x"]],
    ),
    Difference(
        name="substring_counts_from_one",
        engines=EMBEDDED,
        text="`substring` counts from 1, and always takes a length.",
        probe="RETURN substring('hello', 1, 2) AS x",
        expected=[["el"]],
        actual=[["he"]],
    ),
    Difference(
        name="substring_beyond_the_end",
        engines=EMBEDDED,
        text="`substring` from beyond the end of a text that is not ASCII gives its last"
        " character.",
        probe="RETURN substring('ß', 2, 1) AS x",
        expected=[[""]],
        actual=[["ß"]],
    ),
    Difference(
        name="substring_of_optional",
        engines=EMBEDDED,
        text="`substring` of what an OPTIONAL MATCH did not match is null for some of what it did"
        " match as well."
        " Use `left` and `right`, or `substring(coalesce(x, ''), …)`.",
        probe="MATCH (a:P) OPTIONAL MATCH (a)-[:H]->(r:R)-[:M]->(q:Q) WITH substring(q.name, 1, 1)"
        " AS s"
        " RETURN count(s) AS n",
        expected=[[3]],
        actual=[[2]],
        feature=_cuts_what_is_optional,
    ),
    Difference(
        name="lists_count_from_one",
        engines=EMBEDDED,
        text="The items of a list are counted from 1.",
        probe="RETURN [1, 2][1] AS x",
        expected=[[2]],
        actual=[[1]],
    ),
    Difference(
        name="empty_lists",
        engines=EMBEDDED,
        text="An empty list is one of integers.",
        probe="UNWIND [] AS x RETURN x + 'a' AS y",
        expected=[],
        actual="refused",
        feature=_unwinds_nothing,
    ),
    Difference(
        name="narrow_integers",
        engines=EMBEDDED,
        text="Integers of fewer than 64 bits stay so: their sum may overflow, which is an error,"
        " and a sum with a wider"
        " one cannot be compared with a DOUBLE.",
        probe="MATCH (n:P) WHERE n.f < n.m + 1 RETURN count(*) AS n",
        expected=[[2]],
        actual="refused",
    ),
    Difference(
        name="nan_is_below",
        engines=EMBEDDED,
        text="NaN is less than any number, and any number less than NaN.",
        probe="RETURN 0.0 / 0.0 < 1.5 AS x, 1.5 < 0.0 / 0.0 AS y",
        expected=[[False, False]],
        actual=[[True, True]],
    ),
    Difference(
        name="nan_hides_the_least",
        engines=EMBEDDED,
        text="`min` and `max` forget what came before a NaN.",
        probe="UNWIND [1.5, 0.0 / 0.0, 9.0] AS f RETURN min(f) AS x",
        expected=[[1.5]],
        actual=[[9.0]],
    ),
    Difference(
        name="nan_is_not_sorted",
        engines=FALKORDB,
        text="A NaN among numbers is not sorted, and neither is what stands beside it.",
        probe="UNWIND [1.0, 0.0 / 0.0, 0.5] AS f RETURN f ORDER BY f",
        expected=[[0.5], [1.0], [NAN]],
        actual=[[1.0], [NAN], [0.5]],
        feature=_sorts_nan,
    ),
    Difference(
        name="far_dates",
        engines=FALKORDB,
        text="Dates and moments more than 68 years apart are compared and sorted the wrong way"
        " round.",
        probe="RETURN date('1900-01-01') < date('2000-01-01') AS x",
        expected=[[True]],
        actual=[[False]],
        feature=_compares_far_dates,
    ),
    Difference(
        name="fifteen_digits",
        engines=FALKORDB,
        text="A DOUBLE has 15 digits in an answer, whatever is stored.",
        probe="RETURN 0.1 + 0.2 AS x",
        expected=[[0.30000000000000004]],
        actual=[[0.3]],
    ),
    Difference(
        name="integers_wrap",
        engines=FALKORDB,
        text="An integer beyond 64 bits wraps round.",
        probe="RETURN 9223372036854775807 + 1 AS x",
        expected="an error",
        actual=[[-9223372036854775808]],
    ),
    Difference(
        name="large_division",
        engines=FALKORDB,
        text="Integers beyond 2⁵³ are divided as DOUBLEs.",
        probe="RETURN 9007199254740993 / 1 AS x",
        expected=[[9007199254740993]],
        actual=[[9007199254740992]],
        feature=_divides_wide,
    ),
    Difference(
        name="no_regular_expressions",
        engines=FALKORDB,
        text="There is no `=~`.",
        probe="RETURN 'a' =~ 'a.*' AS x",
        expected=[[True]],
        actual="refused",
    ),
    Difference(
        name="no_to_string",
        engines=EMBEDDED,
        text="There is no `toString`, `toInteger`, `toFloat`, `split` or `type`: use `CAST(x AS"
        " STRING)`,"
        " `string_split`, `label`.",
        probe="RETURN toString(1) AS x",
        expected=[["1"]],
        actual="refused",
    ),
    Difference(
        name="to_string_of_a_double",
        engines=FALKORDB,
        text="`toString` of a DOUBLE always has six decimals.",
        probe="RETURN toString(1.5) AS x",
        expected=[["1.5"]],
        actual=[["1.500000"]],
    ),
    Difference(
        name="round_to_digits",
        engines=EMBEDDED,
        text="`round` wants the number of decimals.",
        probe="RETURN round(2.5) AS x",
        expected=[[3.0]],
        actual="refused",
    ),
    Difference(
        name="counts_wrap",
        engines=EMBEDDED,
        text="A count beyond 64 bits wraps round without an error: of many patterns that share no"
        " node, or of a few"
        " over large labels.",
        probe="MATCH " + ", ".join(["(:P)"] * 32) + " RETURN count(*) AS n",
        expected=[[2**64]],
        actual=[[0]],
    ),
    Difference(
        name="null_in_nothing",
        engines=EMBEDDED,
        text="`null IN []` is null and not false.",
        probe="RETURN null IN [] AS x",
        expected=[[False]],
        actual=[[None]],
    ),
    Difference(
        name="quantified_nulls",
        engines=EMBEDDED,
        text="`all`, `any`, `none` and `single` take a condition that is null for false.",
        probe="RETURN all(x IN [1, null] WHERE x > 0) AS x",
        expected=[[None]],
        actual=[[False]],
    ),
    Difference(
        name="integers_beside_doubles",
        engines=(*EMBEDDED, *FALKORDB),
        text="Integers are compared with a DOUBLE as a DOUBLE: beyond 2⁵³ adjacent ones are equal.",
        probe="RETURN 9007199254740993 = 9007199254740992.0 AS x",
        expected=[[False]],
        actual=[[True]],
    ),
    Difference(
        name="case_when_null",
        engines=FALKORDB,
        text="`CASE x WHEN null` matches null. Write `CASE WHEN x IS NULL`.",
        probe="MATCH (n:P) RETURN n.id AS i, CASE n.b WHEN null THEN 1 ELSE 0 END AS x ORDER BY i",
        expected=[[1, 0], [2, 0], [3, 0], [4, 0]],
        actual=[[1, 0], [2, 1], [3, 0], [4, 0]],
    ),
    Difference(
        name="offset_in_a_cast",
        engines=LADYBUG,
        text="`CAST(… AS TIMESTAMP)` ignores the offset of a text. Use `timestamp(…)`, which does"
        " not.",
        probe="RETURN CAST('2024-03-31 02:30:00+02' AS TIMESTAMP) AS x",
        expected=[[dt.datetime(2024, 3, 31, 0, 30)]],  # noqa: DTZ001 - a TIMESTAMP has no zone
        actual=[[dt.datetime(2024, 3, 31, 2, 30)]],  # noqa: DTZ001 - the same
    ),
    Difference(
        name="days_overflow",
        engines=FALKORDB,
        text="A day that a month does not have is one of the next month.",
        probe="RETURN date('2024-02-30') AS x",
        expected="an error",
        actual=[[dt.date(2024, 3, 1)]],
    ),
    Difference(
        name="logarithm_of_ten",
        engines=EMBEDDED,
        text="`log` is the logarithm to the base 10; the natural one is `ln`.",
        probe="RETURN log(100) AS x",
        expected=[[4.605170185988092]],
        actual=[[2.0]],
    ),
    Difference(
        name="power_from_the_right",
        engines=FALKORDB,
        text="`^` is computed from the right. Write brackets.",
        probe="RETURN 2 ^ 3 ^ 2 AS x",
        expected=[[64.0]],
        actual=[[512.0]],
    ),
    Difference(
        name="cast_to_text",
        engines=EMBEDDED,
        text="`CAST` of a DOUBLE to STRING has six decimals.",
        probe="RETURN CAST(0.123456789 AS STRING) AS x",
        expected=[["0.123456789"]],
        actual=[["0.123457"]],
    ),
    Difference(
        name="cast_to_integer",
        engines=EMBEDDED,
        text="`CAST` of a DOUBLE to an integer rounds, halves to the even one, and does not cut.",
        probe="RETURN CAST(2.5 AS INT64) AS x, CAST(3.5 AS INT64) AS y",
        expected=[[2, 3]],
        actual=[[2, 4]],
    ),
    Difference(
        name="negative_lengths",
        engines=EMBEDDED,
        text="`left` and `right` of a negative length leave so many characters out.",
        probe="RETURN left('abc', -1) AS x",
        expected="an error",
        actual=[["ab"]],
    ),
    Difference(
        name="characters_as_seen",
        engines=EMBEDDED,
        text="A character is what a reader sees: to `size`, `reverse`, `left`, `right` and"
        " `substring` a letter and its"
        " combining marks are one, and so is an emoji of several.",
        probe="RETURN size('👨‍👩‍👧') AS x",
        expected=[[5]],
        actual=[[1]],
    ),
    Difference(
        name="one_character_for_one",
        engines=(*EMBEDDED, *FALKORDB),
        text="`toUpper` and `toLower` put one character in the place of one.",
        probe="RETURN toUpper('ß') AS x",
        expected=[["SS"]],
        actual=[["ẞ"]],
    ),
    Difference(
        name="trim_of_spaces",
        engines=FALKORDB,
        text="`trim` takes spaces off, and no other white space.",
        probe="RETURN trim('\\t a') AS x",
        expected=[["a"]],
        actual=[["\t a"]],
    ),
    Difference(
        name="replacing_nothing",
        engines=LADYBUG,
        text="`replace` of the empty text changes nothing.",
        probe="RETURN replace('ab', '', 'x') AS x",
        expected=[["xaxbx"]],
        actual=[["ab"]],
    ),
    Difference(
        name="slices_count_from_one",
        engines=EMBEDDED,
        text="The items of a slice are counted from 1 as well, and its end is in it.",
        probe="RETURN [1, 2, 3][1..2] AS x",
        expected=[[[2]]],
        actual=[[[1, 2]]],
    ),
    Difference(
        name="items_beyond_the_end",
        engines=EMBEDDED,
        text="There is no item beyond the end of a list, not even null.",
        probe="RETURN [1, 2][5] AS x",
        expected=[[None]],
        actual="refused",
    ),
    Difference(
        name="items_of_text",
        engines=EMBEDDED,
        text="A text has items, which are its characters.",
        probe="RETURN 'abc'[1] AS x",
        expected="an error",
        actual=[["a"]],
    ),
    Difference(
        name="items_of_one_type",
        engines=EMBEDDED,
        text="The items of a list have one type, and `+` joins lists with lists and texts with"
        " texts.",
        probe="RETURN [1, 'a'] AS x",
        expected=[[[1, "a"]]],
        actual="refused",
        refused_too=("RETURN [1] + 2 AS x", "RETURN 'a' + 1 AS x", "RETURN 1 + 'a' AS x"),
    ),
    Difference(
        name="mixed_lists_are_text",
        engines=RYUGRAPH,
        text="Truth values and numbers in one list become texts.",
        probe="RETURN [true, 1] AS x",
        expected=[[[True, 1]]],
        actual=[[["True", "1"]]],
    ),
    Difference(
        name="percentiles_are_doubles",
        engines=FALKORDB,
        text="`percentileDisc` of integers is a DOUBLE.",
        probe="UNWIND [1, 2, 3, 4] AS i RETURN percentileDisc(i, 0.5) AS x",
        expected=[[2]],
        actual=[[2.0]],
    ),
    Difference(
        name="searching_in_null",
        engines=RYUGRAPH,
        text="`IN` and `list_contains` of a literal null, or of a parameter that is null, are"
        " refused.",
        probe="RETURN 1 IN null AS x",
        expected=[[None]],
        actual="refused",
        refused_too=(
            "MATCH (n:P) WHERE NOT n.id IN (null) RETURN n.id",
            "RETURN list_contains(null, 1) AS x",
        ),
    ),
    Difference(
        name="searching_in_computed_null",
        engines=RYUGRAPH,
        text="`IN` of a null of no type that was computed before crashes the engine, which is"
        " restarted.",
        probe="WITH null AS l RETURN 1 IN l AS x",
        expected=[[None]],
        actual="crashed",
    ),
    Difference(
        name="values_with_null",
        engines=EMBEDDED,
        text="Lists and maps are compared as if a null in them were a value, and maps are equal"
        " only"
        " with their keys in the same order.",
        probe="RETURN [1, null] = [1, null] AS x, {a: null} = {a: null} AS y, {a: 1, b: 2} = {b: 2,"
        " a: 1} AS z",
        expected=[[None, None, True]],
        actual=[[True, True, False]],
    ),
    Difference(
        name="texts_as_other_types",
        engines=EMBEDDED,
        text="A text is compared with a number or a date as a value of its type; one that is none"
        " is an error.",
        probe="RETURN '1' = 1 AS x, date('2024-01-01') = '2024-01-01' AS y",
        expected=[[False, False]],
        actual=[[True, True]],
        refused_too=("RETURN 'a' = 1 AS x",),
    ),
    Difference(
        name="labels",
        engines=EMBEDDED,
        text="`labels` is one label and not a list, also of a node that an OPTIONAL MATCH did not"
        " find.",
        probe="OPTIONAL MATCH (a:P {id: 99}) RETURN labels(a) AS x",
        expected=[[None]],
        actual=[["P"]],
    ),
    Difference(
        name="wrapping_functions",
        engines=EMBEDDED,
        text="`factorial`, shifts of bits and `epoch_ms` wrap round where 64 bits do not hold the"
        " result.",
        probe="RETURN factorial(21) AS x, bitshift_left(1, 64) AS y",
        expected="an error",
        actual=[[-4249290049419214848, 1]],
    ),
    Difference(
        name="offsets_of_zones",
        engines=EMBEDDED,
        text="An offset from UTC may be more than a day.",
        probe="RETURN timestamp('2024-03-31 02:30:00+25:99') AS x",
        expected="an error",
        actual=[[dt.datetime(2024, 3, 29, 23, 51)]],  # noqa: DTZ001 - a TIMESTAMP has no zone
    ),
    Difference(
        name="patterns_that_are_none",
        engines=EMBEDDED,
        text="No text matches a regular expression that cannot be read; it is no error.",
        probe="RETURN 'a' =~ '[' AS x",
        expected="an error",
        actual=[[False]],
    ),
    Difference(
        name="signs_of_exponents",
        engines=EMBEDDED,
        text="An exponent has no `+`: write `1e22`, or use a parameter.",
        probe="RETURN 1e+22 AS x",
        expected=[[1e22]],
        actual="refused",
    ),
    Difference(
        name="negative_lengths",
        engines=EMBEDDED,
        text="`substring` of a negative length crashes the engine, which is restarted.",
        probe="RETURN substring('abc', 1, -1) AS x",
        expected="an error",
        actual="crashed",
    ),
    Difference(
        name="skipping_everything",
        engines=EMBEDDED,
        text="In a WITH, or beside a UNION, SKIP far beyond the end of what ORDER BY sorted crashes"
        " the engine, which is restarted. At the end of a query it does not.",
        probe="MATCH (a:P) WITH a.id AS x ORDER BY x SKIP 4294967295 LIMIT 10 RETURN x",
        expected=[],
        actual="crashed",
    ),
    Difference(
        name="ranges_of_everything",
        engines=(*EMBEDDED, *FALKORDB),
        text="A `range` of more than 2⁶³ integers is empty.",
        probe="RETURN size(range(-9223372036854775808, 9223372036854775807)) AS x",
        expected="an error",
        actual=[[0]],
    ),
    Difference(
        name="far_integers",
        engines=FALKORDB,
        text="Integers more than 2⁶³ apart are compared and sorted the wrong way round, and `min`"
        " and"
        " `max` of them are wrong.",
        probe="RETURN -9223372036854775807 < 9223372036854775807 AS x",
        expected=[[True]],
        actual=[[False]],
    ),
    Difference(
        name="truth_values_as_keys",
        engines=FALKORDB,
        text="A number that is a node's key equals the truth values where the index is asked: 1 is"
        " true and 0 false.",
        probe="MATCH (a:P {id: true}) RETURN a.id AS x",
        expected=[],
        actual=[[1]],
    ),
    Difference(
        name="positions_beyond_32_bits",
        engines=FALKORDB,
        text="Positions in a list have 32 bits; beyond these they wrap round, and so do the ends of"
        " a slice.",
        probe="RETURN [1, 2, 3][4294967296] AS x",
        expected=[[None]],
        actual=[[1]],
    ),
    Difference(
        name="large_doubles_as_integers",
        engines=FALKORDB,
        text="`toInteger` of a DOUBLE beyond 64 bits, or of NaN, is the least integer.",
        probe="RETURN toInteger(1e300) AS x",
        expected="an error",
        actual=[[-(2**63)]],
    ),
    Difference(
        name="clock_times_that_are_none",
        engines=FALKORDB,
        text="A moment with a clock time that is none is midnight.",
        probe="RETURN localdatetime('2024-03-31T25:30:00') AS x",
        expected="an error",
        actual=[[dt.datetime(2024, 3, 31)]],  # noqa: DTZ001 - a TIMESTAMP has no zone
    ),
    Difference(
        name="durations_that_are_none",
        engines=FALKORDB,
        text="A duration with a fraction of a second, a sign or a mistake is null.",
        probe="RETURN duration('PT6.5S') AS x, duration('six days') AS y",
        expected="an error",
        actual=[[None, None]],
    ),
    Difference(
        name="chained_comparisons",
        engines=EMBEDDED,
        text="Comparisons cannot be chained. Write AND.",
        probe="RETURN 1 < 2 < 3 AS x",
        expected=[[True]],
        actual="refused",
    ),
    Difference(
        name="absent_functions",
        engines=EMBEDDED,
        text="There is no `head`, `last`, `tail`, `reduce`, `exp`, `rand`, `stDev`, no `keys` of a"
        " map and no list"
        " comprehension: use `list_extract`, `list_slice`, `list_reduce`, `list_filter`,"
        " `list_transform`,"
        " `map_keys`.",
        probe="RETURN head([1, 2]) AS x",
        expected=[[1]],
        actual="refused",
        refused_too=(
            "RETURN last([1, 2]) AS x",
            "RETURN tail([1, 2]) AS x",
            "RETURN reduce(a = 0, x IN [1, 2] | a + x) AS x",
            "RETURN exp(1) AS x",
            "RETURN rand() AS x",
            "UNWIND [1, 2] AS i RETURN stDev(i) AS x",
            "RETURN keys({a: 1}) AS x",
            "RETURN [x IN [1, 2] | x * 2] AS x",
        ),
    ),
    Difference(
        name="absent_functions_of_ryugraph",
        engines=RYUGRAPH,
        text="There is no `replace`, `percentileDisc` or `percentileCont`.",
        probe="RETURN replace('aaa', 'a', 'b') AS x",
        expected=[["bbb"]],
        actual="refused",
        refused_too=(
            "UNWIND [1, 2] AS i RETURN percentileDisc(i, 0.5) AS x",
            "UNWIND [1, 2] AS i RETURN percentileCont(i, 0.5) AS x",
        ),
    ),
    Difference(
        name="absent_functions_of_falkordb",
        engines=FALKORDB,
        text="There is no `EXISTS { MATCH … }` or `COUNT { MATCH … }`, and `round` takes no number"
        " of decimals. Of what"
        " the other engines have, there is no `CAST`, `upper`, `lower` and `timestamp` of a text:"
        " use `toInteger`,"
        " `toUpper`, `toLower`, `localdatetime`.",
        probe="RETURN EXISTS { MATCH (n:P) WHERE n.id = 1 } AS x",
        expected=[[True]],
        actual="refused",
        refused_too=(
            "MATCH (n:P) RETURN COUNT { MATCH (n)-[:K]->(m:P) } AS x",
            "RETURN round(2.5, 0) AS x",
            "RETURN CAST('5' AS INT64) AS x",
            "RETURN upper('a') AS x",
            "RETURN lower('a') AS x",
            "RETURN timestamp('2024-03-31 02:30:00') AS x",
        ),
    ),
    Difference(
        name="intervals",
        engines=EMBEDDED,
        text="A duration is written in words, as in `interval('1 year 2 days')`.",
        probe="RETURN date('2024-02-28') + duration('P1D') AS x",
        expected=[[dt.date(2024, 2, 29)]],
        actual="refused",
    ),
    Difference(
        name="shortest_paths",
        engines=EMBEDDED,
        text="There is no `shortestPath`: use `-[e:K* SHORTEST 1..5]->`.",
        probe="MATCH p = shortestPath((a:P {id: 1})-[:K*1..5]->(b:P {id: 3})) RETURN length(p) AS"
        " x",
        expected=[[2]],
        actual="refused",
    ),
    Difference(
        name="label_conditions",
        engines=EMBEDDED,
        text="A label cannot be asked for in a condition: use `label(a) = 'P'`.",
        probe="MATCH (a) WHERE a:P RETURN count(*) AS n",
        expected=[[4]],
        actual="refused",
    ),
    Difference(
        name="literals",
        engines=(*EMBEDDED, *FALKORDB),
        text="Integers are decimal, and there is no `\\u` in a text: write the character.",
        probe="RETURN 0x1F AS x",
        expected=[[31]],
        actual="refused",
        refused_too=("RETURN '\\u00e9' AS x",),
    ),
    Difference(
        name="exists_needs_match",
        engines=(*EMBEDDED, *FALKORDB),
        text="A subquery begins with MATCH, and a mere pattern is none.",
        probe="MATCH (n:P) WHERE EXISTS { (n)-[:K]->() } RETURN count(*) AS n",
        expected=[[4]],
        actual="refused",
    ),
)
MODELLED = frozenset(one.name for one in fields(Dialect))
DIALECTS = {
    engine: Dialect(
        **{d.name: True for d in DIFFERENCES if engine in d.engines and d.name in MODELLED}
    )
    for engine in (*EMBEDDED, *FALKORDB)
}


MET = {
    engine: frozenset(d.name for d in DIFFERENCES if engine in d.engines and d.is_met_in_reference)
    for engine in (*EMBEDDED, *FALKORDB)
}


def excuse(engine: str, query: Query, traits: Traits) -> str | None:
    """The first difference that affects a query on an engine and that the reference lacks."""
    for difference in DIFFERENCES:
        if (
            engine in difference.engines
            and difference.feature is not None
            and difference.feature(query, traits)
        ):
            return difference.name
    return None


# the page

_HEAD = """# Cypher: where the engines differ

<!-- written by `python -m tests.graphdb.oracle.differences`; change the list there instead -->

Queries reach an engine as written, except for the rewrites listed at the end. Each engine departs
from [openCypher](https://opencypher.org) in its own way. This list comes from a comparison with a
reference implementation on random graphs and queries; the tests run the shown query of each line on
every engine. Apart from these differences, patterns, directions, WHERE with nulls, OPTIONAL MATCH,
WITH, UNWIND, aggregates, ORDER BY, SKIP, LIMIT, DISTINCT, parameters and the functions on texts and
numbers gave openCypher's results.
"""
_TAIL = """
## Rewrites by the graph server

- **Ladybug** drops an ORDER BY whose LIMIT is followed by an aggregation (`… WITH x ORDER BY x
  LIMIT 10 RETURN avg(x)`). The graph server inserts an `UNWIND` of one item before such a
  projection, which corrects the result.
- **Ladybug** loses rows of patterns that branch, such as
  `(a)-[:R]->(b), (a)-[:S]->(c), (b)-[:T]->(d)`, where a node has more than 2,048 neighbors, or a
  relationship several types or no direction. The graph server checks the plan of queries that could
  branch, and rewrites them so that nodes are scanned and joined, or the pattern is matched in parts
  (`WITH *` between them), until no rows are lost. A query that loses rows in every form is refused.
- **Ladybug and Ryugraph** lose rows where the condition of a `CASE` is a `CASE`, and Ryugraph
  returns other rows' values where it is a bare column (`CASE WHEN n.active THEN …`). The graph
  server compares such conditions with `true`, which corrects the result.
- **Ladybug and Ryugraph** take `CASE x WHEN null` for true whatever `x` is. The graph server
  rewrites `CASE a WHEN b` to `CASE WHEN a = b`, which corrects the result.
- **Ladybug** ignores the offset in `timestamp('2024-03-31 02:30:00+02')`. The graph server casts
  the text to `TIMESTAMP_TZ` first, which corrects the result.
- **Ladybug** gives an integer parameter the smallest type that fits it, so that `$p + $p` of 100
  overflows. Integer parameters, and lists of up to 1,000 of them, are written into the statement as
  literals.
- **Ryugraph** takes a condition that depends on parameters alone for true. Its parameters are
  written into the statement as literals. It stores wrong numbers for NaN, and for integers in a
  column with the least one of their type (-128 of `INT8`), and cannot store the UUID of zeros among
  others; a snapshot with one of these is refused (`DATA_LOAD_ERROR`). Its zone maps skip integers
  that it should compare with a DOUBLE; they are disabled. Queries whose aggregates it would lose,
  or that search in a literal null, are refused.
- **FalkorDB** does not find a key that is empty or begins or ends with a space by its index, so a
  label with such a key has no index and is scanned, and so is one with integers beyond 2⁵³, which
  the index stores as DOUBLEs. The index compares texts in lower case, and non-ASCII texts
  incorrectly: where a condition has `<`, `<=`, `>` or `>=` beside a text key, the graph server uses
  `coalesce(n.key)`, which bypasses the index. After a restart FalkorDB loses a node of an index, so
  indexes are rebuilt. NaN and infinity are supported.
- **FalkorDB** returns pairs of nodes where a query has no variable for the relationships between
  them: parallel relationships, paths through unnamed nodes, paths of a fixed length (`*2..2`) and
  patterns that share a node are counted once. The graph server names each pattern with
  relationships, so that every path counts. Counting all relationships takes about twice the time.
- **FalkorDB** uses 32 bits for SKIP and LIMIT, and so do **Ladybug and Ryugraph** for a SKIP after
  ORDER BY. Larger values are capped at 4,294,967,295, which no result reaches. Ladybug and Ryugraph
  crash where a SKIP far exceeds the number of sorted rows: a query that ends with such a clause
  first runs unsorted up to its first row, and if there is none, the result is empty.
- A query that crashes the engine does not fail other queries: the engine is restarted and they run
  again (see [the graph server](../guides/graph-server.md)).
"""


def page() -> str:
    lines = [_HEAD]
    for title, engines in (
        ("Ladybug and Ryugraph", EMBEDDED),
        ("Ladybug only", LADYBUG),
        ("Ryugraph only", RYUGRAPH),
        ("FalkorDB", FALKORDB),
    ):
        lines += [
            f"## {title}",
            "",
            "| difference | query | openCypher | engine |",
            "|---|---|---|---|",
        ]
        lines += [
            _line(d) for d in DIFFERENCES if set(engines) <= set(d.engines) and _belongs(d, engines)
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n" + _TAIL


def _belongs(difference: Difference, engines: Engines) -> bool:
    """Under both embedded engines, or under the one that it is of."""
    both = set(EMBEDDED) <= set(difference.engines)
    return engines in (EMBEDDED, FALKORDB) if both else True


def _line(difference: Difference) -> str:
    shown = (_shown(rows) for rows in (difference.expected, difference.actual))
    return (
        f"| {difference.text} | `{difference.probe.replace('|', chr(92) + '|')}` |"
        f" {' | '.join(shown)} |"
    )


def _shown(rows: Rows | str) -> str:
    if isinstance(rows, str):
        return rows
    return (
        "no rows"
        if not rows
        else "; ".join(", ".join(f"`{_value(value)}`" for value in row) for row in rows)
    )


def _value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if math.isnan(value):
            return "NaN"
        case str():
            return repr(value)
    return str(value)


if __name__ == "__main__":
    PAGE.write_text(page())
