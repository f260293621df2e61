"""Definitions on the small shop of `stand`, and pieces to spoil."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.graphs.mappings.definition import (
    Definitions,
    EdgeDefinition,
    NodeDefinition,
    Property,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def node(label: str = "Customer", **changes: Any) -> NodeDefinition:
    fields = {
        "label": label,
        "sql": "SELECT id, name FROM customers",
        "primary_key": Property(name="id", type="INT64"),
        "properties": (Property(name="name", type="STRING"),),
    }
    return NodeDefinition(**(fields | changes))


def edge(type: str = "KNOWS", **changes: Any) -> EdgeDefinition:  # noqa: A002 - as the wire calls it
    fields = {
        "type": type,
        "from_node": "Customer",
        "to_node": "Customer",
        "sql": "SELECT customer AS a, item % 1000 AS b FROM purchases",
        "from_key": "a",
        "to_key": "b",
    }
    return EdgeDefinition(**(fields | changes))


def mapping(
    nodes: Iterable[NodeDefinition] = (node(),), edges: Iterable[EdgeDefinition] = ()
) -> Definitions:
    return Definitions(nodes=tuple(nodes), edges=tuple(edges))
