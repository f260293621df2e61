"""Column statistics of written data files for their manifest entries: counts and bounds.

Bounds come from the Parquet footer, which omits minimum and maximum of a row group if one of them
is long. Readers skip files by bounds, so a column gets bounds only if every row group has them.
UUID columns have no bounds, because engines order UUIDs differently.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io.pyarrow import MetricModeTypes, compute_statistics_plan
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from penstock.kit import logging
from penstock.maintenance.tables.reading.file_schema import leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow.parquet as pq
    from pyiceberg.io.pyarrow import MetricsMode
    from pyiceberg.schema import Schema
    from pyiceberg.types import PrimitiveType

    from penstock.maintenance.tables.reading.file_schema import Leaf

log = logging.get(__name__)
Value: TypeAlias = "int | float | bytes"
"""A value as Parquet stores it, in its order: decimals unscaled, text in UTF-8, dates and times as
numbers."""
_INTS = (IntegerType, DateType)
_LONGS = (LongType, TimeType, TimestampType, TimestamptzType)
_BYTES = (StringType, BinaryType, FixedType)
_LAST_BEFORE_SURROGATES, _FIRST_AFTER_SURROGATES, _LAST_CODE_POINT = 0xD7FF, 0xE000, 0x10FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatistics:
    rows: int
    sizes: Mapping[int, int]
    nulls: Mapping[int, int]
    nans: Mapping[int, int]
    lowest: Mapping[int, Value]
    highest: Mapping[int, Value]
    split_offsets: Sequence[int]


@dataclass(slots=True)
class StatisticsPlan:
    """The columns for which the table's properties request statistics."""

    leaves: Sequence[Leaf]
    modes: Mapping[int, MetricsMode]

    @classmethod
    def of(cls, schema: Schema, properties: Mapping[str, str]) -> StatisticsPlan:
        try:
            plan = compute_statistics_plan(schema, dict(properties))
        except ValueError as e:
            log.warning("metrics_mode_unknown", error=str(e)[:200], used="truncate(16)")
            plan = compute_statistics_plan(schema, {})
        modes = {id_: collector.mode for id_, collector in plan.items()}
        return cls(leaves=leaves(schema), modes=modes)

    def arguments(self, statistics: FileStatistics) -> dict[str, object]:
        """Arguments for the manifest entry."""
        counted = [
            leaf
            for leaf in self.leaves
            if not leaf.repeated and self._mode(leaf) is not MetricModeTypes.NONE
        ]
        bounded = [leaf for leaf in counted if self._mode(leaf) is not MetricModeTypes.COUNTS]
        lower = {leaf.field_id: self._lower(leaf, statistics) for leaf in bounded}
        upper = {leaf.field_id: self._upper(leaf, statistics) for leaf in bounded}
        ids = [leaf.field_id for leaf in counted]
        return {
            "record_count": statistics.rows,
            "column_sizes": dict(statistics.sizes),
            "value_counts": dict.fromkeys(ids, statistics.rows),
            "null_value_counts": {
                id_: statistics.nulls[id_] for id_ in ids if id_ in statistics.nulls
            },
            "nan_value_counts": {
                id_: statistics.nans[id_] for id_ in ids if id_ in statistics.nans
            },
            "lower_bounds": {id_: bound for id_, bound in lower.items() if bound is not None},
            "upper_bounds": {id_: bound for id_, bound in upper.items() if bound is not None},
            "split_offsets": list(statistics.split_offsets),
        }

    def _mode(self, leaf: Leaf) -> MetricModeTypes:
        return self.modes[leaf.field_id].type

    def _length(self, leaf: Leaf) -> int | None:
        return self.modes[leaf.field_id].length

    def _lower(self, leaf: Leaf, statistics: FileStatistics) -> bytes | None:
        value = statistics.lowest.get(leaf.field_id)
        return None if value is None else lower_bound(leaf.type, value, self._length(leaf))

    def _upper(self, leaf: Leaf, statistics: FileStatistics) -> bytes | None:
        value = statistics.highest.get(leaf.field_id)
        return None if value is None else upper_bound(leaf.type, value, self._length(leaf))


@dataclass(slots=True)
class NanCounter:
    """Counts NaNs per row group while writing, because the footer does not."""

    leaves: Iterable[Leaf]
    groups: list[dict[int, int]] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        floats = [leaf for leaf in self.leaves if _is_float(leaf.type) and not leaf.repeated]
        self.groups.append({leaf.field_id: _nans(rows, leaf.path) for leaf in floats})


def footer_statistics(
    footer: pq.FileMetaData, leaves: Sequence[Leaf], nans: Sequence[Mapping[int, int]]
) -> FileStatistics:
    """`nans` has one item per row group."""
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    sizes: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lowest: dict[int, Value] = {}
    highest: dict[int, Value] = {}
    for at, leaf in enumerate(leaves):
        chunks = [group.column(at) for group in groups]
        sizes[leaf.field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        if leaf.repeated or not all(_has_nulls(chunk) for chunk in chunks):
            continue
        nulls[leaf.field_id] = sum(chunk.statistics.null_count for chunk in chunks)
        bounds = _bounds(leaf, chunks, [counts.get(leaf.field_id, 0) for counts in nans])
        if bounds is not None:
            lowest[leaf.field_id], highest[leaf.field_id] = bounds
    totals = {id_: sum(counts[id_] for counts in nans) for id_ in (nans[0] if nans else ())}
    return FileStatistics(
        rows=footer.num_rows,
        sizes=sizes,
        nulls=nulls,
        nans=totals,
        lowest=lowest,
        highest=highest,
        split_offsets=[_begin(group.column(0)) for group in groups],
    )


def stored_value(type_: PrimitiveType, bound: bytes) -> Value | None:
    """Decode a bound; it may have a narrower type if it was written before a type promotion."""
    match type_:
        case (
            IntegerType()
            | DateType()
            | LongType()
            | TimeType()
            | TimestampType()
            | TimestamptzType()
        ):
            return int.from_bytes(bound, "little", signed=True)
        case DecimalType():
            return int.from_bytes(bound, "big", signed=True)
        case FloatType() | DoubleType():
            [number] = struct.unpack("<f" if len(bound) == 4 else "<d", bound)
            return float(number)
        case BooleanType():
            return int(bound != b"\x00")
        case StringType() | BinaryType() | FixedType():
            return bound
        case _:
            return None


def lower_bound(type_: PrimitiveType, value: Value, length: int | None) -> bytes | None:
    if not isinstance(value, bytes):
        return _number(type_, value)
    if isinstance(type_, StringType):
        text = _text(value)
        return None if text is None else text[:length].encode()
    return value[:length] if isinstance(type_, BinaryType) else value


def upper_bound(type_: PrimitiveType, value: Value, length: int | None) -> bytes | None:
    if not isinstance(value, bytes):
        return _number(type_, value)
    if isinstance(type_, StringType):
        text = _text(value)
        return None if text is None else _next_text(text, length)
    return _next_bytes(value, length) if isinstance(type_, BinaryType) else value


def _bounds(
    leaf: Leaf, chunks: Sequence[pq.ColumnChunkMetaData], nans: Sequence[int]
) -> tuple[Value, Value] | None:
    pairs = []
    for chunk, nan in zip(chunks, nans, strict=True):
        if chunk.statistics.has_min_max:
            low, high = (
                _stored(leaf.type, raw)
                for raw in (chunk.statistics.min_raw, chunk.statistics.max_raw)
            )
            if low is None or high is None:
                return None
            pairs.append((low, high))
        elif chunk.num_values - chunk.statistics.null_count > nan:
            return None
    if not pairs:
        return None
    return min(low for low, _ in pairs), max(high for _, high in pairs)


def _stored(type_: PrimitiveType, raw: object) -> Value | None:
    match type_:
        case DecimalType() if isinstance(raw, bytes):
            return int.from_bytes(raw, "big", signed=True)
        case _ if isinstance(raw, bytes):
            return raw if isinstance(type_, _BYTES) else None
        case _ if isinstance(raw, int | float):
            return raw
        case _:
            return None


def _number(type_: PrimitiveType, value: float) -> bytes | None:
    match type_:
        case BooleanType():
            return b"\x01" if value else b"\x00"
        case DecimalType():
            whole = int(value)
            return whole.to_bytes((whole + (whole < 0)).bit_length() // 8 + 1, "big", signed=True)
        case FloatType():
            return struct.pack("<f", value)
        case DoubleType():
            return struct.pack("<d", value)
        case _ if isinstance(type_, _INTS):
            return struct.pack("<i", int(value))
        case _ if isinstance(type_, _LONGS):
            return struct.pack("<q", int(value))
        case _:
            return None


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _next_text(text: str, length: int | None) -> bytes | None:
    """The text, or if it is truncated, the least text greater than all with its prefix."""
    if length is None or len(text) <= length:
        return text.encode()
    for end in range(length, 0, -1):
        point = ord(text[end - 1])
        if point < _LAST_CODE_POINT:
            after = _FIRST_AFTER_SURROGATES if point == _LAST_BEFORE_SURROGATES else point + 1
            return (text[: end - 1] + chr(after)).encode()
    return None


def _next_bytes(value: bytes, length: int | None) -> bytes | None:
    if length is None or len(value) <= length:
        return value
    for end in range(length, 0, -1):
        if value[end - 1] < 0xFF:
            return value[: end - 1] + bytes([value[end - 1] + 1])
    return None


def _is_float(type_: PrimitiveType) -> bool:
    return isinstance(type_, FloatType | DoubleType)


def _nans(rows: pa.Table, path: tuple[int, ...]) -> int:
    values = rows.column(path[0])
    if len(path) > 1:
        values = pc.struct_field(values, list(path[1:]))
    return pc.sum(pc.is_nan(values)).as_py() or 0


def _has_nulls(chunk: pq.ColumnChunkMetaData) -> bool:
    return bool(chunk.is_stats_set and chunk.statistics.has_null_count)


def _begin(chunk: pq.ColumnChunkMetaData) -> int:
    if chunk.has_dictionary_page and chunk.dictionary_page_offset < chunk.data_page_offset:
        return int(chunk.dictionary_page_offset)
    return int(chunk.data_page_offset)
