from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.graphdb.cypher.parameters import harmless
from penstock.graphdb.errors import CypherError

if TYPE_CHECKING:
    from penstock.graphdb.contract import JsonValue


@pytest.mark.parametrize(
    "value",
    [
        1,
        None,
        "x",
        [],
        [1, None, 2.5],
        {},
        {"a": {"b": [1]}},
        [[1], []],
        [{"a": 1}, {"a": None}],
        [[], [[]]],
    ],
)
def test_what_has_one_type_stays_as_it_is(value: JsonValue) -> None:
    assert harmless({"p": value}) == {"p": value}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([{"a": 1}, {"b": 2}], [{"a": 1, "b": None}, {"a": None, "b": 2}]),
        ([{"a": 1, "b": 2}, {"b": 3, "a": 4}], [{"a": 1, "b": 2}, {"a": 4, "b": 3}]),
        (
            [{"a": {"x": 1}}, {"a": {"y": 2}}],
            [{"a": {"x": 1, "y": None}}, {"a": {"x": None, "y": 2}}],
        ),
        ([[{"a": 1}], [], [{"b": 2}]], [[{"a": 1, "b": None}], [], [{"a": None, "b": 2}]]),
    ],
)
def test_maps_in_one_list_get_the_same_keys_in_the_same_order(
    value: JsonValue, expected: JsonValue
) -> None:
    parameters = harmless({"p": value})
    assert parameters == {"p": expected}
    assert repr(parameters["p"]) == repr(expected)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([{"a": 1}, None], "a map and null"),
        ([{"a": {"x": 1}}, {}], "a map and null"),
        ([[1], None], "a list and null"),
        ([1, "a"], "a number and text"),
        ([True, 2], "a number and a truth value"),
        ({"a": [1, {"b": 2}]}, "a map and a number"),
        ([{"a": 1}, {"a": "x"}], "a number and text"),
    ],
)
def test_what_cannot_have_one_type_is_refused(value: JsonValue, words: str) -> None:
    with pytest.raises(CypherError, match=rf"^\$p has {words} in one list"):
        harmless({"p": value})
