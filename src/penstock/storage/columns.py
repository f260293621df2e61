"""What a manifest says of a column, readable without Arrow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    type: str
    nullable: bool
