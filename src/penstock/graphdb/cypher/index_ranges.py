"""Keeps range conditions on texts away from FalkorDB's index, which compares them incorrectly.

Where a WHERE compares an indexed text (`n.name < 'b'`), FalkorDB uses the index, which compares
texts in lower case and sorts letters beyond ASCII first. `coalesce(n.name)` is the same value and
has no index. Equality and STARTS WITH are correct and keep using it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.graphdb.cypher.text import COMMENT, QUOTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

_TOKEN = re.compile(
    rf"(?P<comment>{COMMENT})"
    rf"|(?P<property>(?:[^\W\d]\w*|`[^`]*`)\s*\.\s*(?P<name>[^\W\d]\w*|`[^`]*`))"
    rf"|{QUOTED}|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<word>[^\W\d]\w*)"
    rf"|(?P<compared>[<>]=?)|\d[\w.]*|[^\s\w]",
    re.DOTALL,
)
_BEFORE_NAMES = frozenset({".", ":", "$", "|", "AS"})
"""A word after one of these is a property, a label, a parameter or a column, never a keyword."""
_CLAUSES = frozenset({"MATCH", "OPTIONAL", "WITH", "RETURN", "UNWIND", "UNION", "CALL", "ORDER"})
_TEXT_OPERATORS = frozenset({"STARTS", "ENDS"})


def without_index_ranges(text: str, names: Set[str]) -> str:
    """The statement with `coalesce(n.name) < 'b'` in place of `n.name < 'b'` in conditions, where
    `name` is one of `names`."""
    if not names or ("<" not in text and ">" not in text):
        return text
    pieces, end = [], 0
    for match in _compared(text):
        if match["name"].strip("`") in names:
            pieces += [text[end : match.start()], f"coalesce({match[0]})"]
            end = match.end()
    return "".join(pieces) + text[end:]


def _compared(text: str) -> Iterator[re.Match[str]]:
    """The properties beside `<`, `<=`, `>` and `>=` in conditions."""
    tokens = [token for token in _TOKEN.finditer(text) if token["comment"] is None]
    where: list[int] = []
    depth, before = 0, ""
    for place, token in enumerate(tokens):
        word = "" if before in _BEFORE_NAMES else (token["word"] or "").upper()
        depth += (token["open"] is not None) - (token["close"] is not None)
        is_next = word in _CLAUSES and before not in _TEXT_OPERATORS
        while where and (depth < where[-1] or (depth == where[-1] and is_next)):
            where.pop()
        if word == "WHERE":
            where.append(depth)
        elif where and before not in _BEFORE_NAMES and _is_compared(tokens, place):
            yield token
        before = word or token[0]


def _is_compared(tokens: Sequence[re.Match[str]], place: int) -> bool:
    """Whether a token is a property beside a comparison."""
    if tokens[place]["property"] is None:
        return False
    return _is_beside(tokens, place, 1, ")") or _is_beside(tokens, place, -1, "(")


def _is_beside(tokens: Sequence[re.Match[str]], place: int, step: int, bracket: str) -> bool:
    """Whether a comparison is next, ignoring brackets around the property."""
    place += step
    while 0 <= place < len(tokens) and tokens[place][0] == bracket:
        place += step
    return 0 <= place < len(tokens) and tokens[place]["compared"] is not None
