"""Types are exact: whatever a source sends comes back equal from Parquet."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.storage.object_store import open_store
from penstock.storage.parquet_sink import ParquetSink, SinkLimits
from penstock.storage.row_groups import GroupLimits

DAY_MS = 86_400_000
ZONES = [None, "UTC", "Europe/Zurich", "+05:30"]
Values = st.SearchStrategy[Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """An Arrow type and what may stand in it."""

    type: pa.DataType
    values: Values


def whole(low: int, high: int) -> Values:
    return st.integers(low, high)


def decimals(precision: int, scale: int) -> Values:
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda digits: Decimal(f"{digits}e-{scale}"))


EXACT = [
    Kind(pa.bool_(), st.booleans()),
    Kind(pa.string(), st.text()),
    Kind(pa.large_string(), st.text()),
    Kind(pa.binary(), st.binary()),
    Kind(pa.binary(4), st.binary(min_size=4, max_size=4)),
    Kind(pa.float32(), st.floats(width=32, allow_nan=False)),
    Kind(pa.float64(), st.floats(allow_nan=False)),
    Kind(pa.date32(), whole(-700_000, 2_900_000)),
    Kind(pa.date64(), whole(-700_000, 2_900_000).map(lambda day: day * DAY_MS)),
    Kind(pa.time32("s"), whole(0, 86_399)),
    Kind(pa.time32("ms"), whole(0, DAY_MS - 1)),
    Kind(pa.time64("us"), whole(0, DAY_MS * 1000 - 1)),
    Kind(pa.time64("ns"), whole(0, DAY_MS * 1_000_000 - 1)),
    Kind(pa.duration("us"), whole(-(2**63), 2**63 - 1)),
    *(
        Kind(t, whole(-(2 ** (t.bit_width - 1)), 2 ** (t.bit_width - 1) - 1))
        for t in (pa.int8(), pa.int32(), pa.int64())
    ),
    *(
        Kind(t, whole(0, 2**t.bit_width - 1))
        for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    ),
]


@st.composite
def decimal_kinds(draw: st.DrawFn) -> Kind:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    return Kind(pa.decimal128(precision, scale), decimals(precision, scale))


@st.composite
def timestamp_kinds(draw: st.DrawFn) -> Kind:
    unit = draw(st.sampled_from(["s", "ms", "us", "ns"]))
    most = 10**12 if unit == "s" else 2**63 - 1
    return Kind(pa.timestamp(unit, draw(st.sampled_from(ZONES))), whole(-most, most))


def _list_of(inner: Kind) -> Kind:
    return Kind(pa.list_(inner.type), st.lists(_or_null(inner), max_size=4))


def _struct_of(inner: tuple[Kind, Kind]) -> Kind:
    a, b = inner
    return Kind(
        pa.struct([("a", a.type), ("b", b.type)]),
        st.fixed_dictionaries({"a": _or_null(a), "b": _or_null(b)}),
    )


def _map_of(inner: Kind) -> Kind:
    return Kind(
        pa.map_(pa.string(), inner.type),
        st.lists(st.tuples(st.text(), _or_null(inner)), max_size=4),
    )


def _or_null(kind: Kind) -> Values:
    return st.none() | kind.values


flat = st.sampled_from(EXACT) | decimal_kinds() | timestamp_kinds()
nested = st.recursive(
    flat,
    lambda inner: (
        inner.map(_list_of) | st.tuples(inner, inner).map(_struct_of) | inner.map(_map_of)
    ),
    max_leaves=4,
)
# Not inside the others: pyarrow cannot cast a list of the null type, even to itself, and the check
# below casts.
kinds = nested | st.just(Kind(pa.null(), st.none()))


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    columns = draw(st.lists(kinds, min_size=1, max_size=4))
    rows = draw(st.integers(0, 12))
    arrays = [
        pa.array(draw(st.lists(_or_null(k), min_size=rows, max_size=rows)), k.type) for k in columns
    ]
    names = draw(
        st.lists(
            st.text(min_size=1, max_size=8), min_size=len(arrays), max_size=len(arrays), unique=True
        )
    )
    return pa.table(arrays, names=names)


def through_the_sink(table: pa.Table, *, batch: int = 5, group: int = 4) -> pa.Table:
    root = Path(tempfile.mkdtemp(prefix="penstock-"))
    try:
        limits = SinkLimits(group=GroupLimits(rows=group), file_bytes=1)
        with ParquetSink(
            open_store(str(root)), "t/", table.schema, attempt="a", limits=limits
        ) as sink:
            for item in table.to_batches(max_chunksize=batch):
                sink.push(item)
            written = sink.finish()
        return pa.concat_tables(
            [pq.read_table(root / part.path, partitioning=None) for part in written.parts]
        )
    finally:
        shutil.rmtree(root)


@settings(max_examples=120, deadline=None)
@given(tables())
def test_any_table_comes_back_equal(table: pa.Table) -> None:
    back = through_the_sink(table)
    assert back.schema.names == table.schema.names
    # Parquet has no seconds and no days in milliseconds; the manifest's schema gives the declared
    # unit back.
    assert back.cast(table.schema).equals(table)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in ZONES),
        pa.date32(),
        pa.decimal128(18, 2),
        pa.decimal128(38, 38),
        pa.decimal256(60, 5),
        pa.decimal32(7, 2),
        pa.decimal64(18, 9),
        pa.float16(),
        pa.string_view(),
        pa.uuid(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.list_(pa.int64(), 3),
        pa.list_(pa.null()),
        pa.large_list(pa.string()),
        pa.list_(pa.struct([("x", pa.map_(pa.string(), pa.list_(pa.decimal128(10, 2))))])),
    ],
    ids=str,
)
def test_a_column_of_nothing_but_nulls_keeps_its_declared_type(kind: pa.DataType) -> None:
    table = pa.table([pa.nulls(9, kind)], names=["c"])
    back = through_the_sink(table)
    assert back.schema.equals(table.schema)
    assert back.column(0).null_count == 9


def test_floats_that_are_no_numbers_come_back() -> None:
    values = [float("nan"), float("inf"), float("-inf"), -0.0, None]
    back = through_the_sink(pa.table({"x": pa.array(values, pa.float64())})).column(0).to_pylist()
    assert [repr(value) for value in back] == [repr(value) for value in values]
