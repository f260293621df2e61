"""Native algorithms compared with the reference outputs of LDBC Graphalytics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.graphdb.algorithms.graphs import outcome, topology, values

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.topology import Topology

HERE = Path(__file__).parents[1] / "graphalytics"
NEVER = 9223372036854775807
BOTH = pytest.mark.parametrize("kind", ["directed", "undirected"])


def graph(kind: str, *, weighted: bool = False) -> tuple[Topology, list[int]]:
    vertices = [int(line) for line in (HERE / f"example-{kind}.v").read_text().split()]
    lines = [line.split() for line in (HERE / f"example-{kind}.e").read_text().splitlines()]
    edges = [(int(a), int(b), float(w)) if weighted else (int(a), int(b)) for a, b, w in lines]
    return topology(vertices, edges), vertices


def expected(kind: str, name: str) -> dict[int, float]:
    lines = [line.split() for line in (HERE / f"example-{kind}-{name}").read_text().splitlines()]
    return {int(vertex): float(value) for vertex, value in lines}


def source(kind: str) -> int:
    return 1 if kind == "directed" else 2


@BOTH
def test_breadth_first_search_counts_the_steps_of_the_reference(kind: str) -> None:
    topology, vertices = graph(kind)
    depths = values(
        outcome("bfs", topology, {"source_id": source(kind)}, directed=kind == "directed")
    )
    mine = {v: float(NEVER if d is None else d) for v, d in zip(vertices, depths, strict=True)}
    assert mine == expected(kind, "BFS")


@BOTH
def test_label_propagation_groups_as_the_reference(kind: str) -> None:
    topology, vertices = graph(kind)
    mine = values(
        outcome("label_propagation", topology, {"max_iterations": 2}, directed=kind == "directed")
    )
    assert _partition(dict(zip(vertices, mine, strict=True))) == _partition(expected(kind, "CDLP"))


@BOTH
def test_local_clustering_is_the_reference(kind: str) -> None:
    topology, vertices = graph(kind)
    mine = values(outcome("clustering_coefficient", topology, directed=kind == "directed"))
    assert dict(zip(vertices, mine, strict=True)) == pytest.approx(expected(kind, "LCC"))


@BOTH
def test_two_steps_of_pagerank_are_the_reference(kind: str) -> None:
    topology, vertices = graph(kind)
    parameters = {"damping_factor": 0.85, "max_iterations": 2, "tolerance": 0}
    mine = outcome("pagerank", topology, parameters, directed=kind == "directed")
    assert dict(zip(vertices, values(mine), strict=True)) == pytest.approx(expected(kind, "PR"))
    assert mine.summary["iterations"] == 2


@BOTH
def test_shortest_distances_are_the_reference(kind: str) -> None:
    topology, vertices = graph(kind, weighted=True)
    distances = values(
        outcome("sssp", topology, {"source_id": source(kind)}, directed=kind == "directed")
    )
    mine = {v: float("inf") if d is None else d for v, d in zip(vertices, distances, strict=True)}
    assert mine == pytest.approx(expected(kind, "SSSP"))


@BOTH
def test_components_are_the_reference(kind: str) -> None:
    topology, vertices = graph(kind)
    mine = dict(zip(vertices, values(outcome("wcc", topology)), strict=True))
    assert _partition(mine) == _partition(expected(kind, "WCC"))


def _partition(labels: dict[int, float]) -> set[frozenset[int]]:
    groups: dict[float, set[int]] = {}
    for vertex, label in labels.items():
        groups.setdefault(label, set()).add(vertex)
    return {frozenset(members) for members in groups.values()}
