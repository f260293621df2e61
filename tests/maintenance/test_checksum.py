"""No two different values have one checksum, whatever their shape is."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.types import ListType, LongType, StructType

from penstock.maintenance.actions import group_writer
from penstock.maintenance.actions.model import Ended
from penstock.maintenance.actions.probe import proven
from penstock.maintenance.tables.verification.checksum import Checksum
from tests.maintenance.test_shapes import ALL, append, create, field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.maintenance.tables import SampleTable

LONGS = pa.list_(pa.int64())
LISTS = pa.list_(LONGS)
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.int64())])
STRUCTS = pa.list_(STRUCT)
MAP = pa.map_(pa.int64(), pa.int64())
INSIDE = pa.struct([("list", LONGS), ("inner", STRUCT)])
NOTHING = {"a": None, "b": None}


@pytest.fixture(scope="module")
def checksum() -> Iterator[Checksum]:
    own = Checksum()
    yield own
    own.close()


def totals(checksum: Checksum, values: Sequence[object], type_: pa.DataType) -> list[int]:
    return [checksum.of(pa.table({"c": pa.array([value], type_)})).total for value in values]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (LONGS, [None, [], [None], [None, None], [0], [0, None], [None, 0], [0, 0]]),
        (
            LISTS,
            [None, [], [None], [[]], [[None]], [[1], [2]], [[1, 2]], [[1, 2], []], [[], [1, 2]]],
        ),
        (LISTS, [[[1], None, [2]], [[1], [], [2]], [[1], [None], [2]], [[1], [2], None]]),
        (STRUCT, [None, NOTHING, {"a": 1, "b": None}, {"a": None, "b": 1}]),
        (STRUCTS, [None, [], [None], [NOTHING], [NOTHING, None], [{"a": 1, "b": 2}]]),
        (MAP, [None, [], [(1, None)], [(1, 2)], [(2, 1)], [(1, 2), (3, None)]]),
        (
            INSIDE,
            [
                None,
                {"list": None, "inner": None},
                {"list": [], "inner": None},
                {"list": [None], "inner": None},
                {"list": None, "inner": NOTHING},
            ],
        ),
    ],
)
def test_nested_values_of_different_shapes_differ(
    checksum: Checksum, type_: pa.DataType, values: list[object]
) -> None:
    sums = totals(checksum, values, type_)
    pairs = [
        (values[a], values[b]) for a, b in combinations(range(len(sums)), 2) if sums[a] == sums[b]
    ]
    assert not pairs


_longs = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(-2, 2)), max_size=3))
_lists = st.one_of(st.none(), st.lists(_longs, max_size=3))


@settings(deadline=None)
@given(one=_lists, other=_lists)
def test_lists_of_lists_have_one_checksum_only_when_they_are_equal(
    one: object, other: object
) -> None:
    own = Checksum()
    first, second = totals(own, [one, other], LISTS)
    own.close()
    assert (first == second) is (one == other)


@given(st.lists(_lists, max_size=8), st.integers(0, 8))
def test_where_an_array_begins_in_its_buffers_does_not_matter(
    values: list[object], start: int
) -> None:
    own = Checksum()
    array = pa.array([*values, *values], LISTS)
    part = array.slice(start, len(values))
    anew = pa.array(part.to_pylist(), LISTS)
    assert own.of(pa.table({"c": part})) == own.of(pa.table({"c": anew}))
    own.close()


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        (ListType(3, LongType(), element_required=False), None, []),
        (ListType(3, LongType(), element_required=False), [None], []),
        (StructType(field(3, "a", LongType())), None, {"a": None}),
    ],
)
def test_a_shape_that_is_lost_when_it_is_written_is_never_committed(
    sample: SampleTable,
    monkeypatch: pytest.MonkeyPatch,
    kind: object,
    value: object,
    written: object,
) -> None:
    """As if a writer took a missing list for an empty one: readers of what it wrote see nothing
    wrong."""
    create(sample, field(1, "id", LongType()), field(2, "c", kind))
    append(sample, [{"id": 1, "c": value}])
    append(sample, [{"id": 2, "c": value}])
    assert proven()
    write = group_writer._Part.write

    def changed(self: group_writer._Part, rows: pa.Table) -> None:
        arrays = [rows["id"], pa.array([written] * rows.num_rows, rows.schema.field("c").type)]
        write(self, pa.table(arrays, schema=rows.schema))

    monkeypatch.setattr(group_writer._Part, "write", changed)
    outcome = sample.run(ALL)
    assert (outcome.status, sample.operations()) == (Ended.FAILED, ["append", "append"])
    assert "differ from their inputs" in outcome.message
