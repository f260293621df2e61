"""The rings, drawn by the same code as in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.widget.drawing import Drawing
from penstock.widget.page import assets, fragment, policy

if TYPE_CHECKING:
    from penstock.cli.demo.rings import Rings
    from penstock.client.graph_shapes import Element

HEIGHT = 520


def head() -> str:
    """Lets the page run the drawing's script and fetch nothing."""
    return f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'


def drawn(rings: Rings) -> str:
    nodes = [_named(node) for ring in rings.found for node in ring.nodes.values()]
    edges = [edge for ring in rings.found for edge in ring.edges.values()]
    return fragment(Drawing.from_elements(nodes, edges), height=HEIGHT)


def script() -> str:
    """Once a page, after what it draws."""
    return assets()


def _named(node: Element) -> Element:
    """A device has no name; what it is says more than its number."""
    return node | {"caption": node["kind"]} if "kind" in node else node
