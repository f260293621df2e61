"""The Ryugraph backend: the first fork of the embedded engine, with workarounds for wrong results.

- Its Arrow export is wrong for structs and UUIDs with nulls: such results are read by rows.
- It takes a condition of parameters alone for true: parameters become literals.
- It stores a column whose numbers are one value or NaN as that value, and numbers lose their sign
  beside the least integer of their type: both are refused.
- Its zone maps skip integers that it should compare with a DOUBLE: they are disabled.
- Queries whose aggregates it would lose, or that search in null, are refused.
- Conditions of CASE are compared with true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ryugraph

from penstock.graphdb.cypher.case_conditions import with_compared_conditions
from penstock.graphdb.cypher.lost_aggregates import refuse_lost_aggregates
from penstock.graphdb.cypher.null_lists import refuse_null_lists
from penstock.graphdb.embedded.engine import EmbeddedEngine

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
