"""Memory estimate for an instance: its snapshot's bytes in the engine's format, plus a base."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from penstock.graphs.instances.model import GIB, LEAST_MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

BASE_GB = 1.0
GROWTH: Mapping[str, float] = {"ladybug": 4.0, "ryugraph": 4.0, "falkordb": 10.0}
"""Bytes of memory per byte of Parquet; higher for an engine that keeps the whole graph in memory.
"""


def memory_gb(size_bytes: int | None, backend: str, *, at_least: int = LEAST_MEMORY) -> int:
    """May exceed the maximum for an instance; the quota check refuses that."""
    needed = BASE_GB + GROWTH[backend] * (size_bytes or 0) / GIB
    return max(at_least, LEAST_MEMORY, math.ceil(needed))
