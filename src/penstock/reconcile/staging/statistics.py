"""The real digits of number columns, from the row group statistics of Parquet files.

A column is declared for the largest amount there could ever be; real amounts usually need half of
its bits, and arithmetic on 64 bits costs half of that on 128. Missing statistics change nothing;
wrong ones make the engine refuse the value that does not fit.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from penstock.reconcile.matching.amounts import digits_of
from penstock.reconcile.matching.column import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.reconcile.matching.column import Column


def narrowed(columns: Mapping[str, Column], files: Sequence[Path]) -> Mapping[str, Column]:
    metadata = [pq.read_metadata(file) for file in files]
    return {name: replace(column, held=_held(column, metadata)) for name, column in columns.items()}


def _held(column: Column, files: Sequence[pq.FileMetaData]) -> int | None:
    if column.kind is not Kind.NUMBER:
        return None
    most = 0
    for file in files:
        for bounds in _bounds(file, column.name):
            if bounds is None:
                return None
            most = max(most, *map(digits_of, bounds))
    return min(most, column.digits)


def _bounds(file: pq.FileMetaData, name: str) -> Iterator[tuple[Decimal, Decimal] | None]:
    """The minimum and maximum of each non-empty row group; None where they are missing or
    inexact."""
    places = [place for place in range(file.num_columns) if file.schema.column(place).path == name]
    for group in map(file.row_group, range(file.num_row_groups)):
        statistics = group.column(places[0]).statistics if len(places) == 1 else None
        if group.num_rows == 0 or (
            statistics is not None and statistics.null_count == group.num_rows
        ):
            continue
        if (
            statistics is None
            or not statistics.has_min_max
            or not isinstance(statistics.min, int | Decimal)
        ):
            yield None
        else:
            yield Decimal(statistics.min), Decimal(statistics.max)
