from __future__ import annotations

import datetime as dt
import decimal
import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    UUIDType,
)

from penstock.maintenance.actions.model import MB, Ended
from penstock.maintenance.tables.layout.z_curve import ZCurve
from penstock.maintenance.tables.reading.content import ManifestReader
from tests.maintenance.tables import COMPACT, SampleTable

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL_TARGET = MB // 16


def scattered(sample: SampleTable, *, files: int = 6, rows: int = 10_000) -> SampleTable:
    """Every file holds values from everywhere in both columns."""
    schema = Schema(
        NestedField(1, "x", LongType(), required=False),
        NestedField(2, "y", StringType(), required=False),
        NestedField(3, "pay", DoubleType(), required=False),
    )
    sample.catalog.create_namespace_if_not_exists(sample.name[0])
    sample.catalog.create_table(sample.name, schema)
    rng = random.Random(7)
    for _ in range(files):
        numbers = [rng.randrange(1_000_000) if rng.random() > 0.01 else None for _ in range(rows)]
        texts = [f"user-{rng.randrange(1_000_000):07d}" for _ in range(rows)]
        pays = [rng.random() for _ in range(rows)]
        sample.table.append(pa.table({"x": pa.array(numbers, pa.int64()), "y": texts, "pay": pays}))
    return sample


def content(sample: SampleTable) -> list[tuple[object, ...]]:
    columns = sample.table.scan().to_arrow().to_pydict().values()
    return sorted(zip(*columns, strict=True), key=repr)


def read_by(sample: SampleTable, row_filter: str) -> float:
    """The share of all data files that a scan with this filter has to read."""
    table = sample.table
    every = len(ManifestReader(table.io).content(table.current_snapshot()).data)
    return len(list(table.scan(row_filter=row_filter).plan_files())) / every


NARROW = ("x >= 300000 and x < 350000", "y >= 'user-0600000' and y < 'user-0650000'")


def test_a_z_order_clusters_both_columns_and_keeps_every_row(sample: SampleTable) -> None:
    scattered(sample)
    before = content(sample)
    assert [read_by(sample, row_filter) for row_filter in NARROW] == [1, 1]
    done = sample.run({**COMPACT, "sort_order": "zorder(x, y)", "target_file_bytes": SMALL_TARGET})
    assert (done.status, done.rows) == (Ended.COMPLETED, 60_000)
    assert done.added_files >= 8
    assert content(sample) == before
    assert all(read_by(sample, row_filter) <= 0.75 for row_filter in NARROW)


def test_a_sorted_table_clusters_its_first_column_only(sample: SampleTable) -> None:
    scattered(sample)
    sample.run({**COMPACT, "sort_order": "x", "target_file_bytes": SMALL_TARGET})
    assert read_by(sample, NARROW[0]) <= 0.25
    assert read_by(sample, NARROW[1]) == 1


KINDS = {
    "long": (LongType(), range(1000)),
    "double": (DoubleType(), [n / 7 for n in range(1000)]),
    "decimal": (DecimalType(12, 2), [decimal.Decimal(n) / 4 for n in range(1000)]),
    "date": (DateType(), [dt.date(2020, 1, 1) + dt.timedelta(days=n) for n in range(1000)]),
    "timestamp": (
        TimestampType(),
        [dt.datetime(2020, 1, 1) + dt.timedelta(minutes=n) for n in range(1000)],  # noqa: DTZ001
    ),
    "string": (StringType(), [f"{n:05d}" for n in range(1000)]),
    "boolean": (BooleanType(), [n >= 500 for n in range(1000)]),
    "uuid": (UUIDType(), [n.to_bytes(16, "big") for n in range(1000)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_places_follow_the_order_of_any_kind_of_value_and_nulls_come_first(kind: str) -> None:
    iceberg, values = KINDS[kind]
    arrow = Schema(NestedField(1, "value", iceberg, required=False)).as_arrow().field(0).type
    column = pa.array([None, *values], getattr(arrow, "storage_type", arrow))
    constant = pa.nulls(len(column), pa.int64())
    places = ZCurve([column, constant]).places([column, constant]).to_pylist()
    assert all(a <= b for a, b in pairwise(places))
    assert places[0] == 0 < places[1]
    assert len(set(places)) >= (3 if kind == "boolean" else 900)


def test_a_value_that_was_not_sampled_has_its_place_too() -> None:
    sample, seen = pa.array([10, 20, 30]), pa.array([5, 15, 25, 35, None])
    places = ZCurve([sample, sample]).places([seen, seen]).to_pylist()
    assert places[4] < places[0] < places[1] < places[2] < places[3]


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ("zorder(x, nowhere)", "'nowhere' is not a column"),
        ("zorder(x)", "2 to 6"),
        ("zorder(x, x)", "different"),
        ("zorder()", "is not a column"),
        ("zorder(x desc, y)", "is not a column"),
        ("x sideways", "is not a column"),
        ("table", "no sort order"),
    ],
)
def test_an_order_that_cannot_be_is_refused_before_anything_is_written(
    sample: SampleTable, order: str, why: str
) -> None:
    scattered(sample, files=2, rows=10)
    done = sample.run({**COMPACT, "min_input_files": 1, "sort_order": order})
    assert done.status is Ended.REFUSED
    assert why in done.message
    assert sample.operations() == ["append"] * 2


def test_the_tables_own_order_is_kept_with_its_nulls_and_named_on_the_files(
    sample: SampleTable,
) -> None:
    order = SortOrder(
        SortField(1, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),
        SortField(2, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST),
    )
    numbers, texts = [1, None, 2, 2], ["a", "b", None, "c"]
    _ordered(sample, order, numbers, texts)
    assert (
        sample.run({**COMPACT, "min_input_files": 1, "sort_order": "table"}).status
        is Ended.COMPLETED
    )
    rows = sample.table.scan().to_arrow()
    assert rows["x"].to_pylist() == [2, 2, 1, None]
    assert rows["y"].to_pylist() == [None, "c", "a", "b"]
    [entry] = ManifestReader(sample.table.io).content(sample.table.current_snapshot()).data
    assert entry.data_file.sort_order_id == sample.table.sort_order().order_id


def test_a_table_that_sorts_by_a_transform_is_refused(sample: SampleTable) -> None:
    order = SortOrder(SortField(1, BucketTransform(4), SortDirection.ASC, NullOrder.NULLS_FIRST))
    _ordered(sample, order, [1, 2], ["a", "b"])
    done = sample.run({**COMPACT, "min_input_files": 1, "sort_order": "table"})
    assert done.status is Ended.REFUSED
    assert "bucket" in done.message


def _ordered(
    sample: SampleTable,
    order: SortOrder,
    numbers: Sequence[int | None],
    texts: Sequence[str | None],
) -> None:
    schema = Schema(
        NestedField(1, "x", LongType(), required=False),
        NestedField(2, "y", StringType(), required=False),
    )
    sample.catalog.create_namespace_if_not_exists(sample.name[0])
    sample.catalog.create_table(sample.name, schema, sort_order=order)
    for x, y in zip(numbers, texts, strict=True):
        sample.table.append(
            pa.table({"x": pa.array([x], pa.int64()), "y": pa.array([y], pa.string())})
        )
