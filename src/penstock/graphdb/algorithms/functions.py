"""Describes NetworkX functions for requests, and converts request parameters to arguments."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from penstock.graphdb.algorithms.allowed import ALLOWED, CATEGORY
from penstock.graphdb.algorithms.errors import AlgorithmNotFound
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.graphdb.algorithms.nodes import Nodes
    from penstock.kit.json_value import JsonValue

_NODE = {
    "source",
    "target",
    "s",
    "t",
    "_s",
    "_t",
    "u",
    "v",
    "node",
    "root",
    "node1",
    "node2",
    "nodeA",
    "nodeB",
}
_NODE |= {"start", "n"}
_NODES = {
    "nodes",
    "nbunch",
    "sources",
    "targets",
    "S",
    "T",
    "C",
    "center_nodes",
    "terminal_nodes",
    "top_nodes",
}
_NODES |= {"nbunch1", "nbunch2", "nodelist"}
_GROUPS = {"communities", "partition"}
_BY_NODE = {"personalization", "dangling", "nstart", "states"}
_EDGE_NUMBER = ("weight", "distance", "capacity")
_EDGE_PROPERTY = {*_EDGE_NUMBER, "edge_attr"}
_NODE_PROPERTY = {"attribute", "node_attr", "community"}
_NOT_OFFERED = {
    "backend",
    "backend_kwargs",
    "kwargs",
    "dtype",
    "flow_func",
    "auxiliary",
    "residual",
    "heap",
    "attr",
}
_NOT_OFFERED |= {
    "sort_neighbors",
    "heuristic",
    "e",
    "scc",
    "sp",
    "preserve_attrs",
    "cliques",
    "core_number",
    "keys",
}
_NOT_OFFERED |= {"topo_order", "matching_algorithm", "data", "most_valuable_edge", "paths"}
_SEED = 42
_OF_NODE_WEIGHT = {"max_weight_clique", "approximation_min_weighted_vertex_cover"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    call: Callable[..., object]
    parameters: tuple[inspect.Parameter, ...]
    suffixes: tuple[str, ...] = ("",)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    def describe(self) -> dict[str, JsonValue]:
        return {
            "name": self.name,
            "type": "networkx",
            "category": CATEGORY[self.name],
            "description": (inspect.getdoc(self.call) or "").partition("\n")[0],
            "parameters": [_described(p) for p in self.parameters],
            "direction": "either",
            "directed_default": None,
            "weights": "optional" if {"weight", "distance"} & set(self.names) else "ignored",
            "writes": True,
            "result_suffixes": list(self.suffixes),
        }

    def properties(
        self, parameters: Mapping[str, JsonValue], weight: str | None
    ) -> tuple[list[str], list[str]]:
        """The node properties and the edge properties that the function reads."""
        named = {name: value for name, value in parameters.items() if isinstance(value, str)}
        of_node = _NODE_PROPERTY | ({"weight"} if self.name in _OF_NODE_WEIGHT else set())
        nodes = [value for name, value in named.items() if name in of_node]
        edges = [value for name, value in named.items() if name in _EDGE_PROPERTY - of_node]
        return nodes, [*edges, *([weight] if weight else [])]

    def edge_weight(self, parameters: Mapping[str, JsonValue], weight: str | None) -> str | None:
        """The edge property that the function uses as weight, which selects the lightest of
        parallel edges."""
        own = () if self.name in _OF_NODE_WEIGHT else _EDGE_NUMBER
        named = (parameters[name] for name in own if isinstance(parameters.get(name), str))
        return next((str(name) for name in named), weight)

    def numbers(self, parameters: Mapping[str, JsonValue]) -> set[str]:
        """The properties that the function computes with, of nodes and edges."""
        named = (parameters[name] for name in _EDGE_NUMBER if isinstance(parameters.get(name), str))
        return {str(name) for name in named}

    def check(self, parameters: Mapping[str, JsonValue]) -> None:
        if unknown := sorted(set(parameters) - set(self.names)):
            raise InvalidInput(
                f"There is no parameter {unknown[0][:80]!r}.",
                hint=f"The parameters are: {', '.join(self.names) or 'none'}.",
                parameter=unknown[0][:80],
                known=list(self.names),
            )
        for parameter in self.parameters:
            if (
                parameter.default is inspect.Parameter.empty
                and parameters.get(parameter.name) is None
            ):
                raise InvalidInput(f"{parameter.name} is required.", parameter=parameter.name)

    def arguments(
        self, parameters: Mapping[str, JsonValue], weight: str | None, nodes: Nodes
    ) -> dict[str, object]:
        arguments = {
            name: _argument(name, value, nodes)
            for name, value in parameters.items()
            if value is not None
        }
        for name in ("weight", "distance"):
            if weight and name in self.names and self.name not in _OF_NODE_WEIGHT:
                arguments.setdefault(name, weight)
        if "seed" in self.names:
            arguments.setdefault("seed", _SEED)
        return arguments


def function(name: str) -> Function:
    if name not in ALLOWED:
        raise AlgorithmNotFound(
            f"The NetworkX function {name[:80]!r} does not exist or is not allowed.",
            hint="GET /networkx/algorithms lists the allowed functions.",
            algorithm=name[:80],
        )
    import networkx as nx

    call = cast("Callable[..., object]", attrgetter(ALLOWED[name])(nx))
    _first, *others = inspect.signature(call).parameters.values()
    offered = tuple(p for p in others if p.name not in _NOT_OFFERED)
    return Function(name=name, call=call, parameters=offered)


def _described(parameter: inspect.Parameter) -> dict[str, JsonValue]:
    required = parameter.default is inspect.Parameter.empty
    default = (
        None if required or callable(parameter.default) else cast("JsonValue", parameter.default)
    )
    return {
        "name": parameter.name,
        "type": _type(parameter.name, default),
        "description": _DESCRIPTIONS.get(parameter.name, ""),
        "required": required,
        "default": _SEED if parameter.name == "seed" else default,
    }


def _type(name: str, default: JsonValue) -> str:
    roles = {
        "node": _NODE,
        "nodes": _NODES,
        "groups": _GROUPS,
        "by_node": _BY_NODE,
        "pairs": {"ebunch"},
    }
    for role, names in roles.items():
        if name in names:
            return role
    match default:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "any"


_DESCRIPTIONS = {
    "weight": "An edge property; the default is the request's weight_property.",
    "distance": "An edge property; the default is the request's weight_property.",
    "seed": "Random seed; the same seed gives the same result.",
    "source": "A node's id.",
    "target": "A node's id.",
}


def _argument(name: str, value: JsonValue, nodes: Nodes) -> object:
    def node_id(reference: object) -> str:
        return nodes.ids([nodes.find(reference, name)])[0]

    if name in _NODE or (name in _NODES and not isinstance(value, list)):
        return node_id(value)
    if name in _NODES:
        return [node_id(one) for one in cast("list[JsonValue]", value)]
    if name in _BY_NODE and isinstance(value, dict):
        return {node_id(one): number for one, number in value.items()}
    if name in _GROUPS or name == "ebunch":
        if not isinstance(value, list) or not all(isinstance(group, list) for group in value):
            raise InvalidInput(f"{name} must be a list of lists of node ids.", parameter=name)
        kind = tuple if name == "ebunch" else set
        return [kind(node_id(one) for one in cast("list[JsonValue]", group)) for group in value]
    return value
