"""The types of an algorithm: its description, its input (`Task`) and its result (`Outcome`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.graphdb.algorithms.nodes import Floats, Ints, Mask
    from penstock.graphdb.algorithms.parameters import Parameter
    from penstock.graphdb.algorithms.topology import Topology
    from penstock.kit.json_value import JsonValue

Category: TypeAlias = Literal[
    "centrality", "community", "pathfinding", "similarity", "embedding", "structure"
]
Direction: TypeAlias = Literal["either", "directed", "undirected"]
Weights: TypeAlias = Literal["ignored", "optional", "positive"]
"""`optional` weights must not be negative; `positive` ones must be more than zero."""
LIST_LIMIT = 100_000
_EXACT_IN_JSON = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An algorithm's result. `columns` maps a suffix of the result property's name to one value
    per node; the empty suffix is the property itself."""

    summary: dict[str, JsonValue] = field(default_factory=dict)
    columns: Mapping[str, pa.Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    graph: Topology
    directed: bool
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    progress: Callable[[float], None] = lambda _fraction: None
    properties: Mapping[str, pa.Array] = field(default_factory=dict)

    def number(self, name: str) -> float:
        return cast("float", self.parameters[name])

    def integer(self, name: str) -> int:
        return cast("int", self.parameters[name])

    def flag(self, name: str) -> bool:
        return bool(self.parameters[name])

    def text(self, name: str) -> str:
        return cast("str", self.parameters[name])

    def node(self, name: str) -> int:
        return self.graph.nodes.find(self.parameters[name], name)

    def nodes(self, name: str) -> list[int]:
        ids = cast("list[JsonValue]", self.parameters[name])
        return [self.graph.nodes.find(one, name) for one in ids]


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    name: str
    description: str
    category: Category
    run: Callable[[Task], Outcome]
    parameters: tuple[Parameter, ...] = ()
    direction: Direction = "either"
    directed: bool = True
    weights: Weights = "ignored"
    per_node: bool = True
    suffixes: tuple[str, ...] = ("",)

    def describe(self) -> dict[str, JsonValue]:
        return {
            "name": self.name,
            "type": "native",
            "category": self.category,
            "description": self.description,
            "parameters": [p.describe() for p in self.parameters],
            "direction": self.direction,
            "directed_default": self.directed,
            "weights": self.weights,
            "writes": self.per_node,
            "result_suffixes": list(self.suffixes) if self.per_node else [],
        }


def column(values: npt.NDArray[np.generic], missing: Mask | None = None) -> pa.Array:
    """Values as Arrow, with nulls where `missing`."""
    return pa.array(values, mask=missing)


def by_size(labels: Ints) -> tuple[Ints, Ints]:
    """Groups renumbered from 0 by descending size (ties by their first node), and their sizes."""
    if not len(labels):
        return labels, labels
    _, first, inverse, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -sizes))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse.reshape(-1)], sizes[order].astype(np.int64)


def statistics(values: Floats) -> dict[str, JsonValue]:
    if not len(values):
        return {"minimum": None, "maximum": None, "mean": None}
    return {
        "minimum": float(values.min()),
        "maximum": float(values.max()),
        "mean": float(values.mean()),
    }


def exact(number: int) -> int | str:
    """An integer, as text where JSON readers would round it."""
    return number if abs(number) <= _EXACT_IN_JSON else str(number)
