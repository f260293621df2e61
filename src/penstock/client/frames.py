"""Rows as data frames and graphs, with the engine's column types.

JSON has no dates; a column that the engine calls DATE or TIMESTAMP becomes one again. What needs
another package is imported when it is asked for.
"""

from __future__ import annotations

import base64
import json
from datetime import date, datetime
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    import igraph
    import pyarrow

    from penstock.client.graph_shapes import Cell, Element

_READ: dict[str, Callable[[str], Cell]] = {
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "BLOB": base64.b64decode,
}
_ARROW = {
    "BLOB": "binary",
    "BOOL": "bool",
    "DATE": "date32",
    "DOUBLE": "double",
    "FLOAT": "float",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "STRING": "string",
    "UUID": "string",
}


def typed(kind: str, values: Sequence[Cell]) -> list[Cell]:
    """A column's values as Python has them."""
    read = _READ.get(kind)
    if read is None:
        return list(values)
    return [read(value) if isinstance(value, str) else value for value in values]


def arrow(columns: Mapping[str, tuple[str, Sequence[Cell]]]) -> pyarrow.Table:
    """A table of columns, each with its type and its values."""
    table: pyarrow.Table = needed("pyarrow").table(
        {name: _array(*column) for name, column in columns.items()}
    )
    return table


def _array(kind: str, values: Sequence[Cell]) -> pyarrow.Array:
    arrow = needed("pyarrow")
    if kind == "TIMESTAMP":
        return arrow.array(typed(kind, values), arrow.timestamp("us", tz="UTC"))
    if kind in _ARROW:
        return arrow.array(typed(kind, values), arrow.type_for_alias(_ARROW[kind]))
    try:
        return arrow.array(list(values))
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        # Nodes of several labels may call things of different types by one name, which a struct
        # cannot.
        return arrow.array(
            [None if value is None else json.dumps(value, default=str) for value in values]
        )


def igraph_of(nodes: Mapping[str, Element], edges: Mapping[str, Element]) -> igraph.Graph:
    """A directed `igraph.Graph`, properties as attributes; a node that is only an edge's end has
    its id alone."""
    ends = (edge[end] for edge in edges.values() for end in ("_src", "_dst"))
    names = list(dict.fromkeys([*nodes, *ends]))
    place = {name: index for index, name in enumerate(names)}
    graph: igraph.Graph = needed("igraph").Graph(n=len(names), directed=True)
    graph.vs["name"] = names
    for attribute in dict.fromkeys(key for node in nodes.values() for key in node if key != "name"):
        graph.vs[attribute] = [nodes.get(name, {}).get(attribute) for name in names]
    if any("name" in node for node in nodes.values()):
        graph.vs["label"] = [nodes.get(name, {}).get("name") for name in names]
    graph.add_edges([(place[edge["_src"]], place[edge["_dst"]]) for edge in edges.values()])
    for attribute in dict.fromkeys(key for edge in edges.values() for key in edge):
        graph.es[attribute] = [edge.get(attribute) for edge in edges.values()]
    return graph


def needed(name: str) -> ModuleType:
    """A package that is not everybody's, or the one line that gets it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        package = name.partition(".")[0]
        raise ModuleNotFoundError(
            f"This needs {package}: pip install {package}", name=package
        ) from None
