"""Checks written files against the column statistics of the files that they replace. No I/O.

The original writer computed those counts and bounds from the rows, so they verify that we read the
rows correctly. Deleted rows may be missing from the counts, and files without statistics may have
any values.
"""

from __future__ import annotations

from operator import lt
from typing import TYPE_CHECKING

from pyiceberg.types import BinaryType, FixedType, StringType

from penstock.maintenance.errors import ContentDiffers
from penstock.maintenance.tables.commit.file_statistics import stored_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.types import PrimitiveType

    from penstock.maintenance.tables.commit.file_statistics import FileStatistics, Value
    from penstock.maintenance.tables.reading.file_schema import Leaf

_SHORTENED = (StringType, BinaryType, FixedType)
"""Types whose bounds writers may truncate."""


def check_promises(
    inputs: Sequence[DataFile],
    outputs: Sequence[FileStatistics],
    leaves: Iterable[Leaf],
    deleted: int,
) -> None:
    """Raise ContentDiffers if the outputs cannot be the rows of the inputs without `deleted`
    rows."""
    rows, written = sum(file.record_count for file in inputs), sum(file.rows for file in outputs)
    if written != rows - deleted:
        raise _broken(f"{rows} rows less {deleted} deleted ones became {written}")
    for leaf in leaves:
        # Writers differ in whether a null struct counts as a null of its fields.
        if len(leaf.path) == 1 and not leaf.repeated:
            _check_counts(leaf, inputs, outputs, deleted)
        if not leaf.repeated:
            _check_bounds(leaf, inputs, outputs, deleted)


def _check_counts(
    leaf: Leaf, inputs: Sequence[DataFile], outputs: Sequence[FileStatistics], deleted: int
) -> None:
    id_ = leaf.field_id
    nulls = [file.nulls.get(id_) for file in outputs]
    nans = [file.nans.get(id_) for file in outputs]
    for kind, counts, written in (
        ("nulls", [(file.null_value_counts or {}).get(id_) for file in inputs], nulls),
        ("NaNs", [(file.nan_value_counts or {}).get(id_) for file in inputs], nans),
    ):
        if None in written:
            continue
        promised = sum(count or 0 for count in counts)
        unknown = sum(
            file.record_count for file, count in zip(inputs, counts, strict=True) if count is None
        )
        total = sum(count or 0 for count in written)
        if not promised - deleted <= total <= promised + unknown:
            raise _broken(f"column {id_} should have {promised} {kind} and has {total}")


def _check_bounds(
    leaf: Leaf, inputs: Sequence[DataFile], outputs: Sequence[FileStatistics], deleted: int
) -> None:
    id_ = leaf.field_id
    promised = _promised(leaf, inputs)
    lowest = [file.lowest[id_] for file in outputs if id_ in file.lowest]
    highest = [file.highest[id_] for file in outputs if id_ in file.highest]
    if promised is None or not lowest:
        return
    low, high = promised
    least, greatest = min(lowest), max(highest)
    if lt(least, low) or lt(high, greatest):
        raise _broken(
            f"column {id_} should be between {_shown(low)} and {_shown(high)}, "
            f"and is between {_shown(least)} and {_shown(greatest)}"
        )
    complete = len(lowest) == sum(_has_values(file, id_) for file in outputs)
    exact = not deleted and complete and not isinstance(leaf.type, _SHORTENED)
    if exact and (lt(low, least) or lt(greatest, high)):
        raise _broken(
            f"column {id_} should reach from {_shown(low)} to {_shown(high)}, "
            f"and reaches from {_shown(least)} to {_shown(greatest)}"
        )


def _promised(leaf: Leaf, inputs: Sequence[DataFile]) -> tuple[Value, Value] | None:
    """The bounds over all inputs; None if an input may have values but has no bounds."""
    bounds = []
    for file in inputs:
        pair = _bounds(leaf, file)
        if pair is not None:
            bounds.append(pair)
        elif not _is_empty(leaf.field_id, file):
            return None
    if not bounds:
        return None
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _bounds(leaf: Leaf, file: DataFile) -> tuple[Value, Value] | None:
    low = _value(leaf.type, file.lower_bounds, leaf.field_id)
    high = _value(leaf.type, file.upper_bounds, leaf.field_id)
    if low is None or high is None or low != low or high != high:  # NaN, as old writers have it
        return None
    return low, high


def _value(type_: PrimitiveType, bounds: Mapping[int, bytes] | None, id_: int) -> Value | None:
    bound = (bounds or {}).get(id_)
    return None if bound is None else stored_value(type_, bound)


def _is_empty(id_: int, file: DataFile) -> bool:
    nulls = (file.null_value_counts or {}).get(id_, 0)
    nans = (file.nan_value_counts or {}).get(id_, 0)
    return nulls + nans >= file.record_count


def _has_values(file: FileStatistics, id_: int) -> bool:
    return file.nulls.get(id_, 0) + file.nans.get(id_, 0) < file.rows


def _shown(value: Value) -> str:
    return repr(value)[:60]


def _broken(what: str) -> ContentDiffers:
    return ContentDiffers(
        f"The written rows contradict the statistics of the replaced files: {what}.",
        hint="Nothing was committed. The statistics are wrong, or the files were misread.",
    )
