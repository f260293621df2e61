"""Checks of every record batch: unique column names, and dates and times within Arrow's range.

Some sources allow infinity, and times from 24:00 on, in date and time types. Arrow cannot represent
them, and drivers pass on the stored number, which would silently become a wrong date. That is an
error that names the column instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sources.errors import SourceQueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The smallest and largest stored number that is a valid date or timestamp."""

    date32: tuple[int, int]
    timestamp: tuple[int, int]

    def of(self, kind: pa.DataType) -> tuple[int, int] | None:
        if pa.types.is_timestamp(kind):
            return self.timestamp
        if pa.types.is_date32(kind):
            return self.date32
        if pa.types.is_time(kind):
            return 0, _DAY[kind.unit] - 1
        return None


def distinct(names: Sequence[str]) -> None:
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise SourceQueryError(
            f"The query has more than one column named {', '.join(twice)}.",
            hint="Give each column a name of its own with AS.",
        )


def distinct_in_any_case(names: Sequence[str], table: str) -> None:
    """Reject names that differ only in case, for an engine that ignores case and would read one
    column for the other."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise SourceQueryError(
                f"Columns {other} and {name} of {table} differ only in case,"
                " and SQL over files does not tell them apart.",
                hint="Read the whole table, or rename one of them in the files.",
            )


def finite(batch: pa.RecordBatch, real: Range) -> pa.RecordBatch:
    """The batch, or an error that names the column with a value outside Arrow's range."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not _within(column, real):
            raise SourceQueryError(
                f"Column {field.name} has a value that {field.type} cannot represent"
                " (infinity, or a time from 24:00 on).",
                hint="Replace it in the query, for example with NULL, or cast "
                f"{field.name} to text.",
            )
    return batch


def _within(column: pa.Array, real: Range) -> bool:
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _within(column.flatten(), real)
    bounds = real.of(column.type)
    if bounds is None:
        return True
    stored = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    extremes = pc.min_max(stored).as_py()
    return extremes["min"] is None or (
        bounds[0] <= extremes["min"] and extremes["max"] <= bounds[1]
    )
