"""Links computed outside the engine and loaded back into it, and the choice of parts for 1:N and
M:1 rules.

`matcher` and `clusters` use it. It writes Parquet in the engine's scratch folder.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.spill import writing
from penstock.reconcile.matching.amounts import EXACT, FULL, is_within, unscaled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.engines.contract import Engine
    from penstock.reconcile.recipes.model import Within

LINKS = pa.schema(
    [
        ("g", pa.int64()),
        ("l", pa.int64()),
        ("r", pa.int64()),
        ("s", pa.int64()),
        ("ambiguous", pa.bool_()),
    ]
)
_ROWS = 100_000
Rival: TypeAlias = tuple[int, int, int, Decimal, Decimal, int | None]
"""A single record, a part that it could take, their score and amounts, and the position of a
contested part, from 1; null for others."""


class Link(NamedTuple):
    g: int
    l: int  # noqa: E741 - the left one, as everywhere in the SQL
    r: int
    s: int
    ambiguous: bool


class Missed(NamedTuple):
    """A single record whose parts do not add up to its amount: right minus left, and the number of
    parts."""

    one: int
    away: Decimal
    parts: int


def missed_schema(scale: int) -> pa.Schema:
    away = pa.decimal128(FULL, scale)
    return pa.schema([("one", pa.int64()), ("away", away), ("parts", pa.int64())])


class RowFile:
    """A table that is written to a Parquet file in the scratch folder and loaded when complete."""

    def __init__(self, engine: Engine, table: str, schema: pa.Schema) -> None:
        self._engine = engine
        self._table = table
        self._schema = schema
        self._path = engine.scratch / f"{table}.parquet"
        self._waiting: list[tuple[object, ...]] = []

    def __enter__(self) -> Self:
        self._writer = pq.ParquetWriter(self._path, self._schema)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with writing(self._engine.scratch):
            if kind is None:
                self._write()
            self._writer.close()
        if kind is None:
            self._engine.load_file(self._table, self._path)
        self._path.unlink()

    def add(self, row: tuple[object, ...]) -> None:
        self._waiting.append(row)
        if len(self._waiting) >= _ROWS:
            with writing(self._engine.scratch):
                self._write()

    def _write(self) -> None:
        columns = zip(*self._waiting, strict=True) if self._waiting else [()] * len(self._schema)
        arrays = list(map(pa.array, columns, self._schema.types))
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._waiting.clear()


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of one single record, in a few bytes each: there may be millions."""

    records: array[int] = field(default_factory=lambda: array("q"))
    scores: array[int] = field(default_factory=lambda: array("q"))
    contested: array[int] = field(default_factory=lambda: array("q"))


class PieceChooser:
    """Single records that compete for the same parts choose in order: each takes all of its parts
    that are still free, if they add up to its amount. `missed` receives those whose parts do
    not."""

    def __init__(
        self,
        within: Within,
        scale: int,
        missed: Callable[[Missed], None],
        *,
        left_is_one: bool,
        contested: int,
    ) -> None:
        self._missed = missed
        self._within = within
        self._scale = scale
        self._left_is_one = left_is_one
        self._taken = bytearray(contested + 1)

    def links(self, rows: Iterable[Rival]) -> Iterator[Link]:
        """`rows` come in the order in which the single records choose."""
        for one, candidates in groupby(rows, key=lambda row: row[0]):
            left, right, parts = self._summed(candidates)
            if not parts.records:
                continue
            if not is_within(self._within, left, right, self._scale):
                away = Decimal(right - left).scaleb(-self._scale, EXACT)
                self._missed(Missed(one, away, len(parts.records)))
                continue
            for place in parts.contested:
                self._taken[place] = 1
            for many, score in zip(parts.records, parts.scores, strict=True):
                left_id, right_id = (one, many) if self._left_is_one else (many, one)
                yield Link(one, left_id, right_id, score, bool(parts.contested))

    def _summed(self, candidates: Iterable[Rival]) -> tuple[int, int, _Parts]:
        """Both sums over the parts still free: the single record's amount, and its parts'."""
        parts, single, total = _Parts(), 0, 0
        for _, many, score, a, b, place in candidates:
            if place is not None and self._taken[place]:
                continue
            own, part = (a, b) if self._left_is_one else (b, a)
            single, total = unscaled(own, self._scale), total + unscaled(part, self._scale)
            parts.records.append(many)
            parts.scores.append(score)
            if place is not None:
                parts.contested.append(place)
        return (single, total, parts) if self._left_is_one else (total, single, parts)
