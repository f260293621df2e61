"""Ryugraph: the first fork of the embedded engine, and what keeps it from giving wrong answers.

Its Arrow export breaks structs and UUIDs where some are null, so results that may hold one go by
rows. It takes a condition of parameters alone for true, so parameters become literals. A column
whose numbers are all one value or NaN it stores as that one value, and beside the least integer of
their type numbers lose their sign, so both are refused. By a column's least and greatest value (its
zone map) it skips integers that it should compare with a DOUBLE, so it does without those. Queries
whose aggregates it would lose, or that search in null, are refused, and the conditions of CASE
compared with true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ryugraph

from penstock.graphdb.case_conditions import with_compared_conditions
from penstock.graphdb.embedded import EmbeddedEngine
from penstock.graphdb.lost_aggregates import refuse_lost_aggregates
from penstock.graphdb.null_lists import refuse_null_lists

if TYPE_CHECKING:
    from penstock.graphdb.registry import Opening


def open_engine(opening: Opening) -> EmbeddedEngine:
    return EmbeddedEngine(
        ryugraph,
        opening,
        nested_arrow=False,
        inlines_parameters=True,
        holds_extremes=False,
        settings=("enable_zone_map = false",),
        rewritten=_rewritten,
    )


def _rewritten(text: str) -> str:
    return with_compared_conditions(refuse_null_lists(refuse_lost_aggregates(text)))
