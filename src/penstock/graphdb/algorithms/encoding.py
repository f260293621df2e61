"""Encodes NetworkX results as JSON: scalars, lists, sets, generators, graphs, and dictionaries by
node or edge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np

from penstock.graphdb.algorithms.algorithm import LIST_LIMIT, exact

if TYPE_CHECKING:
    import networkx as nx

    from penstock.kit.json_value import JsonValue

Kind: TypeAlias = Literal["per_node", "per_edge", "scalar", "list", "mapping", "tuple", "graph"]


_Item = TypeVar("_Item")


class Encoder:
    """Encodes at most `limit` items in total; `truncated` tells that there were more."""

    def __init__(self, ids: Set[str], limit: int = LIST_LIMIT) -> None:
        self._ids = ids
        self._left = limit
        self.truncated = False

    def kind(self, value: object) -> Kind:
        import networkx as nx

        match value:
            case nx.Graph():
                return "graph"
            case str() | bytes() | bool() | int() | float() | None | np.generic():
                return "scalar"
            case Mapping():
                keys = list(islice(value, 100))
                if keys and all(isinstance(key, str) and key in self._ids for key in keys):
                    return "per_node"
                return "per_edge" if keys and all(self._is_edge(key) for key in keys) else "mapping"
            case tuple():
                return "tuple"
        return "list"

    def encode(self, value: object) -> JsonValue:
        kind = self.kind(value)
        if kind == "scalar":
            return _scalar(value)
        if kind == "graph":
            return self._graph(value)
        if not isinstance(value, Mapping):
            return self._listed(value)
        if kind == "per_edge":
            items = [(key, self.encode(item)) for key, item in self._some(value.items())]
            return [{"source": key[0], "target": key[1], "value": item} for key, item in items]
        return {str(key): self.encode(item) for key, item in self._some(value.items())}

    def _listed(self, value: object) -> JsonValue:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, Set):
            value = sorted(value, key=str)
        if not isinstance(value, Iterable):
            return str(value)
        return [self.encode(one) for one in self._some(value)]

    def _graph(self, graph: nx.Graph) -> JsonValue:
        nodes: list[JsonValue] = [
            {**self._attributes(attributes), "id": str(node)}
            for node, attributes in self._some(graph.nodes(data=True))
        ]
        edges: list[JsonValue] = [
            {**self._attributes(attributes), "source": str(a), "target": str(b)}
            for a, b, attributes in self._some(graph.edges(data=True))
        ]
        return {"directed": graph.is_directed(), "nodes": nodes, "edges": edges}

    def _attributes(self, attributes: Mapping[object, object]) -> dict[str, JsonValue]:
        return {str(name): self.encode(value) for name, value in attributes.items()}

    def _some(self, items: Iterable[_Item]) -> Iterator[_Item]:
        for item in items:
            if self._left <= 0:
                self.truncated = True
                return
            self._left -= 1
            yield item

    def _is_edge(self, key: object) -> bool:
        return (
            isinstance(key, tuple)
            and len(key) in (2, 3)
            and key[0] in self._ids
            and key[1] in self._ids
        )


def _scalar(value: object) -> JsonValue:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | float | str):
        return value
    return exact(value) if isinstance(value, int) else str(value)
