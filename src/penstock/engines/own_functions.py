"""Expressions that call our own functions, which every engine registers under the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class OwnFunctions:
    """The part of a dialect that is the same on every engine."""

    def shortest(self, number: str) -> str:
        return f"_shortest({number})"

    def rounded(self, number: str, decimals: int) -> str:
        return f"_rounded({number}, {decimals})"

    def zone_offset(self, zone: str, seconds: str) -> str:
        return f"_zone_offset('{escaped(zone)}', {seconds})"

    def lower(self, text: str) -> str:
        return f"_lower({text})"

    def upper(self, text: str) -> str:
        return f"_upper({text})"

    def letters(self, text: str) -> str:
        return f"_letters({text})"

    def fail(self, reason: str) -> str:
        return f"_fail({reason})"


def escaped(text: Path | str) -> str:
    """The text for a literal in single quotes."""
    return str(text).replace("'", "''")
