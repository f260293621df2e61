"""Adds a node's neighbors to a drawing, within the cap per expansion and in total."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from penstock.widget.drawing import MOST_EDGES, MOST_NODES, Drawing

EXPAND_CAP = 25


class Neighborhood(TypedDict):
    """Nodes and edges as the engine gives them; `truncated` when there are more."""

    nodes: Sequence[Mapping[str, object]]
    edges: Sequence[Mapping[str, object]]
    truncated: bool


Neighbors = Callable[[str, int], Neighborhood | Awaitable[Neighborhood]]
"""From a node's id and a limit of nodes to what lies one hop around it, itself included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    drawing: Drawing
    added: int
    notice: str


def wanted(drawing: Drawing, node_id: str, cap: int) -> int:
    """How many nodes to ask for, so that `cap` of them may be new: the node itself and what is
    drawn come again."""
    return 1 + drawing.degree(node_id) + cap


def expanded(
    drawing: Drawing,
    neighborhood: Neighborhood,
    *,
    cap: int = EXPAND_CAP,
    most_nodes: int = MOST_NODES,
) -> Expansion:
    around = Drawing.from_elements(
        neighborhood["nodes"], neighborhood["edges"], most_nodes=most_nodes + cap + 1
    )
    drawn_ids = {node.id for node in drawing.nodes}
    fresh = [node for node in around.nodes if node.id not in drawn_ids]
    room = max(most_nodes - len(drawing.nodes), 0)
    taken = fresh[: min(cap, room)]
    drawn = drawn_ids | {node.id for node in taken}
    old = {edge.id for edge in drawing.edges}
    edges = [e for e in around.edges if e.id not in old and e.source in drawn and e.target in drawn]
    grown = replace(drawing, nodes=(*drawing.nodes, *taken), edges=(*drawing.edges, *edges)).capped(
        most_nodes, MOST_EDGES
    )
    more = neighborhood["truncated"] or len(fresh) > len(taken)
    notice = _notice(added=len(taken), more=more, full=room <= len(taken), most=most_nodes)
    return Expansion(drawing=grown, added=len(taken), notice=notice)


def _notice(*, added: int, more: bool, full: bool, most: int) -> str:
    if more and full:
        return f"The drawing is full at {most:,} nodes; {added:,} were added, and there are more."
    if more:
        return f"{added:,} neighbors were added, and there are more: expand again."
    return "" if added else "All its neighbors are drawn."
