"""Regroup batches of any size into row groups of bounded size, so an export needs memory for one
row group however many rows it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.storage.schema import conform

if TYPE_CHECKING:
    from collections.abc import Iterator

# A source that yields single rows must not produce a table of a quarter million chunks.
_SMALL_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """A row group ends at whichever limit comes first."""

    rows: int = 262_144
    bytes: int = 64 * 1024 * 1024


class RowGroups:
    def __init__(self, schema: pa.Schema, limits: GroupLimits) -> None:
        self._schema = schema
        self._limits = limits
        self._batches: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Add a batch; yields the row groups that it completes."""
        for piece in self._pieces(conform(batch, self._schema)):
            self._small.append(piece)
            self._rows += piece.num_rows
            self._bytes += piece.nbytes
            if len(self._small) == _SMALL_AT_ONCE:
                self._batches.append(pa.concat_batches(self._small))
                self._small = []
            if self._rows >= self._limits.rows or self._bytes >= self._limits.bytes:
                yield self._cut()

    def rest(self) -> pa.Table | None:
        return self._cut() if self._rows else None

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Slices of the batch, each within the remaining capacity of the row group."""
        row = max(1, batch.nbytes // max(1, batch.num_rows))
        start = 0
        while start < batch.num_rows:
            fitting = max(1, (self._limits.bytes - self._bytes) // row)
            piece = batch.slice(start, min(fitting, self._limits.rows - self._rows))
            start += piece.num_rows
            yield piece

    def _cut(self) -> pa.Table:
        table = pa.Table.from_batches(self._batches + self._small, schema=self._schema)
        self._batches, self._small = [], []
        self._rows = self._bytes = 0
        return table
