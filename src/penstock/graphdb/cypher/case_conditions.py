"""Rewrites CASE expressions that the embedded engines evaluate incorrectly.

A condition that is a bare column, or another CASE, corrupts their selection of rows: Ryugraph then
takes the ELSE for all later rows and repeats other columns, and both lose rows where a CASE is the
condition of a CASE. A comparison does not, so each condition is compared with true, which changes
nothing else.

`CASE value WHEN null` matches every value there, though nothing equals null. So `CASE a WHEN b`
becomes `CASE WHEN a = b`, which is equivalent and evaluated correctly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.graphdb.cypher.text import COMMENT, QUOTED

_TOKEN = re.compile(
    rf"(?P<comment>{COMMENT})|{QUOTED}"
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<word>[^\W\d]\w*)|\d[\w.]*|[^\s\w]""",
    re.DOTALL,
)
_BEFORE_NAMES = frozenset({".", ":", "$", "AS"})
"""A word after one of these is a property, a label, a parameter or a column, never a keyword."""
_KEY = re.compile(r"\s*:")
"""A word before this is a key of a map."""


@dataclass(slots=True)
class _Case:
    depth: int
    begin: int
    """Index of the piece after the CASE."""
    subject: str | None = None
    """The compared expression, set at the first WHEN; empty in `CASE WHEN condition`."""


def with_compared_conditions(text: str) -> str:
    """The statement with `WHEN (condition) = true THEN` in place of `WHEN condition THEN`, and with
    `CASE WHEN (a) = (b) THEN` in place of `CASE a WHEN b THEN`; unchanged where its CASEs and ENDs
    are unbalanced."""
    pieces: list[str] = []
    cases: list[_Case] = []
    end, depth, last = 0, 0, ""
    for match in _TOKEN.finditer(text):
        if match["comment"] is not None:
            continue
        depth += (match["open"] is not None) - (match["close"] is not None)
        word = "" if last in _BEFORE_NAMES or match["word"] is None else match["word"].upper()
        case = cases[-1] if cases and cases[-1].depth == depth else None
        if word == "CASE" and not _KEY.match(text, match.end()):
            pieces.append(text[end : match.end()])
            end = match.end()
            cases.append(_Case(depth, begin=len(pieces)))
        elif word == "WHEN" and case is not None:
            pieces.append(text[end : match.start()])
            if case.subject is None and last != "CASE":
                case.subject = "".join(pieces[case.begin :]).strip()
                pieces[case.begin :] = [" "]
            case.subject = case.subject or ""
            pieces += [match[0], f" ({case.subject}) = (" if case.subject else " ("]
            end = match.end()
        elif word == "THEN" and case is not None and case.subject is not None:
            pieces += [text[end : match.start()], ") " if case.subject else ") = true "]
            end = match.start()
        elif word == "END" and case is not None:
            cases.pop()
        last = word or match[0]
    return text if cases else "".join(pieces) + text[end:]
