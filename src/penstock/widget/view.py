"""The notebook widget of a drawing: selection is a trait, expansion a callback.

Where no widgets run, as in a notebook that was made into a page, the same drawing stands in a frame
of its own.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING

import anywidget
import traitlets

from penstock.widget.drawing import MOST_NODES, Drawing, DrawnEdge, DrawnNode
from penstock.widget.expansion import EXPAND_CAP, Neighborhood, expanded, wanted
from penstock.widget.page import page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.widget.drawing import GraphResult
    from penstock.widget.expansion import Neighbors

HEIGHT = 520


class GraphView(anywidget.AnyWidget):
    """Draws a query's result; `selection` follows the reader's clicks, and `observe` tells of it.

    `colour_by` and `size_by` name a property of the nodes, None is by label and by connections.
    With `expand`, a double click brings a node's neighbors, at most `expand_cap` at once.
    """

    _esm = Path(__file__).parent / "static" / "widget.js"

    data: traitlets.Dict[str, object] = traitlets.Dict().tag(sync=True)
    colour_by = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    size_by = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    search = traitlets.Unicode("").tag(sync=True)
    selection = traitlets.List(traitlets.Unicode()).tag(sync=True)
    expandable = traitlets.Bool(False).tag(sync=True)
    height = traitlets.Int(HEIGHT, min=120, max=4000).tag(sync=True)

    def __init__(
        self,
        source: GraphResult | Drawing,
        *,
        caption: str | None = None,
        colour_by: str | None = None,
        size_by: str | None = None,
        height: int = HEIGHT,
        expand: Neighbors | None = None,
        expand_cap: int = EXPAND_CAP,
        most_nodes: int = MOST_NODES,
    ) -> None:
        if expand_cap < 1:
            raise ValueError("expand_cap is at least 1.")
        self._drawing = (
            source.capped(most_nodes)
            if isinstance(source, Drawing)
            else Drawing.of(source, caption=caption, most_nodes=most_nodes)
        )
        self._neighbors = expand
        self._expand_cap = expand_cap
        self._most_nodes = most_nodes
        self._asking: set[asyncio.Task[None]] = set()
        super().__init__(
            data=self._drawing.as_dict(),
            colour_by=colour_by,
            size_by=size_by,
            height=height,
            expandable=expand is not None,
        )
        self.on_msg(self._heard)

    @property
    def drawing(self) -> Drawing:
        return self._drawing

    @drawing.setter
    def drawing(self, drawing: Drawing) -> None:
        self._drawing = drawing.capped(self._most_nodes)
        self.data = self._drawing.as_dict()

    @property
    def selected(self) -> list[DrawnNode]:
        """The selected nodes with their properties."""
        chosen = set(self.selection)
        return [node for node in self._drawing.nodes if node.id in chosen]

    @property
    def selected_edges(self) -> list[DrawnEdge]:
        """The edges between selected nodes."""
        chosen = set(self.selection)
        return [
            edge for edge in self._drawing.edges if edge.source in chosen and edge.target in chosen
        ]

    def score(self, name: str, scores: Mapping[str, float | int | str]) -> None:
        """Give nodes, by their ids, an algorithm's score, and colour by it."""
        self.drawing = self._drawing.with_scores(name, scores)
        self.colour_by = name

    def expand(self, node_id: str) -> None:
        """Draw a node's neighbors, as a double click does."""
        if self._neighbors is None:
            raise ValueError("This view has no expand= callback, so it cannot load neighbors.")
        neighborhood = self._neighbors(node_id, wanted(self._drawing, node_id, self._expand_cap))
        if isinstance(neighborhood, Awaitable):
            task = asyncio.ensure_future(self._grow_later(neighborhood))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        else:
            self._grow(neighborhood)

    def to_html(self, path: str | Path, *, title: str = "Graph") -> Path:
        """One file that anyone can open, without a server and without a network."""
        target = Path(path)
        target.write_text(self._page(title), encoding="utf-8")
        return target

    def _repr_mimebundle_(
        self, **kwargs: dict[object, object]
    ) -> tuple[dict[str, object], dict[str, object]] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        frame = (
            f'<iframe srcdoc="{html.escape(self._page(""), quote=True)}" title="Graph" '
            'sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )
        return {**data, "text/html": frame}, metadata

    def _page(self, title: str) -> str:
        return page(self._drawing, title=title, colour_by=self.colour_by, size_by=self.size_by)

    def _heard(self, _: object, content: Mapping[str, object], __: object) -> None:
        if content.get("kind") != "expand":
            return
        try:
            self.expand(str(content.get("id")))
        except Exception as error:
            self._say(f"Could not load the neighbors: {error}")

    async def _grow_later(self, pending: Awaitable[Neighborhood]) -> None:
        try:
            self._grow(await pending)
        except Exception as error:
            self._say(f"Could not load the neighbors: {error}")

    def _grow(self, neighborhood: Neighborhood) -> None:
        grown = expanded(
            self._drawing, neighborhood, cap=self._expand_cap, most_nodes=self._most_nodes
        )
        self.drawing = grown.drawing
        self._say(grown.notice)

    def _say(self, text: str) -> None:
        self.send({"kind": "notice", "text": text})
