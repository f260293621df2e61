"""Native algorithms compared with NetworkX on random graphs with parallel edges and loops."""

from __future__ import annotations

from itertools import islice
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.graphdb.algorithms.dependencies import dependencies
from penstock.graphdb.algorithms.topology import without_loops
from tests.graphdb.algorithms.graphs import Drawn, drawn, groups, outcome, values

tries = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WAYS = st.booleans()


def by_node(scores: dict[int, Any]) -> list[Any]:
    return [scores[node] for node in sorted(scores)]


@tries
@given(drawn(), WAYS, WAYS)
def test_pagerank(graph: Drawn, directed: bool, weighted: bool) -> None:
    parameters = {"tolerance": 1e-12, "max_iterations": 1000}
    mine = outcome("pagerank", graph.topology(weighted=weighted), parameters, directed=directed)
    other = nx.pagerank(
        graph.multi(directed=directed),
        weight="weight" if weighted else None,
        tol=1e-13,
        max_iter=1000,
    )
    assert values(mine) == pytest.approx(by_node(other), abs=1e-8)


@tries
@given(drawn(), WAYS, st.data())
def test_personalized_pagerank(graph: Drawn, directed: bool, data: st.DataObject) -> None:
    sources = data.draw(st.sets(st.integers(0, graph.count - 1), min_size=1))
    parameters = {"source_ids": sorted(sources), "tolerance": 1e-12, "max_iterations": 1000}
    mine = outcome("personalized_pagerank", graph.topology(), parameters, directed=directed)
    multi = graph.multi(directed=directed)
    other = nx.pagerank(
        multi, weight=None, personalization=dict.fromkeys(sources, 1), tol=1e-13, max_iter=1000
    )
    assert values(mine) == pytest.approx(by_node(other), abs=1e-8)


@tries
@given(drawn())
def test_components(graph: Drawn) -> None:
    multi = graph.multi(directed=True)
    assert groups(outcome("wcc", graph.topology())) == set(
        map(frozenset, nx.weakly_connected_components(multi))
    )
    strong = set(map(frozenset, nx.strongly_connected_components(multi)))
    assert groups(outcome("scc", graph.topology())) == strong
    assert groups(outcome("scc_kosaraju", graph.topology())) == strong


@tries
@given(drawn(least=3), WAYS)
def test_eigenvector(graph: Drawn, directed: bool) -> None:
    ring = [(n, (n + 1) % graph.count, 1.0) for n in range(graph.count)]
    simple = Drawn(graph.count, graph.edges + ring).simple(directed=directed)
    topology = Drawn(graph.count, _once(simple)).topology()
    mine = outcome("eigenvector", topology, {"max_iterations": 10_000}, directed=directed)
    assert values(mine) == pytest.approx(by_node(nx.eigenvector_centrality_numpy(simple)), abs=1e-4)


def _once(graph: Any) -> list[tuple[int, int, float]]:
    return [(a, b, 1.0) for a, b in graph.edges()]


@tries
@given(drawn(), WAYS)
def test_katz(graph: Drawn, directed: bool) -> None:
    simple = graph.simple(directed=directed)
    mine = outcome(
        "katz",
        Drawn(graph.count, _once(simple)).topology(),
        {"alpha": 0.02, "tolerance": 1e-12, "max_iterations": 1000},
        directed=directed,
    )
    assert values(mine) == pytest.approx(
        by_node(nx.katz_centrality(simple, alpha=0.02, tol=1e-12)), abs=1e-8
    )


def test_hits() -> None:
    simple = nx.gnp_random_graph(30, 0.2, seed=4, directed=True)
    mine = outcome(
        "hits", Drawn(30, _once(simple)).topology(), {"max_iterations": 10000, "tolerance": 1e-13}
    )
    hubs, authorities = nx.hits(simple)
    assert values(mine, "_hub") == pytest.approx(by_node(hubs), abs=1e-6)
    assert values(mine, "_authority") == pytest.approx(by_node(authorities), abs=1e-6)


@tries
@given(drawn(), WAYS)
def test_degree(graph: Drawn, weighted: bool) -> None:
    multi, topology = graph.multi(directed=True), graph.topology(weighted=weighted)
    weight = "weight" if weighted else None
    for which, other in (
        ("in", multi.in_degree),
        ("out", multi.out_degree),
        ("both", multi.degree),
    ):
        assert values(outcome("degree", topology, {"direction": which})) == pytest.approx(
            by_node(dict(other(weight=weight)))
        )


@tries
@given(drawn(), WAYS, WAYS, WAYS)
def test_betweenness(graph: Drawn, directed: bool, weighted: bool, normalized: bool) -> None:
    simple = graph.simple(directed=directed)
    topology = graph.topology(weighted=weighted)
    mine = outcome("betweenness", topology, {"normalized": normalized}, directed=directed)
    other = nx.betweenness_centrality(
        simple, weight="weight" if weighted else None, normalized=normalized
    )
    assert values(mine) == pytest.approx(by_node(other), abs=1e-9)


@tries
@given(drawn(), WAYS)
def test_dependencies_of_all_sources_are_betweenness(graph: Drawn, directed: bool) -> None:
    matrix = without_loops(graph.topology().costs(directed=directed))
    mine = dependencies(matrix, np.arange(graph.count), lambda _: None)
    other = nx.betweenness_centrality(graph.simple(directed=directed), normalized=False)
    assert mine * (1 if directed else 0.5) == pytest.approx(by_node(other), abs=1e-9)


@tries
@given(drawn(), WAYS, WAYS)
def test_closeness_and_harmonic(graph: Drawn, directed: bool, weighted: bool) -> None:
    simple, topology = graph.simple(directed=directed), graph.topology(weighted=weighted)
    weight = "weight" if weighted else None
    close = outcome("closeness", topology, directed=directed)
    assert values(close) == pytest.approx(
        by_node(nx.closeness_centrality(simple, distance=weight)), abs=1e-9
    )
    harmonic = outcome("harmonic", topology, directed=directed)
    assert values(harmonic) == pytest.approx(
        by_node(nx.harmonic_centrality(simple, distance=weight)), abs=1e-9
    )


@tries
@given(drawn())
def test_cores_triangles_and_clustering(graph: Drawn) -> None:
    simple, topology = graph.simple(directed=False, loops=False), graph.topology()
    assert values(outcome("kcore", topology)) == by_node(nx.core_number(simple))
    assert values(outcome("triangle_count", topology)) == by_node(nx.triangles(simple))
    clustering = outcome("clustering_coefficient", topology)
    assert values(clustering) == pytest.approx(by_node(nx.clustering(simple)))
    assert clustering.summary["transitivity"] == pytest.approx(nx.transitivity(simple))


@tries
@given(drawn(), WAYS, WAYS, st.data())
def test_paths(graph: Drawn, directed: bool, weighted: bool, data: st.DataObject) -> None:
    node = st.integers(0, graph.count - 1)
    source, target = data.draw(node), data.draw(node)
    simple, topology = graph.simple(directed=directed), graph.topology(weighted=weighted)
    weight = "weight" if weighted else None
    reached = nx.single_source_dijkstra_path_length(simple, source, weight=weight or (lambda *_: 1))
    lengths = values(outcome("sssp", topology, {"source_id": source}, directed=directed))
    assert lengths == [reached.get(n) for n in range(graph.count)]
    one = outcome(
        "shortest_path", topology, {"source_id": source, "target_id": target}, directed=directed
    ).summary
    every = outcome(
        "all_shortest_paths",
        topology,
        {"source_id": source, "target_id": target},
        directed=directed,
    ).summary
    assert one["distance"] == every["distance"] == reached.get(target)
    if target in reached:
        paths = [_names(p) for p in nx.all_shortest_paths(simple, source, target, weight=weight)]
        assert sorted(every["paths"]) == sorted(paths)
        assert one["path"] in paths
        assert every["path_count"] == len(paths)


@tries
@given(drawn(least=2), WAYS, WAYS, st.data())
def test_k_shortest_paths(
    graph: Drawn, directed: bool, weighted: bool, data: st.DataObject
) -> None:
    source, target = data.draw(st.permutations(range(graph.count)))[:2]
    simple, topology = (
        graph.simple(directed=directed, loops=False),
        graph.topology(weighted=weighted),
    )
    weight = "weight" if weighted else None
    parameters = {"source_id": source, "target_id": target, "k": 5}
    summary = outcome("k_shortest_paths", topology, parameters, directed=directed).summary
    try:
        best = list(islice(nx.shortest_simple_paths(simple, source, target, weight=weight), 5))
    except nx.NetworkXNoPath:
        best = []
    lengths = [nx.path_weight(simple, p, "weight") if weighted else len(p) - 1 for p in best]
    assert [p["distance"] for p in summary["paths"]] == pytest.approx(lengths)
    assert len({tuple(p["path"]) for p in summary["paths"]}) == len(best)


@tries
@given(drawn(), st.data())
def test_breadth_first_search(graph: Drawn, data: st.DataObject) -> None:
    source = data.draw(st.integers(0, graph.count - 1))
    reached = nx.single_source_shortest_path_length(graph.multi(directed=True), source)
    assert values(outcome("bfs", graph.topology(), {"source_id": source})) == [
        reached.get(n) for n in range(graph.count)
    ]


@tries
@given(drawn())
def test_spanning_tree_and_diameter(graph: Drawn) -> None:
    simple = graph.simple(directed=False, loops=False)
    tree = outcome("minimum_spanning_tree", graph.topology(weighted=True)).summary
    other = nx.minimum_spanning_tree(simple)
    assert tree["total_weight"] == pytest.approx(other.size(weight="weight"))
    assert tree["edges"] == other.number_of_edges()
    bounds = outcome("diameter", graph.topology(), {"sweeps": 20}).summary
    sizes = sorted(nx.connected_components(simple), key=len)
    spans = {nx.diameter(simple.subgraph(c)) for c in sizes if len(c) == len(sizes[-1])}
    assert any(bounds["lower_bound"] <= span <= bounds["upper_bound"] for span in spans)


@tries
@given(drawn(least=2))
def test_similarity(graph: Drawn) -> None:
    simple, topology = graph.simple(directed=False, loops=False), graph.topology()
    pairs = [(a, b) for a in range(graph.count) for b in range(a + 1, graph.count)]
    asked = {"pairs": [list(p) for p in pairs]}
    for name, function in (
        ("jaccard", nx.jaccard_coefficient),
        ("adamic_adar", nx.adamic_adar_index),
    ):
        other = [score for _, _, score in function(simple, pairs)]
        assert [
            p["score"] for p in outcome(name, topology, asked).summary["pairs"]
        ] == pytest.approx(other)
        best = [p["score"] for p in outcome(name, topology).summary["pairs"]]
        assert best == pytest.approx(sorted((s for s in other if s), reverse=True))
    common = [len(list(nx.common_neighbors(simple, a, b))) for a, b in pairs]
    assert [
        p["score"] for p in outcome("common_neighbors", topology, asked).summary["pairs"]
    ] == common
    smaller = [min(simple.degree(a), simple.degree(b)) for a, b in pairs]
    overlap = [c / s if s else 0 for c, s in zip(common, smaller, strict=True)]
    assert [
        p["score"] for p in outcome("overlap", topology, asked).summary["pairs"]
    ] == pytest.approx(overlap)


@tries
@given(drawn(least=2), WAYS)
def test_the_modularity_of_communities(graph: Drawn, weighted: bool) -> None:
    multi = graph.multi(directed=False)
    assume(multi.number_of_edges() > 0)
    for name in ("louvain", "leiden", "label_propagation"):
        result = outcome(name, graph.topology(weighted=weighted))
        other = nx.community.modularity(
            multi, groups(result), weight="weight" if weighted else None
        )
        assert result.summary["modularity"] == pytest.approx(other, abs=1e-9)


def _names(path: list[int]) -> list[str]:
    return [f"Node:{node}" for node in path]
