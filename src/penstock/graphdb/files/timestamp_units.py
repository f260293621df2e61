"""Truncates timestamps to a coarser unit, for engines that store only that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from typing import Literal

_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def cut_moments(values: pa.Array, unit: Literal["s", "us"]) -> pa.Array:
    """Timestamps rounded down to the unit, in UTC without a zone. Arrow's own cast rounds towards
    1970, so that an earlier timestamp would become a later one."""
    target = pa.timestamp(unit)
    plain = values.cast(pa.timestamp(values.type.unit))
    if _TICKS[values.type.unit] <= _TICKS[unit]:
        return plain.cast(target)
    cut = plain.cast(target, safe=False)
    # Compared by the remainder: the next whole tick may overflow in the finer unit.
    step = _TICKS[values.type.unit] // _TICKS[unit]
    rest = pc.subtract(plain.cast(pa.int64()), pc.multiply(cut.cast(pa.int64()), step))
    return pc.subtract(cut.cast(pa.int64()), pc.less(rest, 0).cast(pa.int64())).cast(target)
