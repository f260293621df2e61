"""Makes Ladybug keep an ORDER BY whose limited rows are aggregated.

`… WITH n.age AS a ORDER BY a DESC LIMIT 10 RETURN avg(a)` averages any ten: its planner drops the
sort before an aggregation and keeps the limit. An UNWIND of one item between the two prevents that
and changes nothing else.
"""

from __future__ import annotations

import re

from penstock.graphdb.cypher.text import COMMENT, QUOTED

_TOKEN = re.compile(
    rf"(?P<other>{QUOTED}|{COMMENT})"
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<word>[^\W\d]\w*)|(?P<star>\*)|[.:$]""",
    re.DOTALL,
)
_PROJECTIONS = frozenset({"WITH", "RETURN"})
_BEFORE_NAMES = frozenset({".", ":", "$", "AS"})
"""A word after one of these is a property, a label, a parameter or a column, never a keyword."""


def with_barriers(text: str) -> str:
    """The statement with an UNWIND before each projection whose rows were sorted and limited."""
    pieces: list[str] = []
    end = 0
    for number, at in enumerate(_places(text)):
        pieces += [text[end:at], f"UNWIND [0] AS _sorted{number} "]
        end = at
    return "".join(pieces) + text[end:]


def _places(text: str) -> list[int]:
    """Where a WITH or RETURN begins after a WITH that sorts and limits, except one that returns
    every variable."""
    places: list[int] = []
    depth = 0
    is_sorted = is_cut = after_text_operator = False
    before = ""
    projection: int | None = None
    for match in _TOKEN.finditer(text):
        depth += (match["open"] is not None) - (match["close"] is not None)
        word = "" if before in _BEFORE_NAMES else (match["word"] or "").upper()
        before = word or match[0]
        if depth or match["other"] is not None:
            continue
        if projection is not None and word != "DISTINCT":
            if match["star"] is None and is_sorted and is_cut:
                places.append(projection)
            if match["star"] is None:
                is_sorted = is_cut = False
            projection = None
        if word in _PROJECTIONS and not after_text_operator:
            projection = match.start()
        elif word == "UNION":
            is_sorted = is_cut = False
        elif word == "ORDER":
            is_sorted = True
        elif word in ("SKIP", "LIMIT"):
            is_cut = True
        after_text_operator = word in ("STARTS", "ENDS")
    return places
