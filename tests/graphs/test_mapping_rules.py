"""Every rule of a definition, at its limit and one past it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.graphs.mappings.columns import TYPES
from penstock.graphs.mappings.definition import Definitions, Property, dumped, loaded
from penstock.graphs.mappings.rules import (
    KEY_TYPES,
    MAX_ALL_SQL,
    MAX_EDGES,
    MAX_NODES,
    MAX_PROPERTIES,
    MAX_SQL,
    RESERVED,
    broken,
    check,
)
from penstock.kit.errors import InvalidInput
from tests.graphs.definitions import edge, mapping, node

if TYPE_CHECKING:
    from penstock.graphs.mappings.columns import Problem

ID = Property(name="id", type="INT64")
HOSTILE = [
    "",
    " ",
    "1a",
    "_a",
    "a-b",
    "a b",
    "a.b",
    "é",
    "a\n",
    "ａ",
    "../x",
    "a`b",
    'a"b',
    "a;--",
    "a\x00",
    "a" * 65,
]


def only(definitions: Definitions) -> Problem:
    [problem] = broken(definitions)
    assert problem.entity
    assert problem.suggestion
    return problem


def props(count: int) -> tuple[Property, ...]:
    return tuple(Property(name=f"p{n}", type="STRING") for n in range(count))


def test_good_definitions_keep_the_rules_and_are_read_as_they_were_written() -> None:
    good = mapping(
        [node(), node("B2")], [edge(), edge(to_node="B2"), edge("OWNS", properties=props(3))]
    )
    check(good)
    assert loaded(dumped(good.nodes), dumped(good.edges)) == good
    assert [str(query.entity) for query in good.queries()] == [
        "Node Customer",
        "Node B2",
        "Edge KNOWS (Customer to Customer)",
        "Edge KNOWS (Customer to B2)",
        "Edge OWNS",
    ]
    assert [column.type for column in good.queries()[2].columns] == ["INT64", "INT64"]
    assert (good.edge_type_count, len(good.edges)) == (2, 3)


def test_a_mapping_has_a_node() -> None:
    assert only(mapping([])).column == "node_definitions"


@pytest.mark.parametrize("label", ["A", "a", "A" * 64, "Ab_9"])
def test_a_label_may_be_this(label: str) -> None:
    check(mapping([node(label)]))


@pytest.mark.parametrize("label", HOSTILE)
def test_a_label_may_not_be_that(label: str) -> None:
    assert only(mapping([node(label)])).column == "label"


@pytest.mark.parametrize("kind", ["A", "A" * 64, "WORKS_AT_2"])
def test_an_edge_type_may_be_this(kind: str) -> None:
    check(mapping(edges=[edge(kind)]))


@pytest.mark.parametrize("kind", [*HOSTILE, "knows", "Knows", "A" * 65])
def test_an_edge_type_may_not_be_that(kind: str) -> None:
    assert only(mapping(edges=[edge(kind)])).column == "type"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_property_and_no_key_has_such_a_name(name: str) -> None:
    bad = Property(name=name, type="INT64")
    for definitions in (
        mapping([node(primary_key=bad)]),
        mapping([node(properties=(bad,))]),
        mapping(edges=[edge(from_key=name)]),
        mapping(edges=[edge(to_key=name)]),
        mapping(edges=[edge(properties=(bad,))]),
    ):
        assert "not a valid name" in only(definitions).problem


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_words_of_cypher_are_refused_in_any_case(word: str) -> None:
    for written in (word, word.upper(), word.title()):
        named = Property(name=written, type="STRING")
        assert only(mapping([node(written)])).column == "label"
        assert only(mapping([node(properties=(named,))])).column == written
        assert only(mapping(edges=[edge(to_key=written)])).column == "to_key"
    assert only(mapping(edges=[edge(word.upper())])).column == "type"


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_a_property_s_and_four_are_a_key_s(kind: str) -> None:
    check(mapping([node(properties=(Property(name="p", type=kind),))]))
    keyed = mapping([node(primary_key=Property(name="id", type=kind))])
    if kind in KEY_TYPES:
        check(keyed)
    else:
        assert "STRING, INT64, DATE, UUID" in only(keyed).suggestion


@pytest.mark.parametrize("kind", ["", "int64", "TEXT", "INT128", "STRING[]"])
def test_there_is_no_such_type(kind: str) -> None:
    assert only(mapping([node(properties=(Property(name="p", type=kind),))])).column == "p"
    assert only(mapping(edges=[edge(properties=(Property(name="p", type=kind),))])).column == "p"


def test_an_entity_has_a_hundred_properties_and_no_more() -> None:
    check(
        mapping([node(properties=props(MAX_PROPERTIES))], [edge(properties=props(MAX_PROPERTIES))])
    )
    assert only(mapping([node(properties=props(MAX_PROPERTIES + 1))])).column == "properties"
    assert only(mapping(edges=[edge(properties=props(MAX_PROPERTIES + 1))])).column == "properties"


def test_a_query_has_a_longest_length_and_is_not_empty() -> None:
    check(mapping([node(sql="x" * MAX_SQL)]))
    for sql in ("x" * (MAX_SQL + 1), "", " \n", "SELECT '\x00'"):
        assert only(mapping([node(sql=sql)])).column == "sql"
        assert only(mapping(edges=[edge(sql=sql)])).column == "sql"


def test_all_queries_together_have_a_longest_length() -> None:
    length = MAX_ALL_SQL // 10
    check(mapping([node(f"N{n}", sql="x" * length) for n in range(10)]))
    assert (
        only(
            mapping([node(f"N{n}", sql="x" * length) for n in range(10)] + [node("M", sql="x")])
        ).column
        == "sql"
    )


def test_a_mapping_has_a_most_of_nodes_and_of_edges() -> None:
    check(mapping([node("Customer"), *(node(f"N{n}") for n in range(1, MAX_NODES))]))
    assert only(mapping([node(f"N{n}") for n in range(MAX_NODES + 1)])).column == "node_definitions"
    check(mapping(edges=[edge(f"E{n}") for n in range(MAX_EDGES)]))
    assert (
        only(mapping(edges=[edge(f"E{n}") for n in range(MAX_EDGES + 1)])).column
        == "edge_definitions"
    )


def test_labels_are_unique_whatever_their_case() -> None:
    assert "2 nodes" in only(mapping([node("Customer"), node("CUSTOMER")])).problem


def test_names_are_unique_within_an_entity_keys_included() -> None:
    twice = (Property(name="x", type="STRING"), Property(name="X", type="STRING"))
    for definitions in (
        mapping([node(properties=(ID,))]),
        mapping([node(properties=twice)]),
        mapping(edges=[edge(from_key="a", to_key="a")]),
        mapping(edges=[edge(properties=(Property(name="a", type="STRING"),))]),
        mapping(edges=[edge(properties=twice)]),
    ):
        assert "2 of its keys and properties" in only(definitions).problem


def test_an_edge_type_is_once_between_two_labels_but_may_be_between_others_too() -> None:
    both = [node(), node("Other")]
    check(mapping(both, [edge(), edge(to_node="Other"), edge(from_node="Other")]))
    assert "2 times" in only(mapping(both, [edge(), edge()])).problem


def test_the_ends_of_an_edge_are_labels_of_the_mapping() -> None:
    problem = only(mapping(edges=[edge(to_node="Nobody")]))
    assert (problem.column, problem.suggestion) == ("to_node", "The labels are: Customer.")
    assert only(mapping(edges=[edge(from_node="customer")])).column == "from_node"


def test_all_problems_are_told_at_once_and_none_repeats_a_long_name() -> None:
    bad = mapping([node("x" * 10_000, sql=""), node("Match")], [edge("y" * 10_000)])
    with pytest.raises(InvalidInput) as refused:
        check(bad)
    details = refused.value.details
    assert details["count"] == len(details["problems"]) == 6
    assert all(
        set(problem) == {"entity", "column", "problem", "suggestion"}
        for problem in details["problems"]
    )
    assert max(len(text) for problem in details["problems"] for text in problem.values()) < 400
