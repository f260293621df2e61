"""Refuses queries for which Ryugraph loses an aggregate.

With grouping keys, an aggregate without DISTINCT after one with it is empty (`RETURN n.a,
count(DISTINCT n.b), count(*)` counts 0 rows), or crashes the engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.graphdb.cypher.text import COMMENT, QUOTED
from penstock.graphdb.errors import CypherError

_TOKEN = re.compile(
    rf"(?P<other>{QUOTED})|(?P<comment>{COMMENT})"
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<word>[^\W\d]\w*)|(?P<comma>,)|[^\s\w]""",
    re.DOTALL,
)
_AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "COLLECT"})
_PROJECTIONS = frozenset({"WITH", "RETURN"})
_ENDS = frozenset(
    {"MATCH", "OPTIONAL", "UNWIND", "WHERE", "ORDER", "SKIP", "LIMIT", "UNION", "CALL"}
)
_BEFORE_NAMES = frozenset({".", ":", "$", "AS"})
"""A word after one of these is a property, a label, a parameter or a column, never a keyword."""


@dataclass(slots=True)
class _Projection:
    has_key: bool = False
    has_distinct: bool = False
    loses_one: bool = False
    is_aggregated: bool = False
    """Whether the current item is an aggregate."""

    def end_item(self) -> None:
        self.has_key |= not self.is_aggregated
        self.is_aggregated = False

    def end(self) -> None:
        self.end_item()
        if self.has_key and self.loses_one:
            raise CypherError(
                "This engine loses an aggregate without DISTINCT after one with DISTINCT.",
                hint="Put the aggregates with DISTINCT last:"
                " RETURN a, count(*), count(DISTINCT b).",
            )


def refuse_lost_aggregates(text: str) -> str:
    """The unchanged statement; raises if one of its projections loses an aggregate."""
    projections: dict[int, _Projection] = {}
    """The current projection at each depth of brackets."""
    depth = 0
    last = before_last = ""
    for match in _TOKEN.finditer(text):
        if match["comment"] is not None:
            continue
        word = "" if last in _BEFORE_NAMES else (match["word"] or "").upper()
        token = word or match[0]
        if (
            before_last in _AGGREGATES
            and last == "("
            and (owner := _owner(projections, depth)) is not None
        ):
            owner.is_aggregated = True
            owner.loses_one |= owner.has_distinct and word != "DISTINCT"
            owner.has_distinct |= word == "DISTINCT"
        if match["close"] is not None and (ended := projections.pop(depth, None)) is not None:
            ended.end()
        depth += (match["open"] is not None) - (match["close"] is not None)
        is_operator = word == "WITH" and last in ("STARTS", "ENDS")
        if (word in _ENDS or (word in _PROJECTIONS and not is_operator)) and depth in projections:
            projections.pop(depth).end()
        if word in _PROJECTIONS and not is_operator:
            projections[depth] = _Projection()
        elif match["comma"] is not None and depth in projections:
            projections[depth].end_item()
        before_last, last = last, token
    for projection in projections.values():
        projection.end()
    return text


def _owner(projections: dict[int, _Projection], depth: int) -> _Projection | None:
    """The innermost projection that encloses a token of that depth."""
    return projections[max(projections)] if projections and max(projections) <= depth else None
