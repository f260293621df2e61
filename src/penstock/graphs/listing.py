"""Sorting and substring search for list queries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.kit.sqlfile import Statement


def containing(text: str) -> str:
    """A LIKE pattern that matches the text anywhere, taken literally."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def ordered(listing: Statement, by: str, column: str, *, ascending: bool) -> Statement:
    """Replace the sort column of a list query; `column` must not come from user input."""
    turned = replace(listing, text=listing.text.replace(f"ORDER BY {by} ", f"ORDER BY {column} "))
    return turned.ascending() if ascending else turned
