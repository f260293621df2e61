"""What is wrong with a recipe: where, what, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`severity` is error or warning; a warning lets the recipe run."""

    path: str
    message: str
    suggestion: str
    severity: str = "error"


def nearest(name: str, known: Collection[str], otherwise: str = "") -> str:
    """A suggestion for a name that is not known."""
    folded = {word.lower(): word for word in known}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {folded[close[0]]}?"
    return otherwise or (
        f"There are: {', '.join(sorted(known)[:_SHOWN])}." if known else "Leave it out."
    )
