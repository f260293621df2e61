"""Topologies built from Arrow columns: labels, gaps, parallel edges, loops and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from penstock.graphdb.algorithms.errors import NodeNotFound
from penstock.graphdb.algorithms.nodes import Nodes
from penstock.graphdb.algorithms.result_transfer import read_edges
from penstock.graphdb.algorithms.selection import EdgeChoice, Selection
from penstock.graphdb.algorithms.topology import WEIGHT, Edges, build
from penstock.graphdb.contract import SOURCE, TARGET
from penstock.graphdb.files import arrow_file
from penstock.kit.errors import InvalidInput
from tests.graphdb.algorithms.graphs import outcome, topology, values

if TYPE_CHECKING:
    from pathlib import Path


def edges(
    src: list[int], dst: list[int], ends: tuple[str, str] = ("A", "B"), **columns: pa.Array
) -> Edges:
    table = pa.table(
        {SOURCE: pa.array(src, pa.int64()), TARGET: pa.array(dst, pa.int64()), **columns}
    )
    return Edges(type="LINK", from_label=ends[0], to_label=ends[1], table=table)


TWO = Nodes.of(["A", "B"], [pa.array([1, 2]), pa.array(["1", "x:y", "ä"])])


def test_the_same_key_under_two_labels_is_two_nodes() -> None:
    assert TWO.find("A:1", "p") == 0
    assert TWO.find("B:1", "p") == 2
    assert TWO.ids([0, 2, 3, 4]) == ["A:1", "B:1", "B:x:y", "B:ä"]
    with pytest.raises(InvalidInput, match="several labels"):
        TWO.find("1", "p")


def test_a_key_alone_is_enough_where_one_label_has_it() -> None:
    assert TWO.find(2, "p") == 1
    assert TWO.find("x:y", "p") == 3
    for stranger in ("A:9", "C:1", "", 2**70, "B:"):
        with pytest.raises(NodeNotFound):
            TWO.find(stranger, "p")
    for nonsense in (None, True, [1], {"a": 1}):
        with pytest.raises(InvalidInput, match="a node's id"):
            TWO.find(nonsense, "p")


def test_edges_between_labels_land_on_the_right_nodes() -> None:
    result = build(TWO, [edges([0, 1], [2, 0]), edges([1], [0], ("A", "A"))])
    assert result.sums.toarray().tolist() == [
        [0, 0, 0, 0, 1],
        [1, 0, 1, 0, 0],
        [0] * 5,
        [0] * 5,
        [0] * 5,
    ]


def test_offsets_with_holes_are_closed_up() -> None:
    nodes = Nodes.of(["A"], [pa.array([10, 20, 30])])
    result = build(nodes, [edges([0, 7], [7, 9], ("A", "A"))], offsets={"A": np.array([0, 7, 9])})
    assert result.sums.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_parallel_edges_add_up_where_something_flows_and_the_cheapest_is_walked() -> None:
    graph = topology(range(2), [(0, 1, 5.0), (0, 1, 2.0), (1, 0, 3.0)])
    assert graph.flow(directed=True).toarray().tolist() == [[0, 7], [3, 0]]
    assert graph.flow(directed=False).toarray().tolist() == [[0, 10], [10, 0]]
    assert graph.costs(directed=True).toarray().tolist() == [[0, 2], [3, 0]]
    assert graph.costs(directed=False).toarray().tolist() == [[0, 2], [2, 0]]
    assert graph.simple.toarray().tolist() == [[0, 1], [1, 0]]
    assert graph.edge_count == 3


def test_a_loop_is_there_once_and_makes_no_triangle() -> None:
    graph = topology(range(2), [(0, 0), (0, 1)])
    assert graph.flow(directed=False).toarray().tolist() == [[1, 1], [1, 0]]
    assert graph.simple.toarray().tolist() == [[0, 1], [1, 0]]
    assert values(outcome("degree", graph)) == [3, 1]


def test_a_way_that_costs_nothing_is_a_way() -> None:
    graph = topology(range(3), [(0, 1, 0.0), (1, 2, 0.0), (0, 2, 1.0)])
    assert values(outcome("sssp", graph, {"source_id": 0})) == [0.0, 0.0, 0.0]
    tree = outcome("minimum_spanning_tree", graph).summary
    assert (tree["total_weight"], tree["edges"]) == (0.0, 2)


@pytest.mark.parametrize(
    ("weights", "says"),
    [([1.0, None], "1 edges"), ([1.0, float("nan")], "finite"), ([1.0, float("inf")], "finite")],
)
def test_a_weight_that_is_none_is_refused(weights: list[float | None], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        build(TWO, [edges([0, 1], [0, 1], **{WEIGHT: pa.array(weights, pa.float64())})])


@pytest.mark.parametrize(
    ("weight", "is_exact"), [(2**53, True), (-(2**53), True), (2**53 + 1, False), (-(2**63), False)]
)
def test_a_whole_weight_is_refused_where_a_float_would_round_it(
    tmp_path: Path, weight: int, is_exact: bool
) -> None:
    choice = EdgeChoice(type="LINK", from_label="A", to_label="B")
    selection = Selection(labels=("A", "B"), results=("A", "B"), edges=(choice,), weight="w")
    weights = pa.array([1, weight], pa.int64())
    arrow_file.write(edges([0, 1], [0, 1], w=weights).table, tmp_path / "edges-0.arrow")
    if is_exact:
        [read] = read_edges(tmp_path, selection)
        assert read.table[WEIGHT].to_pylist() == [1.0, float(weight)]
    else:
        with pytest.raises(InvalidInput, match="weights beyond 2\\^53"):
            read_edges(tmp_path, selection)


@pytest.mark.parametrize(
    ("name", "weight", "refused"), [("sssp", -1.0, True), ("sssp", 0.0, False)]
)
def test_a_weight_out_of_range_is_refused(name: str, weight: float, refused: bool) -> None:
    graph = topology(range(2), [(0, 1, weight)])
    if refused:
        with pytest.raises(InvalidInput, match="at least 0"):
            outcome(name, graph, {"source_id": 0})
    else:
        outcome(name, graph, {"source_id": 0})
    with pytest.raises(InvalidInput, match="more than 0"):
        outcome("betweenness", graph)


def test_an_empty_graph_and_one_without_edges_are_no_accident() -> None:
    for graph in (topology([], []), topology(range(3), [])):
        for name in (
            "pagerank",
            "wcc",
            "scc",
            "louvain",
            "leiden",
            "label_propagation",
            "kcore",
            "triangle_count",
        ):
            assert len(values(outcome(name, graph))) == graph.count
        for name in (
            "degree",
            "betweenness",
            "closeness",
            "harmonic",
            "clustering_coefficient",
            "fastrp",
            "katz",
        ):
            assert len(values(outcome(name, graph))) == graph.count
        for name in ("diameter", "minimum_spanning_tree", "jaccard"):
            assert outcome(name, graph).summary
