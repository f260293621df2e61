"""Small graphs as topologies, and the same ones for NetworkX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import networkx as nx
import pyarrow as pa
from hypothesis import strategies as st

from penstock.graphdb.algorithms.algorithm import Outcome, Task
from penstock.graphdb.algorithms.catalog import algorithm, direction, run
from penstock.graphdb.algorithms.nodes import Nodes
from penstock.graphdb.algorithms.parameters import check
from penstock.graphdb.algorithms.topology import WEIGHT, Edges, Topology, build
from penstock.graphdb.contract import SOURCE, TARGET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Drawn:
    """Edges as (source, target, weight) among nodes 0 … count - 1."""

    count: int
    edges: list[tuple[int, int, float]]

    def topology(self, *, weighted: bool = False) -> Topology:
        return topology(range(self.count), self.edges if weighted else [e[:2] for e in self.edges])

    def simple(self, *, directed: bool, loops: bool = True) -> Any:
        """NetworkX without parallel edges: the lightest stays."""
        graph = nx.DiGraph() if directed else nx.Graph()
        graph.add_nodes_from(range(self.count))
        for a, b, w in sorted(self.edges, key=lambda e: -e[2]):
            if loops or a != b:
                graph.add_edge(a, b, weight=w)
        return graph

    def multi(self, *, directed: bool) -> Any:
        graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
        graph.add_nodes_from(range(self.count))
        graph.add_weighted_edges_from(self.edges)
        return graph


@st.composite
def drawn(draw: st.DrawFn, *, least: int = 1, most: int = 12, edges: int = 40) -> Drawn:
    count = draw(st.integers(least, most))
    node = st.integers(0, count - 1)
    weight = st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 7.0])
    return Drawn(count, draw(st.lists(st.tuples(node, node, weight), max_size=edges)))


def topology(
    keys: Sequence[Any], edges: Sequence[tuple[Any, ...]], *, label: str = "Node"
) -> Topology:
    """Edges between keys, with a third item as their weight."""
    names = list(keys)
    place = {key: at for at, key in enumerate(names)}
    columns: dict[str, pa.Array] = {
        SOURCE: pa.array([place[e[0]] for e in edges], pa.int64()),
        TARGET: pa.array([place[e[1]] for e in edges], pa.int64()),
    }
    if edges and len(edges[0]) == 3:
        columns[WEIGHT] = pa.array([e[2] for e in edges], pa.float64())
    table = Edges(type="LINK", from_label=label, to_label=label, table=pa.table(columns))
    return build(Nodes.of([label], [pa.array(names)]), [table])


def outcome(
    name: str,
    graph: Topology,
    parameters: Mapping[str, Any] | None = None,
    *,
    directed: bool | None = None,
    properties: Mapping[str, pa.Array] | None = None,
) -> Outcome:
    chosen = algorithm(name)
    checked = check(chosen.parameters, parameters or {})
    way = direction(chosen, directed)
    return run(
        chosen, Task(graph=graph, directed=way, parameters=checked, properties=properties or {})
    )


def values(result: Outcome, suffix: str = "") -> list[Any]:
    listed: list[Any] = result.columns[suffix].to_pylist()
    return listed


def groups(result: Outcome) -> set[frozenset[int]]:
    by_group: dict[int, set[int]] = {}
    for node, group in enumerate(values(result)):
        by_group.setdefault(group, set()).add(node)
    return {frozenset(members) for members in by_group.values()}
