"""Z-order positions: rows that are close in several columns get close positions in one order.

Each column is divided into ranges with equally many rows of a sample, so skewed columns weigh as
much as uniform ones. The range numbers of a row's values are interleaved bit by bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Values: TypeAlias = np.ndarray[tuple[int], np.dtype[np.generic]]
    Places: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]

BITS = 10
MAX_COLUMNS = 6
SAMPLE_ROWS = 200_000
TEXT_BYTES = 64
"""Strings with the same first TEXT_BYTES bytes share a range."""


class ZCurve:
    def __init__(self, sample: Sequence[pa.Array]) -> None:
        """A sample of each column."""
        self._cuts = [_cuts(column) for column in sample]

    def places(self, columns: Sequence[pa.Array]) -> pa.Array:
        """One number for each row."""
        ranks = [_ranks(cuts, column) for cuts, column in zip(self._cuts, columns, strict=True)]
        places = np.zeros(len(columns[0]), dtype=np.uint64)
        for bit in range(BITS):
            for at, rank in enumerate(reversed(ranks)):
                places |= ((rank >> np.uint64(bit)) & np.uint64(1)) << np.uint64(
                    bit * len(ranks) + at
                )
        return pa.array(places)


def sampled(batches: Iterable[pa.RecordBatch], rows: int) -> list[pa.Array]:
    """An evenly spaced sample of the rows, column by column."""
    step, start, samples = max(1, rows // SAMPLE_ROWS), 0, []
    for batch in batches:
        positions = np.arange(-start % step, batch.num_rows, step)
        samples.append(batch.take(pa.array(positions)))
        start += batch.num_rows
    return (
        []
        if not samples
        else [column.combine_chunks() for column in pa.Table.from_batches(samples).columns]
    )


def can_be_placed(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _cuts(column: pa.Array) -> Values:
    values = np.sort(_comparable(column.drop_null()))
    if not len(values):
        return values
    positions = np.linspace(0, len(values) - 1, num=2**BITS - 2).astype(np.int64)
    return np.unique(values[positions])


def _ranks(cuts: Values, column: pa.Array) -> Places:
    """Nulls first, at 0."""
    ranks = np.zeros(len(column), dtype=np.uint64)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    ranks[valid] = np.searchsorted(cuts, _comparable(column.drop_null()), side="right").astype(
        np.uint64
    ) + np.uint64(1)
    return ranks


def _comparable(column: pa.Array) -> Values:
    """Numbers or bytes that sort like the values."""
    plain = column.storage if isinstance(column, pa.ExtensionArray) else column
    if pa.types.is_decimal(plain.type):
        plain = plain.cast(pa.float64())
    elif pa.types.is_temporal(plain.type):
        plain = plain.cast(pa.int32() if plain.type.bit_width == 32 else pa.int64())
    elif not pa.types.is_primitive(plain.type):
        plain = pc.binary_slice(plain.cast(pa.large_binary()), 0, TEXT_BYTES)
    values: Values = plain.to_numpy(zero_copy_only=False)
    return values.astype(f"S{TEXT_BYTES}") if pa.types.is_large_binary(plain.type) else values
