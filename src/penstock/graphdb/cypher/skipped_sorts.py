"""A probe query that avoids a crash of Ladybug and Ryugraph on a large SKIP.

They crash where SKIP exceeds the number of sorted rows by more than a block: `MATCH (n:Person)
RETURN n.name ORDER BY n.id SKIP 1000000 LIMIT 10` on a small graph. The same unsorted rows are
skipped correctly. So a query that ends with such a clause first runs unsorted, up to its first row;
if there is none, the result is empty.
"""

from __future__ import annotations

import re

from penstock.graphdb.cypher.text import COMMENT, QUOTED

SAFE_SKIP = 256
"""Minimum number of rows in a block of sorted rows: it has 256 KiB for the sorted columns."""
_TOKEN = re.compile(
    rf"{QUOTED}|{COMMENT}"
    r"""|[.:$]\s*\w+|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<word>[^\W\d]\w*)""",
    re.DOTALL,
)
_NUMBER = re.compile(r"\s*([0-9]+)\s*;?\s*")


def first_row_unsorted(text: str) -> str | None:
    """The statement without the ORDER BY of its last projection and with LIMIT 1; None where that
    projection does not skip as many sorted rows, or there is a UNION."""
    depth = 0
    places: dict[str, re.Match[str]] = {}
    for token in _TOKEN.finditer(text):
        depth += (token["open"] is not None) - (token["close"] is not None)
        word = (token["word"] or "").upper() if depth == 0 else ""
        if word == "UNION":
            return None
        if word in ("WITH", "RETURN"):
            places.clear()
        elif word in ("ORDER", "SKIP", "LIMIT"):
            places[word] = token
    if not {"ORDER", "SKIP"} <= places.keys():
        return None
    end = places["LIMIT"].start() if "LIMIT" in places else len(text)
    rows = text[places["SKIP"].end() : end]
    number = _NUMBER.fullmatch(rows)
    if number is not None and int(number[1]) <= SAFE_SKIP:
        return None
    return f"{text[: places['ORDER'].start()]}SKIP {rows.rstrip().removesuffix(';')}\nLIMIT 1"
