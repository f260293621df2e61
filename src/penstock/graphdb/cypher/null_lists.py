"""Refuses queries that search in a null list, which crashes Ryugraph.

Examples are `1 IN null` and `list_contains(null, 1)`; the correct result is null. A null that an
expression computes is not detected here, and the engine restarts.
"""

from __future__ import annotations

import re

from penstock.graphdb.cypher.text import COMMENT, QUOTED
from penstock.graphdb.errors import CypherError

_TOKEN = re.compile(
    rf"{QUOTED}|{COMMENT}"
    r"""|[.:$]\s*\w+"""
    r"""|(?P<search>\bIN\b[\s(]*NULL\b|\b(?:LIST|ARRAY)_(?:CONTAINS|HAS)\s*\([\s(]*NULL\b)""",
    re.DOTALL | re.IGNORECASE,
)


def refuse_null_lists(text: str) -> str:
    """The unchanged statement; raises if it searches in a literal null."""
    if any(match["search"] is not None for match in _TOKEN.finditer(text)):
        raise CypherError(
            "This engine cannot search in a null list; the result would always be null.",
            hint="Use a list; it may be empty.",
        )
    return text
