"""Ryugraph: the first fork of the embedded engine. Its Arrow export breaks structs that are null, so results that may
hold one go by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ryugraph

from penstock.graphdb.embedded import EmbeddedEngine

if TYPE_CHECKING:
    from penstock.graphdb.registry import Opening


def open_engine(opening: Opening) -> EmbeddedEngine:
    return EmbeddedEngine(ryugraph, opening, nested_arrow=False)
