"""The Ladybug backend: the maintained fork of the embedded engine, and the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ladybug

from penstock.graphdb.cypher.branching import without_lost_rows
from penstock.graphdb.cypher.case_conditions import with_compared_conditions
from penstock.graphdb.cypher.offsets import with_offsets
from penstock.graphdb.cypher.order_by_aggregates import with_barriers
from penstock.graphdb.embedded.engine import EmbeddedEngine

if TYPE_CHECKING:
    from penstock.graphdb.registry import Opening


def open_engine(opening: Opening) -> EmbeddedEngine:
    return EmbeddedEngine(ladybug, opening, rewritten=_rewritten, replanned=without_lost_rows)


def _rewritten(text: str) -> str:
    return with_barriers(with_offsets(with_compared_conditions(text)))
