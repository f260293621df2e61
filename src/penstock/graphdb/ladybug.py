"""Ladybug: the living fork of the embedded engine, and our default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ladybug

from penstock.graphdb.embedded import EmbeddedEngine

if TYPE_CHECKING:
    from penstock.graphdb.registry import Opening


def open_engine(opening: Opening) -> EmbeddedEngine:
    return EmbeddedEngine(ladybug, opening, nested_arrow=True)
