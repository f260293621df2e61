"""Algorithms on graphs with known results, and invariants of any graph."""

from __future__ import annotations

from math import comb, log

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

from penstock.graphdb.algorithms.catalog import CATALOG
from penstock.kit.errors import InvalidInput
from tests.graphdb.algorithms.graphs import Drawn, groups, outcome, topology, values

KARATE = Drawn(34, [(a, b, 1.0) for a, b in nx.karate_club_graph().edges()])
THE_SPECIFIED = {
    *(
        "pagerank",
        "personalized_pagerank",
        "wcc",
        "scc",
        "scc_kosaraju",
        "louvain",
        "leiden",
        "label_propagation",
    ),
    *(
        "kcore",
        "triangle_count",
        "clustering_coefficient",
        "betweenness",
        "closeness",
        "harmonic",
        "eigenvector",
    ),
    *(
        "katz",
        "hits",
        "degree",
        "bfs",
        "shortest_path",
        "all_shortest_paths",
        "k_shortest_paths",
        "sssp",
    ),
    *(
        "minimum_spanning_tree",
        "diameter",
        "jaccard",
        "adamic_adar",
        "common_neighbors",
        "overlap",
        "fastrp",
    ),
}


def test_all_that_was_promised_is_there() -> None:
    assert set(CATALOG) == THE_SPECIFIED


def test_the_karate_club_has_its_well_known_numbers() -> None:
    karate = KARATE.topology()
    assert outcome("triangle_count", karate).summary["triangles"] == 45
    assert outcome("kcore", karate).summary == {"max_k": 4, "nodes_in_max_core": 10}
    assert outcome("diameter", karate, {"sweeps": 30}).summary["lower_bound"] == 5
    assert outcome("clustering_coefficient", karate).summary["transitivity"] == pytest.approx(
        0.2556818
    )
    best = outcome("betweenness", karate, directed=False)
    assert values(best)[0] == pytest.approx(0.4376353)


def test_communities_of_the_karate_club_are_as_good_as_the_best_known() -> None:
    for name in ("louvain", "leiden"):
        summary = outcome(name, KARATE.topology()).summary
        assert 0.40 < summary["modularity"] <= 0.4198
        assert 3 <= summary["communities"] <= 5


def test_a_finer_resolution_makes_more_communities() -> None:
    karate = KARATE.topology()
    coarse, fine = (
        outcome("leiden", karate, {"resolution": r}).summary["communities"] for r in (0.2, 4.0)
    )
    assert coarse < fine


def test_leiden_s_communities_hang_together() -> None:
    graph = nx.planted_partition_graph(8, 40, 0.25, 0.01, seed=3)
    drawn = Drawn(320, [(a, b, 1.0) for a, b in graph.edges()]).topology()
    result = outcome("leiden", drawn)
    assert result.summary["communities"] == 8
    assert all(nx.is_connected(graph.subgraph(members)) for members in groups(result))


def test_label_propagation_finds_cliques_that_one_edge_joins() -> None:
    graph = nx.barbell_graph(6, 0)
    result = outcome(
        "label_propagation", Drawn(12, [(a, b, 1.0) for a, b in graph.edges()]).topology()
    )
    assert groups(result) == {frozenset(range(6)), frozenset(range(6, 12))}
    assert result.summary["converged"]


def test_groups_are_numbered_from_the_largest() -> None:
    graph = topology(range(6), [(0, 1), (2, 3), (3, 4)])
    result = outcome("wcc", graph)
    assert values(result) == [1, 1, 0, 0, 0, 2]
    assert result.summary == {"components": 3, "largest": 3, "sizes": [3, 2, 1]}


@pytest.mark.parametrize("name", ["louvain", "leiden", "label_propagation", "fastrp", "pagerank"])
def test_the_same_seed_gives_the_same_answer(name: str) -> None:
    first, second = (outcome(name, KARATE.topology()) for _ in range(2))
    assert first.columns[""] == second.columns[""]
    assert first.summary == second.summary


def test_sampled_betweenness_comes_near_the_exact_one_and_repeats() -> None:
    graph = nx.barabasi_albert_graph(400, 3, seed=1)
    drawn = Drawn(400, [(a, b, 1.0) for a, b in graph.edges()]).topology()
    exact = np.array(values(outcome("betweenness", drawn, directed=False)))
    first, again = (
        outcome("betweenness", drawn, {"samples": 150}, directed=False) for _ in range(2)
    )
    assert not first.summary["exact"]
    assert values(first) == values(again)
    sampled = np.array(values(first))
    assert np.corrcoef(exact, sampled)[0, 1] > 0.9
    assert sampled.sum() == pytest.approx(exact.sum(), rel=0.2)


def test_katz_says_when_alpha_is_too_large() -> None:
    with pytest.raises(InvalidInput, match="alpha"):
        outcome("katz", KARATE.topology(), {"alpha": 1.0, "max_iterations": 10_000}, directed=False)


def test_a_star_finds_what_dijkstra_finds() -> None:
    grid = nx.grid_2d_graph(12, 12)
    names = sorted(grid)
    edges = [
        (names.index(a), names.index(b), 1.0 + (a[0] * 7 + b[1] * 3) % 5) for a, b in grid.edges()
    ]
    drawn = Drawn(144, edges).topology(weighted=True)
    properties = {
        "x": pa.array([float(n[0]) for n in names]),
        "y": pa.array([float(n[1]) for n in names]),
    }
    ends = {"source_id": 0, "target_id": 143}
    guided = ends | {"heuristic": "euclidean", "x_property": "x", "y_property": "y"}
    star = outcome("shortest_path", drawn, guided, directed=False, properties=properties).summary
    assert (
        star["distance"]
        == outcome("shortest_path", drawn, ends, directed=False).summary["distance"]
    )


@pytest.mark.parametrize("ends", [1.0, 1e20])
def test_a_shortest_path_visits_no_node_twice_however_little_a_way_weighs(ends: float) -> None:
    """What it weighs is nothing beside the first step, so there and back is as short."""
    edges = [
        ("s", "a", ends),
        ("a", "b", 1e-13),
        ("b", "a", 1e-13),
        ("b", "c", 1e-13),
        ("c", "a", 1e-13),
    ]
    graph = topology(["s", "a", "b", "c", "t"], [*edges, ("b", "t", 1.0)])
    summary = outcome("all_shortest_paths", graph, {"source_id": "s", "target_id": "t"}).summary
    assert summary["paths"] == [["Node:s", "Node:a", "Node:b", "Node:t"]]
    assert (summary["path_count"], summary["truncated"]) == (1, False)


def test_more_shortest_paths_than_are_shown_are_counted() -> None:
    grid = nx.grid_2d_graph(9, 9)
    names = sorted(grid)
    drawn = Drawn(81, [(names.index(a), names.index(b), 1.0) for a, b in grid.edges()]).topology()
    summary = outcome(
        "all_shortest_paths", drawn, {"source_id": 0, "target_id": 80, "limit": 7}, directed=False
    ).summary
    assert (summary["path_count"], len(summary["paths"]), summary["truncated"]) == (12870, 7, True)


def test_a_number_of_paths_beyond_what_json_can_say_is_told_as_text() -> None:
    grid = nx.grid_2d_graph(40, 40)
    place = {name: at for at, name in enumerate(sorted(grid))}
    drawn = Drawn(1600, [(place[a], place[b], 1.0) for a, b in grid.edges()]).topology()
    summary = outcome(
        "all_shortest_paths", drawn, {"source_id": 0, "target_id": 1599}, directed=False
    ).summary
    assert summary["path_count"] == str(comb(78, 39))


def test_the_most_similar_to_one_node_come_first() -> None:
    graph = topology(
        ["a", "b", "c", "x", "y"], [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "y")]
    )
    pairs = outcome("jaccard", graph, {"source_id": "a"}).summary["pairs"]
    assert [(p["target"], p["score"]) for p in pairs] == [("Node:b", 1.0), ("Node:c", 0.5)]
    pair = outcome("adamic_adar", graph, {"source_id": "a", "target_id": "c"}).summary["pairs"]
    assert pair[0]["score"] == pytest.approx(1 / log(3))


def test_vectors_of_a_community_lie_closer_than_those_of_two() -> None:
    graph = nx.planted_partition_graph(2, 50, 0.3, 0.01, seed=5)
    drawn = Drawn(100, [(a, b, 1.0) for a, b in graph.edges()]).topology()
    vectors = np.array(values(outcome("fastrp", drawn, {"dimensions": 64})))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = vectors @ vectors.T
    assert alike[:50, :50].mean() > alike[:50, 50:].mean() + 0.3


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("pagerank", (1e-320, 1e-320)),
        ("degree", (1.7e308, 1.7e308)),
        ("minimum_spanning_tree", (1.7e308, 1.7e308)),
    ],
)
def test_weights_that_a_float_cannot_compute_with_are_refused(
    name: str, weights: tuple[float, float]
) -> None:
    graph = topology(
        [0, 1, 2], [(0, 1, weights[0]), (1, 2, weights[1]), (2, 0, weights[1]), (0, 2, weights[0])]
    )
    with pytest.raises(InvalidInput, match="weights must be 0 or between"):
        outcome(name, graph)


@pytest.mark.parametrize("weight", [1e-100, 1e-9, 1e9, 1e99])
@pytest.mark.parametrize(
    ("name", "suffix"), [("eigenvector", ""), ("hits", "_hub"), ("hits", "_authority")]
)
def test_eigenvectors_do_not_depend_on_the_unit_of_weights(
    name: str, suffix: str, weight: float
) -> None:
    edges = [(0, 1), (1, 2), (2, 0), (0, 2)]
    plain = outcome(name, topology([0, 1, 2], edges))
    weighted = outcome(name, topology([0, 1, 2], [(*edge, weight) for edge in edges]))
    assert values(weighted, suffix) == pytest.approx(values(plain, suffix), abs=1e-9)


@pytest.mark.parametrize("last", [0.0, 4.0])
@pytest.mark.parametrize("unit", [1e-30, 0.1, 1e17, 1e90])
def test_a_spanning_tree_has_the_weights_of_its_edges(unit: float, last: float) -> None:
    graph = topology(
        [0, 1, 2, 3], [(0, 1, unit), (1, 2, 2 * unit), (2, 0, 3 * unit), (2, 3, last * unit)]
    )
    summary = outcome("minimum_spanning_tree", graph).summary
    assert (summary["trees"], summary["edges"], summary["total_weight"]) == (
        1,
        3,
        pytest.approx((3 + last) * unit, abs=0),
    )
