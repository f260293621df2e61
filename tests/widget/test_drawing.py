"""What is drawn of a result, and what is left out."""

from __future__ import annotations

import json
from datetime import date

import pytest

from penstock.client.results import QueryResult
from penstock.widget.drawing import LARGEST_INTEGER, LONGEST_TEXT, MOST_EDGES, MOST_NODES, Drawing
from tests.widget.graphs import knows, people, person, ring


def test_a_result_becomes_its_nodes_and_edges() -> None:
    rows = [[person(1, name="Ada"), knows(0, 1, 2, since=1840), person(2, name="Bob")]]
    result = QueryResult(columns=("a", "r", "b"), column_types=("NODE", "REL", "NODE"), rows=rows)
    drawing = Drawing.of(result)
    assert [(node.id, node.label, node.caption) for node in drawing.nodes] == [
        ("Person:1", "Person", "Ada"),
        ("Person:2", "Person", "Bob"),
    ]
    assert [(e.type, e.source, e.target, e.properties) for e in drawing.edges] == [
        ("KNOWS", "Person:1", "Person:2", {"since": 1840})
    ]


def test_an_edge_whose_ends_are_not_in_the_result_brings_them_by_id() -> None:
    drawing = Drawing.from_elements([], [knows(0, 1, 2)])
    assert [(node.id, node.label, node.caption) for node in drawing.nodes] == [
        ("Person:1", "Person", "1"),
        ("Person:2", "Person", "2"),
    ]


@pytest.mark.parametrize(("number", "left_out"), [(MOST_NODES, 0), (MOST_NODES + 1, 1)])
def test_nodes_beyond_the_cap_are_counted(number: int, left_out: int) -> None:
    drawing = Drawing.from_elements(people(number), [knows(0, 0, number - 1)])
    assert len(drawing.nodes) == MOST_NODES
    assert (drawing.nodes_left_out, drawing.edges_left_out) == (left_out, left_out)


@pytest.mark.parametrize(("number", "left_out"), [(MOST_EDGES, 0), (MOST_EDGES + 1, 1)])
def test_edges_beyond_the_cap_are_counted(number: int, left_out: int) -> None:
    drawing = Drawing.from_elements(people(2), [knows(i, 0, 1) for i in range(number)])
    assert (len(drawing.edges), drawing.edges_left_out) == (MOST_EDGES, left_out)


@pytest.mark.parametrize(
    ("properties", "caption"),
    [
        ({"name": "Ada"}, "Ada"),
        ({"title": "Dr", "age": 3}, "Dr"),
        ({"name": "", "code": "x"}, "x"),
        ({"age": 36}, "1"),
        ({"name": None}, "1"),
    ],
)
def test_a_node_is_called_by_what_names_it(properties: dict[str, object], caption: str) -> None:
    assert Drawing.from_elements([person(1, **properties)]).nodes[0].caption == caption


def test_the_reader_may_choose_the_caption() -> None:
    assert (
        Drawing.from_elements([person(1, name="Ada", age=36)], caption="age").nodes[0].caption
        == "36"
    )


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        (LARGEST_INTEGER, LARGEST_INTEGER),
        (LARGEST_INTEGER + 1, str(LARGEST_INTEGER + 1)),
        (-LARGEST_INTEGER - 1, str(-LARGEST_INTEGER - 1)),
        (float("nan"), "nan"),
        (1.5, 1.5),
        (True, True),
        (None, None),
        (date(2026, 1, 2), "2026-01-02"),
        (["a"], "['a']"),
        ("x" * LONGEST_TEXT, "x" * LONGEST_TEXT),
        ("x" * (LONGEST_TEXT + 1), "x" * (LONGEST_TEXT - 1) + "…"),
    ],
)
def test_values_reach_a_browser_without_loss_or_say_so(value: object, drawn: object) -> None:
    drawn_value = Drawing.from_elements([person(1, value=value)]).nodes[0].properties["value"]
    assert (drawn_value, type(drawn_value)) == (drawn, type(drawn))


def test_scores_become_a_property_of_the_nodes_that_have_one() -> None:
    drawing = ring(3).with_scores("rank", {"Person:0": 0.5, "Person:9": 1.0})
    assert [node.properties.get("rank") for node in drawing.nodes] == [0.5, None, None]


def test_the_degree_counts_neighbors_once() -> None:
    drawing = Drawing.from_elements(people(2), [knows(0, 0, 1), knows(1, 1, 0), knows(2, 0, 0)])
    assert drawing.degree("Person:0") == 1


def test_a_drawing_is_json() -> None:
    assert json.loads(json.dumps(ring(3).as_dict()))["left_out"] == {"nodes": 0, "edges": 0}
