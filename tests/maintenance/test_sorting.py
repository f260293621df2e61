"""Rows in order: any number of buckets, any width of rows, and nothing left on the disk."""

from __future__ import annotations

import random
import tempfile
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.maintenance.tables.layout import sorting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where sorting spills to; it is empty again in the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def cut(rows: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    return iter(rows.to_batches(max_chunksize=size))


def ordered(rows: pa.Table, ways: Sequence[str], *, size: int = 100) -> list[tuple[object, ...]]:
    batches = sorting.in_order(
        cut(rows, size), lambda batch: batch.columns[: len(ways)], ways, check=lambda: None
    )
    table = pa.Table.from_batches(batches, rows.schema)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def people(count: int) -> pa.Table:
    chance = random.Random(5)
    names = [None if chance.random() < 0.05 else f"n{chance.randrange(40)}" for _ in range(count)]
    return pa.table(
        {"name": names, "age": [chance.randrange(90) for _ in range(count)], "number": range(count)}
    )


@pytest.mark.parametrize("bucket", [1, 500, 10_000, 10**9])
def test_rows_come_in_order_however_many_buckets_there_are(
    bucket: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "BUCKET_BYTES", bucket)
    rows = people(2_000)
    result = ordered(rows, ["DESC NULLS FIRST", "ASC"])
    source = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    by_age = sorted(source, key=lambda row: row[1])
    named = sorted(
        (row for row in by_age if row[0] is not None), key=lambda row: row[0], reverse=True
    )
    assert result == [row for row in by_age if row[0] is None] + named


def test_rows_that_are_alike_keep_their_order() -> None:
    rows = pa.table({"same": [7] * 1_000, "number": range(1_000)})
    assert [row[1] for row in ordered(rows, ["DESC"], size=64)] == list(range(1_000))


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_rows_are_in_order(count: int) -> None:
    assert len(ordered(people(count), ["ASC"])) == count


def test_rows_of_a_megabyte_are_no_matter() -> None:
    """More than the engine may hold, each of them; it never sees them."""
    wide = ["x" * 1_000_000] * 8
    batches = (
        pa.record_batch({"id": [n * 8 + k for k in range(8)][::-1], "text": wide})
        for n in range(30)[::-1]
    )
    ordered_batches = sorting.in_order(
        batches, lambda batch: [batch.column(0)], ["ASC"], check=lambda: None
    )
    ids = []
    for batch in ordered_batches:
        assert batch.nbytes < 4 * sorting.BUCKET_BYTES
        ids += batch.column(0).to_pylist()
    assert ids == list(range(240))


def test_nested_values_travel_with_their_rows() -> None:
    rows = pa.table({"id": [2, 1, 3], "tags": [["b"], [], None], "at": [{"x": 2}, {"x": 1}, None]})
    assert ordered(rows, ["ASC"]) == [(1, [], {"x": 1}), (2, ["b"], {"x": 2}), (3, None, None)]


def test_who_stops_it_leaves_nothing_behind() -> None:
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(
            sorting.in_order(
                cut(people(500), 50), lambda batch: [batch.column(1)], ["ASC"], check=stop
            )
        )


def test_who_stops_listening_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "BUCKET_BYTES", 500)
    batches = sorting.in_order(
        cut(people(500), 50), lambda batch: [batch.column(1)], ["ASC"], check=lambda: None
    )
    next(batches)
    batches.close()


def test_a_column_may_be_called_as_sorting_calls_its_own() -> None:
    names = ["place", "number", "k0"]
    rows = pa.table({name: [3, 1, 2] for name in names})
    assert ordered(rows, ["ASC"]) == [(n, n, n) for n in (1, 2, 3)]
