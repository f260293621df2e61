"""Calls NetworkX functions on a graph built from Arrow columns, with ids as nodes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graphdb.algorithms.algorithm import Outcome
from penstock.graphdb.algorithms.encoding import Encoder
from penstock.graphdb.algorithms.equivalents import NOT_HERE, UNDIRECTED_ONLY, native
from penstock.graphdb.algorithms.topology import WEIGHT
from penstock.graphdb.contract import SOURCE, TARGET
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    import networkx as nx

    from penstock.graphdb.algorithms.functions import Function
    from penstock.graphdb.algorithms.nodes import Floats, Ints
    from penstock.graphdb.algorithms.topology import Edges, Topology
    from penstock.kit.json_value import JsonValue


def call(
    chosen: Function,
    parameters: Mapping[str, JsonValue],
    *,
    graph: Topology,
    edges: list[Edges],
    properties: Mapping[str, pa.Array],
    weight: str | None,
    directed: bool | None,
) -> Outcome:
    """Without `directed` the graph is directed, or undirected where the function supports only
    that."""
    for name in chosen.numbers(parameters):
        _check_finite(name, [properties[name]] if name in properties else [], edges)
    ids = graph.nodes.ids(range(graph.count))
    arguments = chosen.arguments(parameters, weight, graph.nodes)
    encoder = Encoder(frozenset(ids))
    ways = (
        [directed]
        if directed is not None
        else [False]
        if chosen.name in UNDIRECTED_ONLY
        else [True, False]
    )
    for way in ways:
        result = native(chosen.name, parameters, graph, directed=way, ids=ids)
        if result is not NOT_HERE:
            return _outcome(result, encoder, ids, "native")
        try:
            networkx_graph = _graph(ids, graph, edges, properties, directed=way)
            with _translated(chosen.name):
                return _outcome(chosen.call(networkx_graph, **arguments), encoder, ids, "networkx")
        except _WrongDirection as e:
            if way == ways[-1]:
                raise InvalidInput(str(e), parameter="directed") from e
    raise AssertionError("at least one direction is tried")


def _check_finite(name: str, of_nodes: list[pa.Array], edges: list[Edges]) -> None:
    """NetworkX compares NaN like any number, and answers wrongly."""
    of_edges = [e.table[name] for e in edges if name in e.table.column_names]
    for column in (*of_nodes, *of_edges):
        if pa.types.is_floating(column.type) and pc.any(pc.invert(pc.is_finite(column))).as_py():
            raise InvalidInput(f"{name} has values that are not finite.", parameter=name)


class _WrongDirection(Exception):
    """NetworkX does not implement this function for directed (or undirected) graphs."""


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Translate NetworkX's errors. A generator raises while it is read, so read it inside."""
    import networkx as nx

    try:
        yield
    except nx.NetworkXNotImplemented as e:
        raise _WrongDirection(f"{name}: {e}") from e
    except (nx.NetworkXException, TypeError, ValueError, KeyError, ZeroDivisionError) as e:
        raise InvalidInput(f"{name}: {_reason(e)}", algorithm=name) from e


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:500]


def _graph(
    ids: list[str],
    topology: Topology,
    edges: list[Edges],
    properties: Mapping[str, pa.Array],
    *,
    directed: bool,
) -> nx.Graph:
    """Of parallel edges of any type the lightest is kept: edges are added by descending weight and
    overwrite each other."""
    import networkx as nx

    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(ids)
    for name, column in properties.items():
        pairs = zip(ids, column.to_pylist(), strict=True)
        nx.set_node_attributes(
            graph, {node: value for node, value in pairs if value is not None}, name
        )
    starts: list[Ints] = []
    ends: list[Ints] = []
    weights: list[Floats] = []
    attributes: list[dict[str, object]] = []
    for table in edges:
        columns = table.table
        names = [name for name in columns.column_names if name not in (SOURCE, TARGET, WEIGHT)]
        starts.append(columns[SOURCE].to_numpy() + topology.nodes.span(table.from_label).start)
        ends.append(columns[TARGET].to_numpy() + topology.nodes.span(table.to_label).start)
        weights.append(columns[WEIGHT].to_numpy() if topology.weighted else np.zeros(len(columns)))
        attributes += columns.select(names).to_pylist() if names else [{}] * len(columns)
    if edges:
        order = np.argsort(-np.concatenate(weights), kind="stable").tolist()
        sources, targets = np.concatenate(starts).tolist(), np.concatenate(ends).tolist()
        graph.add_edges_from((ids[sources[i]], ids[targets[i]], attributes[i]) for i in order)
    return graph


def _outcome(result: object, encoder: Encoder, ids: list[str], computed_by: str) -> Outcome:
    kind = encoder.kind(result)
    summary: dict[str, JsonValue] = {"kind": kind, "computed_by": computed_by}
    if kind == "per_node" and isinstance(result, Mapping):
        column = _column(result, ids)
        if column is not None:
            return Outcome(summary=summary, columns={"": column})
    summary["value"] = encoder.encode(result)
    return Outcome(summary=summary | {"truncated": encoder.truncated})


def _column(by_node: Mapping[str, object], ids: list[str]) -> pa.Array | None:
    """A column of one scalar per node, which can be written back; None for nested values."""
    items = (by_node.get(node) for node in ids)
    values = [value.item() if isinstance(value, np.generic) else value for value in items]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pa.array(values, pa.int64() if kinds == {int} else pa.float64(), from_pandas=False)
    return pa.array(values) if kinds in ({bool}, {str}) else None
