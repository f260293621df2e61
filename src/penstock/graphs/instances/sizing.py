"""How much memory an instance needs: its snapshot's bytes, unpacked by the engine, and what the
engine takes itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from penstock.graphs.instances.model import GIB, LEAST_MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

BASE_GB = 1.0
GROWTH: Mapping[str, float] = {"ladybug": 4.0, "ryugraph": 4.0, "falkordb": 10.0}
"""Bytes in memory a byte of Parquet: columns and indexes of an engine on disk, or a whole graph
held in memory."""


def memory_gb(size_bytes: int | None, backend: str, *, at_least: int = LEAST_MEMORY) -> int:
    """Perhaps more than an instance may have; the limits refuse that."""
    needed = BASE_GB + GROWTH[backend] * (size_bytes or 0) / GIB
    return max(at_least, LEAST_MEMORY, math.ceil(needed))
