"""Neutralize text that a spreadsheet would run as a formula when it opens a CSV file.

A cell that begins with `=`, `+`, `-` or `@` is evaluated when the file is opened, and may read
other cells, files and URLs. A leading apostrophe makes it text. Numbers such as `-12.50` stay as
they are. Text after a semicolon, a tab or a line break may become a cell of its own if the
spreadsheet uses another delimiter, so it is treated as the beginning of a cell too.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

Formulas = Literal["neutralize", "keep"]
MARK = "'"
_SIGNS = r"=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}"
"""The last four are their full-width forms, which spreadsheets treat the same."""
_BLANKS = r"[\x00-\x20\x7f-\x{a0}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{3000}\x{feff}\"]*"
_NUMBER = r"^[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]{1,4})?$"
_BEGINNING = rf"^({_BLANKS}[{_SIGNS}]|[\t\r\n])"
_LATER = rf"([;\t\r\n]{_BLANKS})([{_SIGNS}])"


def neutralized(texts: pa.Array) -> pa.Array:
    """The texts, with an apostrophe before everything that would be a formula."""
    marked = pc.replace_substring_regex(texts, pattern=_LATER, replacement=rf"\1{MARK}\2")
    marked = pc.replace_substring_regex(marked, pattern=_BEGINNING, replacement=rf"{MARK}\1")
    return pc.if_else(pc.match_substring_regex(texts, pattern=_NUMBER), texts, marked)
