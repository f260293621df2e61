"""Tests of the reference implementation itself."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import pytest

from tests.graphdb.oracle.comparison import same
from tests.graphdb.oracle.reference import (
    Dialect,
    Impossible,
    Reference,
    arithmetic,
    equal,
    sort_key,
)
from tests.graphdb.oracle.syntax import (
    Aggregate,
    Binary,
    Column,
    Constant,
    EdgePattern,
    Items,
    Match,
    NodePattern,
    Pattern,
    Projection,
    Query,
    Unary,
    Unwind,
    Variable,
)

GRAPH = nx.MultiDiGraph()
for name in "abc":
    GRAPH.add_node(name, label="N", properties={})
for number, (start, end) in enumerate([("a", "b"), ("a", "b"), ("b", "c"), ("c", "c")]):
    GRAPH.add_edge(start, end, type="T", number=number, properties={})


def value(operator: str, left: object, right: object) -> Any:
    return Reference(GRAPH).value(Binary(operator, Constant(left), Constant(right)), {})


@pytest.mark.parametrize("operator", ["AND", "OR", "XOR"])
def test_truth_has_three_values(operator: str) -> None:
    answers = {
        "AND": [True, False, None, False, False, False, None, False, None],
        "OR": [True, True, True, True, False, None, True, None, None],
        "XOR": [False, True, None, True, False, None, None, None, None],
    }
    values = (True, False, None)
    assert [value(operator, left, right) for left in values for right in values] == answers[
        operator
    ]


def test_null_and_nan_equal_nothing() -> None:
    assert [equal(None, None), equal(1, None), equal(math.nan, math.nan), equal(1, 1.0)] == [
        None,
        None,
        False,
        True,
    ]
    assert [equal([1, None], [1, 2]), equal([1, None], [2, None]), equal([1], [1])] == [
        None,
        False,
        True,
    ]


def test_in_is_null_where_a_null_could_have_been_it() -> None:
    reference = Reference(GRAPH)
    lists = ([1, None], [2, None], [2], [])
    values = [
        reference.value(Binary("IN", Constant(1), Items(tuple(map(Constant, items)))), {})
        for items in lists
    ]
    assert values == [True, None, False, False]


def test_division_is_towards_zero_and_by_zero_an_error() -> None:
    assert [arithmetic("/", -7, 2), arithmetic("%", -7, 2), arithmetic("%", 7, -2)] == [-3, -1, 1]
    with pytest.raises(Impossible):
        arithmetic("/", 1, 0)
    assert arithmetic("/", 1.0, 0.0) == math.inf


def test_numbers_come_before_nan_and_nan_before_null() -> None:
    ordered = sorted([None, math.nan, 2, -math.inf, 1.5], key=sort_key)
    assert ordered[:3] == [-math.inf, 1.5, 2]
    assert math.isnan(ordered[3])
    assert ordered[4] is None


def count(pattern: Pattern, dialect: Dialect | None = None) -> int:
    clauses = (Match((pattern,)), Projection((Column(Aggregate("count"), "n"),)))
    [row] = Reference(GRAPH, dialect or Dialect()).answer(Query(clauses))
    return int(row["n"])


@pytest.mark.parametrize(
    ("edge", "expected"),
    [
        (EdgePattern("out"), 4),
        (EdgePattern("in"), 4),
        (EdgePattern("both"), 7),
        (EdgePattern("out", ("U",)), 0),
        (EdgePattern("out", (), None, (2, 2)), 3),
        (EdgePattern("out", (), None, (1, 3)), 9),
    ],
    ids=str,
)
def test_a_pattern_uses_no_relationship_twice_and_a_loop_once(
    edge: EdgePattern, expected: int
) -> None:
    assert count(Pattern(NodePattern("x"), ((edge, NodePattern("y")),))) == expected


def test_two_steps_share_no_relationship() -> None:
    steps = ((EdgePattern("out"), NodePattern("y")), (EdgePattern("out"), NodePattern("z")))
    assert count(Pattern(NodePattern("x"), steps)) == 3
    assert count(Pattern(NodePattern("x"), steps), Dialect(walks=True)) == 4


def test_an_optional_match_that_finds_nothing_leaves_nulls() -> None:
    nothing = Match((Pattern(NodePattern("y", "Nobody")),), optional=True)
    clauses = (
        Match((Pattern(NodePattern("x")),)),
        nothing,
        Projection((Column(Variable("y"), "y"),)),
    )
    assert Reference(GRAPH).answer(Query(clauses)) == [{"y": None}] * 3


def test_groups_ignore_nulls_and_nothing_has_a_sum_of_zero() -> None:
    unwound = Unwind(Items((Constant(2), Constant(None), Constant(2))), "x")
    columns = tuple(
        Column(Aggregate(function, Variable("x"), distinct), f"{function}{distinct}")
        for function in ("count", "sum", "collect")
        for distinct in (False, True)
    )
    assert Reference(GRAPH).answer(Query((unwound, Projection(columns)))) == [
        {
            "countFalse": 2,
            "countTrue": 1,
            "sumFalse": 4,
            "sumTrue": 2,
            "collectFalse": [2, 2],
            "collectTrue": [2],
        }
    ]
    empty = Query((Unwind(Items(()), "x"), Projection(columns)))
    assert list(Reference(GRAPH).answer(empty)[0].values()) == [0, 0, 0, 0, [], []]


def test_rows_are_the_same_in_any_order_and_to_the_last_digit_of_an_integer() -> None:
    query = Query((Projection((Column(Variable("x"), "x"), Column(Variable("y"), "y"))),))
    rows = [{"x": 2**53 + 1, "y": 1}, {"x": 2**53 + 3, "y": 2}]
    assert same(query, rows, [(2**53 + 3, 2), (2**53 + 1, 1)], GRAPH)
    assert not same(query, rows, [(2**53 + 3, 1), (2**53 + 1, 2)], GRAPH)
    assert not same(query, rows, [(2**53 + 1, 1)], GRAPH)
    assert not same(query, rows, [(2**53 + 1, 1), (2**53 + 2, 2)], GRAPH)
    assert same(query, [{"x": 0.1 + 0.2, "y": math.nan}], [(0.3, math.nan)], GRAPH)
    assert not same(query, [{"x": None, "y": True}], [(None, 1)], GRAPH)


def test_a_condition_that_is_null_lets_nothing_pass() -> None:
    condition = Unary("NOT", Binary("=", Constant(None), Constant(1)))
    clauses = (
        Match((Pattern(NodePattern("x")),), condition),
        Projection((Column(Variable("x"), "x"),)),
    )
    assert Reference(GRAPH).answer(Query(clauses)) == []
