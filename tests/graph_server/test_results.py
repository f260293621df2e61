"""Values on their way to JSON."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from penstock.graph_server.queries.results import Own, dump, duration, values

OWN = Own(
    labels={"A": {"id": "INT64"}, "B": {"id": "STRING", "x": "DOUBLE"}}, types={"K": {"w": "INT32"}}
)


def test_a_node_has_its_own_properties_with_their_own_types() -> None:
    """An engine gives `id` as text, because it is text for one of the two labels."""
    nodes = pa.array(
        [
            {"_id": "A:7", "_label": "A", "id": "7", "x": None},
            {"_id": "B:7", "_label": "B", "id": "7", "x": 0.5},
            {"_id": "A:8", "_label": "A", "id": None, "x": None},
            None,
        ]
    )
    assert values(nodes, OWN) == [
        {"_id": "A:7", "_label": "A", "id": 7},
        {"_id": "B:7", "_label": "B", "id": "7", "x": 0.5},
        {"_id": "A:8", "_label": "A", "id": None},
        None,
    ]


def test_nodes_and_edges_inside_lists_and_structs_are_shaped_too() -> None:
    edge = {"_id": "K:1", "_type": "K", "_src": "A:1", "_dst": "B:2", "w": "5", "other": None}
    shaped = {"_id": "K:1", "_type": "K", "_src": "A:1", "_dst": "B:2", "w": 5}
    assert values(pa.array([[edge], [], None]), OWN) == [[shaped], [], None]
    assert values(pa.array([{"e": edge, "n": 1}]), OWN) == [{"e": shaped, "n": 1}]


def test_a_map_is_an_object_whatever_its_keys() -> None:
    kind = pa.map_(pa.int64(), pa.list_(pa.map_(pa.string(), pa.binary())))
    [value] = values(pa.array([[(1, [[("k", b"hi")]])]], kind), OWN)
    assert orjson.loads(dump(value)) == {"1": [{"k": "aGk="}]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.50"), "1.50"),
        (b"\x00\xff", "AP8="),
        (dt.datetime(2026, 1, 2, 3, 4, 5, 6), "2026-01-02T03:04:05.000006Z"),  # noqa: DTZ001
        (dt.timedelta(days=1), "P1D"),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_what_json_has_no_word_for_has_one_form(value: object, text: str | None) -> None:
    assert orjson.loads(dump([value])) == [text]


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (dt.timedelta(), "P0D"),
        (dt.timedelta(seconds=1, microseconds=500_000), "PT1.5S"),
        (dt.timedelta(days=3, seconds=7200), "P3DT7200S"),
        (dt.timedelta(seconds=86_399, microseconds=123_456), "PT86399.123456S"),
        (-dt.timedelta(days=2), "-P2D"),
    ],
)
def test_a_duration_is_iso_8601_to_the_microsecond(length: dt.timedelta, text: str) -> None:
    assert duration(length) == text


def test_a_moment_beyond_the_years_that_python_knows_is_text() -> None:
    assert values(pa.array([400_000_000_000_000_000], pa.timestamp("us")), OWN)[0].startswith(
        "14645-"
    )


def test_a_day_beyond_the_years_that_python_knows_is_text_wherever_it_is() -> None:
    far = pa.array([3_000_000, None, 0], pa.date32())
    listed = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), far)
    nested = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), listed)
    fields = pa.StructArray.from_arrays([far], names=["d"], mask=pa.array([False, True, False]))
    mapped = pa.MapArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array(["a", "b", "c"]), far
    )
    day = dt.date(1970, 1, 1)
    assert values(far, OWN) == ["10183-09-21", None, day]
    assert values(listed, OWN) == [["10183-09-21", None], [day]]
    assert values(nested, OWN) == [[["10183-09-21", None], [day]]]
    assert values(fields, OWN) == [{"d": "10183-09-21"}, None, {"d": day}]
    assert values(mapped, OWN) == [{"a": "10183-09-21", "b": None}, {"c": day}]
