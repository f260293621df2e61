"""Lists by any of their columns, and what contains a text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.kit.sqlfile import Statement


def containing(text: str) -> str:
    """The LIKE pattern of whatever contains the text, which is taken as it is."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def ordered(listing: Statement, by: str, column: str, *, ascending: bool) -> Statement:
    """A list by another column of ours than the one that is written in it."""
    turned = replace(listing, text=listing.text.replace(f"ORDER BY {by} ", f"ORDER BY {column} "))
    return turned.ascending() if ascending else turned
