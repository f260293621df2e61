"""A fault of a recipe: the path, the message and a suggestion."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`severity` is error or warning; a recipe with warnings can run."""

    path: str
    message: str
    suggestion: str
    severity: str = "error"


def nearest(name: str, names: Collection[str], otherwise: str = "") -> str:
    """A suggestion for an unknown name: the closest known one."""
    folded = {word.lower(): word for word in names}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {folded[close[0]]}?"
    return otherwise or (
        f"There are: {', '.join(sorted(names)[:_SHOWN])}." if names else "Leave it out."
    )
