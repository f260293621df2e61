"""A call of NetworkX: the graph from Arrow columns with ids as nodes, so that whatever comes back
names them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.graphdb.algorithms.algorithm import Outcome
from penstock.graphdb.algorithms.encoding import Encoder
from penstock.graphdb.algorithms.equivalents import NOT_HERE, UNDIRECTED_ONLY, native
from penstock.graphdb.algorithms.topology import WEIGHT
from penstock.graphdb.contract import SOURCE, TARGET
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.graphdb.algorithms.functions import Function
    from penstock.graphdb.algorithms.parameters import Value
    from penstock.graphdb.algorithms.topology import Edges, Topology


def call(
    chosen: Function,
    given: Mapping[str, Value],
    *,
    graph: Topology,
    edges: list[Edges],
    properties: Mapping[str, pa.Array],
    weight: str | None,
    directed: bool | None,
) -> Outcome:
    """Without `directed` the graph is as its edges are, or undirected where the function knows only
    that."""
    ids = graph.nodes.ids(range(graph.count))
    arguments = chosen.arguments(given, weight, graph.nodes)
    encoder = Encoder(frozenset(ids))
    ways = (
        [directed]
        if directed is not None
        else [False]
        if chosen.name in UNDIRECTED_ONLY
        else [True, False]
    )
    for way in ways:
        found = native(chosen.name, given, graph, directed=way, ids=ids)
        if found is not NOT_HERE:
            return _outcome(found, encoder, ids, "native")
        try:
            made = _graph(ids, graph, edges, properties, directed=way)
            with _translated(chosen.name):
                return _outcome(chosen.call(made, **arguments), encoder, ids, "networkx")
        except _WrongKind as e:
            if way == ways[-1]:
                raise InvalidInput(str(e), parameter="directed") from e
    raise AssertionError("there is always one way at least")


class _WrongKind(Exception):
    """NetworkX does not know this function for such a graph."""


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """A generator says only while it is read that it cannot go on, so reading belongs in here."""
    import networkx as nx

    try:
        yield
    except nx.NetworkXNotImplemented as e:
        raise _WrongKind(f"{name}: {e}") from e
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
) -> Any:
    """Of parallel edges, of whatever types, the lightest is kept: the heavier go in first and are
    written over."""
    import networkx as nx

    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(ids)
    for name, column in properties.items():
        held = zip(ids, column.to_pylist(), strict=True)
        nx.set_node_attributes(
            graph, {node: value for node, value in held if value is not None}, name
        )
    starts: list[Any] = []
    ends: list[Any] = []
    weights: list[Any] = []
    attributes: list[dict[str, Any]] = []
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


def _outcome(found: Any, encoder: Encoder, ids: list[str], computed_by: str) -> Outcome:
    kind = encoder.kind(found)
    summary: dict[str, Value] = {"kind": kind, "computed_by": computed_by}
    if kind == "per_node" and (column := _column(found, ids)) is not None:
        return Outcome(summary=summary, columns={"": column})
    summary["value"] = encoder.encode(found)
    return Outcome(summary=summary | {"truncated": encoder.truncated})


def _column(found: Mapping[str, Any], ids: list[str]) -> pa.Array | None:
    """One plain value a node can be written back; anything deeper is given as it is."""
    held = (found.get(node) for node in ids)
    values = [value.item() if isinstance(value, np.generic) else value for value in held]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pa.array(values, pa.int64() if kinds == {int} else pa.float64(), from_pandas=False)
    return pa.array(values) if kinds in ({bool}, {str}) else None
