"""Ladybug ignores the offset of a moment: `timestamp('2024-03-31 02:30:00+02')` is half past two in
UTC. A TIMESTAMP_TZ it reads rightly, so the text is read as one and made a TIMESTAMP then, which is
the same moment where there is no offset."""

from __future__ import annotations

import re

from penstock.graphdb.cypher_text import COMMENT, QUOTED

_TOKEN = re.compile(
    rf"{QUOTED}|{COMMENT}"
    r"""|[.:$]\s*[^\W\d]\w*"""
    r"""|(?P<call>\btimestamp\s*\()|(?P<open>\()|(?P<close>\))|\w+""",
    re.DOTALL | re.IGNORECASE,
)


def with_offsets(text: str) -> str:
    """The statement with two casts in the place of each call of `timestamp`; as it is where its
    brackets do not fit together."""
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
