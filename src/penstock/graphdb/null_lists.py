"""Ryugraph dies of a search in null: `1 IN null`, `list_contains(null, 1)`. Such a query is
refused; it would be null. A null that only comes out of an expression is not seen here, and costs
the engine a restart."""

from __future__ import annotations

import re

from penstock.graphdb.cypher_text import COMMENT, QUOTED
from penstock.graphdb.errors import CypherError

_TOKEN = re.compile(
    rf"{QUOTED}|{COMMENT}"
    r"""|[.:$]\s*\w+"""
    r"""|(?P<search>\bIN\b[\s(]*NULL\b|\b(?:LIST|ARRAY)_(?:CONTAINS|HAS)\s*\([\s(]*NULL\b)""",
    re.DOTALL | re.IGNORECASE,
)


def refuse_null_lists(text: str) -> str:
    """The statement as it is, if it searches in no literal null."""
    if any(match["search"] is not None for match in _TOKEN.finditer(text)):
        raise CypherError(
            "This engine cannot search in null, which is always null.",
            hint="Give a list; an empty one holds nothing.",
        )
    return text
