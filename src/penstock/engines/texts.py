"""Text functions computed by Arrow for every engine: each engine has its own version of Unicode."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_OTHER_THAN_LETTERS = r"[^\p{L}\p{N} ]+"
FAILED = "cannot be computed: "
"""Prefix of the messages of `fail`."""


def lower(texts: pa.Array) -> pa.Array:
    """Lower case, one character for one; a final sigma is a sigma."""
    return pc.replace_substring(pc.utf8_lower(texts), "ς", "σ")


def upper(texts: pa.Array) -> pa.Array:
    """Upper case, one character for one: ß becomes ẞ; a character without a single capital
    stays."""
    return pc.utf8_upper(texts)


def letters(texts: pa.Array) -> pa.Array:
    """The letters, numbers and spaces of texts."""
    return pc.replace_substring_regex(texts, _OTHER_THAN_LETTERS, "")


def fail(reasons: pa.Array) -> pa.Array:
    """Fail the query with the first of these reasons; engines also call it with no rows."""
    if len(reasons):
        raise ValueError(f"{FAILED}{reasons[0].as_py()}.")
    return pa.array([], pa.string())


FUNCTIONS = {"_fail": fail, "_letters": letters, "_lower": lower, "_upper": upper}
"""By registered name; each maps one text to one text."""
