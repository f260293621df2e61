"""SKIP and LIMIT that every engine takes for what they are.

FalkorDB keeps 32 bits of both, and so do Ladybug and Ryugraph of a SKIP after ORDER BY: `LIMIT
4294967296` gives no row there, and `SKIP 4294967296` every one. No result has so many rows, so more
than 32 bits hold is as good as the most that they do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.graphdb.cypher_text import COMMENT, QUOTED
from penstock.graphdb.errors import CypherError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.graphdb.contract import JsonValue

MOST_ROWS = 2**32 - 1
_BOUND = re.compile(
    rf"{QUOTED}|{COMMENT}"
    r"""|[.:$]\s*\w+"""
    rf"""|\b(?P<word>SKIP|LIMIT)\b(?P<space>(?:\s|{COMMENT})*)"""
    r"""(?:(?P<digits>[0-9]+)(?![\w.])|\$(?P<name>\w+)(?=\s*(?:$|;|//|/\*|\}|[^\W\d])))?""",
    re.DOTALL | re.IGNORECASE,
)
"""A bound that is a number or one parameter, or something that holds a word that is none."""


def with_row_bounds(text: str, parameters: Mapping[str, JsonValue]) -> str:
    """The statement with bounds of at most 32 bits; one by a parameter is checked."""

    def written(match: re.Match[str]) -> str:
        word, digits, name = match["word"], match["digits"], match["name"]
        if digits is not None:
            count = int(digits)
        elif name is not None and name in parameters:
            count = _checked(word, name, parameters[name])
        else:
            return match[0]
        return f"{word}{match['space']}{MOST_ROWS}" if count > MOST_ROWS else match[0]

    return _BOUND.sub(written, text)


def _checked(word: str, name: str, value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CypherError(
            f"{word.upper()} ${name} is {str(value)[:80]!r}, which is no number of rows.",
            hint="Give an integer of 0 or more.",
        )
    return value
