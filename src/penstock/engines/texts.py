"""Texts, computed by Arrow for every engine: each engine has a version of Unicode of its own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_OTHER_THAN_LETTERS = r"[^\p{L}\p{N} ]+"
FAILED = "cannot be computed: "
"""What the messages of `fail` have before the reason."""


def lower(texts: pa.Array) -> pa.Array:
    """In lower case, one character for one; a final sigma is a sigma."""
    return pc.replace_substring(pc.utf8_lower(texts), "ς", "σ")


def upper(texts: pa.Array) -> pa.Array:
    """In upper case, one character for one: ß becomes ẞ, and what has no single capital stays."""
    return pc.utf8_upper(texts)


def letters(texts: pa.Array) -> pa.Array:
    """Letters, numbers and spaces of texts, without anything else."""
    return pc.replace_substring_regex(texts, _OTHER_THAN_LETTERS, "")


def fail(reasons: pa.Array) -> pa.Array:
    """Ends a query with the first of these reasons; engines call it for no rows too."""
    if len(reasons):
        raise ValueError(f"{FAILED}{reasons[0].as_py()}.")
    return pa.array([], pa.string())


FUNCTIONS = {"_fail": fail, "_letters": letters, "_lower": lower, "_upper": upper}
"""By the names that engines register them under; a text each in and out."""
