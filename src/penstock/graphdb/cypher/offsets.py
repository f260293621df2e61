"""Rewrites `timestamp(…)` calls, in which Ladybug ignores the UTC offset.

To Ladybug `timestamp('2024-03-31 02:30:00+02')` is 02:30 in UTC. It parses a TIMESTAMP_TZ
correctly, so the text is cast to that and then to TIMESTAMP; without an offset the result is the
same.
"""

from __future__ import annotations

import re

from penstock.graphdb.cypher.text import COMMENT, QUOTED

_TOKEN = re.compile(
    rf"{QUOTED}|{COMMENT}"
    r"""|[.:$]\s*[^\W\d]\w*"""
    r"""|(?P<call>\btimestamp\s*\()|(?P<open>\()|(?P<close>\))|\w+""",
    re.DOTALL | re.IGNORECASE,
)


def with_offsets(text: str) -> str:
    """The statement with two casts in place of each call of `timestamp`; unchanged where its
    brackets are unbalanced."""
    pieces: list[str] = []
    calls: list[bool] = []
    end = 0
    for match in _TOKEN.finditer(text):
        if match["call"] is not None:
            pieces += [text[end : match.start()], "CAST(CAST("]
            end = match.end()
            calls.append(True)
        elif match["open"] is not None:
            calls.append(False)
        elif match["close"] is not None:
            if not calls:
                return text
            if calls.pop():
                pieces += [text[end : match.start()], " AS TIMESTAMP_TZ) AS TIMESTAMP)"]
                end = match.end()
    return text if calls else "".join(pieces) + text[end:]
