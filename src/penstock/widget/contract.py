"""Interface of a drawn graph in a notebook; the widget itself needs an optional package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from penstock.widget.drawing import Drawing, DrawnEdge, DrawnNode


class View(Protocol):
    """`selection` holds the ids of the selected nodes and follows the reader's clicks; `observe`
    tells of them."""

    selection: list[str]
    search: str
    colour_by: str | None
    size_by: str | None
    drawing: Drawing

    @property
    def selected(self) -> list[DrawnNode]: ...

    @property
    def selected_edges(self) -> list[DrawnEdge]: ...

    def observe(self, handler: Callable[..., object], names: str) -> None: ...

    def score(self, name: str, scores: Mapping[str, float | int | str]) -> None: ...

    def expand(self, node_id: str) -> None: ...

    def to_html(self, path: str | Path, *, title: str = "Graph") -> Path: ...
