"""The drawing: nodes and edges of a result, capped, as JSON-safe values.

A drawing never holds an edge without both its ends: an edge's missing end is drawn by its id alone,
and what the cap leaves out is counted, so that nobody takes a part for the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Scalar = str | int | float | bool | None

MOST_NODES = 2_000
MOST_EDGES = 10_000
LONGEST_TEXT = 300
# Beyond it a browser's numbers lose digits.
LARGEST_INTEGER = 2**53 - 1
CAPTIONS = ("name", "title", "caption", "full_name", "email", "code", "number")


class GraphResult(Protocol):
    """What a query's result offers: its nodes and edges by id."""

    def nodes(self) -> Mapping[str, Mapping[str, object]]: ...

    def edges(self) -> Mapping[str, Mapping[str, object]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNode:
    id: str
    label: str
    caption: str
    properties: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnEdge:
    id: str
    type: str
    source: str
    target: str
    properties: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """`nodes_left_out` and `edges_left_out` count what the caps dropped."""

    nodes: tuple[DrawnNode, ...] = ()
    edges: tuple[DrawnEdge, ...] = ()
    nodes_left_out: int = 0
    edges_left_out: int = 0

    @classmethod
    def of(
        cls,
        result: GraphResult,
        *,
        caption: str | None = None,
        most_nodes: int = MOST_NODES,
        most_edges: int = MOST_EDGES,
    ) -> Drawing:
        """Draw a result; `caption` names the property that is written beside each node."""
        return cls.from_elements(
            result.nodes().values(),
            result.edges().values(),
            caption=caption,
            most_nodes=most_nodes,
            most_edges=most_edges,
        )

    @classmethod
    def from_elements(
        cls,
        nodes: Iterable[Mapping[str, object]],
        edges: Iterable[Mapping[str, object]] = (),
        *,
        caption: str | None = None,
        most_nodes: int = MOST_NODES,
        most_edges: int = MOST_EDGES,
    ) -> Drawing:
        """From dicts as the engine gives them: `_id`, `_label`; `_id`, `_type`, `_src`, `_dst`."""
        met = [_edge(edge_data) for edge_data in edges]
        drawn_nodes = {node.id: node for node in (_node(node_data, caption) for node_data in nodes)}
        for edge in met:
            for end in (edge.source, edge.target):
                drawn_nodes.setdefault(end, _stub(end))
        return cls(
            nodes=tuple(drawn_nodes.values()), edges=tuple({edge.id: edge for edge in met}.values())
        ).capped(most_nodes, most_edges)

    def capped(self, most_nodes: int = MOST_NODES, most_edges: int = MOST_EDGES) -> Drawing:
        """The first nodes, and the first edges between them."""
        nodes = self.nodes[:most_nodes]
        drawn = {node.id for node in nodes}
        between = [edge for edge in self.edges if edge.source in drawn and edge.target in drawn]
        edges = tuple(between[:most_edges])
        return replace(
            self,
            nodes=nodes,
            edges=edges,
            nodes_left_out=self.nodes_left_out + len(self.nodes) - len(nodes),
            edges_left_out=self.edges_left_out + len(self.edges) - len(edges),
        )

    def with_scores(self, name: str, scores: Mapping[str, float | int | str]) -> Drawing:
        """Each node that has a score gets it as a property, to colour and size by."""
        nodes = tuple(
            replace(node, properties={**node.properties, name: _scalar(scores[node.id])})
            if node.id in scores
            else node
            for node in self.nodes
        )
        return replace(self, nodes=nodes)

    def degree(self, node_id: str) -> int:
        """How many drawn nodes it is joined to."""
        ends = {edge.target for edge in self.edges if edge.source == node_id}
        ends |= {edge.source for edge in self.edges if edge.target == node_id}
        return len(ends - {node_id})

    def as_dict(self) -> dict[str, object]:
        """As the browser takes it."""
        return {
            "nodes": [
                {
                    "id": node.id,
                    "label": node.label,
                    "caption": node.caption,
                    "properties": dict(node.properties),
                }
                for node in self.nodes
            ],
            "edges": [
                {
                    "id": edge.id,
                    "type": edge.type,
                    "source": edge.source,
                    "target": edge.target,
                    "properties": dict(edge.properties),
                }
                for edge in self.edges
            ],
            "left_out": {"nodes": self.nodes_left_out, "edges": self.edges_left_out},
        }


def _node(element: Mapping[str, object], caption: str | None) -> DrawnNode:
    properties = _properties(element)
    return DrawnNode(
        id=str(element["_id"]),
        label=str(element.get("_label") or ""),
        caption=_caption(str(element["_id"]), properties, caption),
        properties=properties,
    )


def _edge(element: Mapping[str, object]) -> DrawnEdge:
    return DrawnEdge(
        id=str(element["_id"]),
        type=str(element["_type"]),
        source=str(element["_src"]),
        target=str(element["_dst"]),
        properties=_properties(element),
    )


def _stub(node_id: str) -> DrawnNode:
    label, colon, key = node_id.partition(":")
    return DrawnNode(id=node_id, label=label if colon else "", caption=key or node_id)


def _caption(node_id: str, properties: Mapping[str, Scalar], property_name: str | None) -> str:
    names = (property_name,) if property_name is not None else CAPTIONS
    named = next(
        (str(properties[name]) for name in names if properties.get(name) not in (None, "")), None
    )
    return named or node_id.partition(":")[2] or node_id


def _properties(element: Mapping[str, object]) -> dict[str, Scalar]:
    return {name: _scalar(value) for name, value in element.items() if not name.startswith("_")}


def _scalar(value: object) -> Scalar:
    match value:
        case bool() | None:
            return value
        case int():
            return value if abs(value) <= LARGEST_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case _:
            text = str(value)
            return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
