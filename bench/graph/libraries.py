"""Benchmarks graph libraries, in their own process: `… libraries WAY NODES EDGES` prints CPU
seconds."""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.graph.data import power_law

if TYPE_CHECKING:
    from collections.abc import Callable


def networkit(nodes: int, edges: int) -> dict[str, Callable[[], object]]:
    import networkit as nk

    source, target = (ends.astype(np.uint64) for ends in power_law(nodes, edges))
    nk.setNumberOfThreads(1)
    graph = nk.GraphFromCoo((np.ones(edges), (source, target)), n=nodes, directed=True)
    undirected = nk.graphtools.toUndirected(graph)
    undirected.removeMultiEdges()
    undirected.removeSelfLoops()
    return {
        "pagerank": lambda: nk.centrality.PageRank(graph, damp=0.85, tol=1e-8).run().scores(),
        "wcc": lambda: nk.components.WeaklyConnectedComponents(graph).run().getPartition(),
        "kcore": lambda: nk.centrality.CoreDecomposition(undirected).run().scores(),
    }


def networkx(nodes: int, edges: int) -> dict[str, Callable[[], object]]:
    import networkx as nx

    source, target = power_law(nodes, edges)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    simple = graph.to_undirected()
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    return {
        "pagerank": lambda: nx.pagerank(graph, tol=1e-8 / nodes, max_iter=1000),
        "wcc": lambda: list(nx.weakly_connected_components(graph)),
        "kcore": lambda: nx.core_number(simple),
        "triangle_count": lambda: nx.triangles(simple),
    }


def ours(nodes: int, edges: int) -> dict[str, Callable[[], object]]:
    import pyarrow as pa
    import sknetwork.topology  # noqa: F401 - its import is not the algorithm's

    from penstock.graphdb.algorithms.algorithm import Task
    from penstock.graphdb.algorithms.catalog import algorithm, run
    from penstock.graphdb.algorithms.nodes import Nodes
    from penstock.graphdb.algorithms.parameters import check
    from penstock.graphdb.algorithms.topology import Edges, build

    source, target = power_law(nodes, edges)
    table = Edges(
        type="E", from_label="N", to_label="N", table=pa.table({"src": source, "dst": target})
    )
    graph = build(Nodes.of(["N"], [pa.array(np.arange(nodes))]), [table])

    def task(name: str) -> Callable[[], object]:
        chosen = algorithm(name)
        parameters = check(chosen.parameters, {})
        return lambda: run(
            chosen, Task(graph=graph, directed=chosen.directed, parameters=parameters)
        )

    return {name: task(name) for name in ("pagerank", "wcc", "kcore", "triangle_count")}


def main(way: str, nodes: int, edges: int) -> None:
    began = time.process_time()
    algorithms = {"networkit": networkit, "networkx": networkx, "ours": ours}[way](nodes, edges)
    result: dict[str, Any] = {"build": time.process_time() - began}
    for name, compute in algorithms.items():
        began = time.process_time()
        compute()
        result[name] = time.process_time() - began
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
