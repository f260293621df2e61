"""Caps SKIP and LIMIT at 32 bits, which the engines would otherwise truncate.

FalkorDB uses 32 bits of both, and so do Ladybug and Ryugraph for a SKIP after ORDER BY: `LIMIT
4294967296` returns no rows there, and `SKIP 4294967296` all of them. No result has so many rows, so
the cap changes nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.graphdb.cypher.text import COMMENT, QUOTED
from penstock.graphdb.errors import CypherError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.json_value import JsonValue

MOST_ROWS = 2**32 - 1
_BOUND = re.compile(
    rf"{QUOTED}|{COMMENT}"
    r"""|[.:$]\s*\w+"""
    rf"""|\b(?P<word>SKIP|LIMIT)\b(?P<space>(?:\s|{COMMENT})*)"""
    r"""(?:(?P<digits>[0-9]+)(?![\w.])|\$(?P<name>\w+)(?=\s*(?:$|;|//|/\*|\}|[^\W\d])))?""",
    re.DOTALL | re.IGNORECASE,
)
"""A bound that is a number or one parameter, or text in which the words are not keywords."""


def with_row_bounds(text: str, parameters: Mapping[str, JsonValue]) -> str:
    """The statement with bounds of at most 32 bits; a bound given by a parameter is checked."""

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
            f"{word.upper()} ${name} is {str(value)[:80]!r}, which is not a number of rows.",
            hint="Use an integer of 0 or more.",
        )
    return value
