"""Pathfinding: searches from one node, and shortest paths between two nodes."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice, pairwise
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.sparse.csgraph import yen

from penstock.graphdb.algorithms.algorithm import Algorithm, Outcome, Task, column, exact
from penstock.graphdb.algorithms.coordinates import remaining
from penstock.graphdb.algorithms.parameters import Parameter
from penstock.graphdb.algorithms.search import (
    UNREACHED,
    a_star,
    cheapest,
    levels,
    walk_back,
    within,
)
from penstock.kit.json_value import JsonValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.graphdb.algorithms.nodes import Floats, Ints
    from penstock.graphdb.algorithms.topology import Matrix
    from penstock.kit.json_value import JsonValue

SOURCE = Parameter(name="source_id", type="node", required=True, description="Where to start.")
TARGET = Parameter(name="target_id", type="node", required=True, description="Where to go.")
_DEPTH = Parameter(
    name="max_depth",
    type="integer",
    minimum=1,
    maximum=1_000_000,
    description="Maximum number of edges; no limit if left out.",
)


def _bfs(task: Task) -> Outcome:
    depth, _ = levels(task.graph.costs(directed=task.directed), task.node("source_id"))
    limit = task.parameters["max_depth"]
    if limit is not None:
        depth[depth > task.integer("max_depth")] = UNREACHED
    reached = depth != UNREACHED
    summary: dict[str, JsonValue] = {"reached": int(reached.sum()), "max_depth": int(depth.max())}
    return Outcome(summary=summary, columns={"": column(depth, ~reached)})


def _sssp(task: Task) -> Outcome:
    limit = task.parameters["max_distance"]
    bound = np.inf if limit is None else task.number("max_distance")
    distances, _ = cheapest(task.graph.costs(directed=task.directed), task.node("source_id"), bound)
    reached = np.isfinite(distances)
    summary: dict[str, JsonValue] = {
        "reached": int(reached.sum()),
        "max_distance": float(distances[reached].max()),
    }
    return Outcome(summary=summary, columns={"": column(distances, ~reached)})


def _shortest(task: Task) -> Outcome:
    matrix = task.graph.costs(directed=task.directed)
    source, target = task.node("source_id"), task.node("target_id")
    if task.text("heuristic") != "none":
        path = a_star(matrix, source, target, remaining(task, target))
    elif task.graph.weighted:
        distances, before = cheapest(matrix, source)
        path = walk_back(before, source, target) if np.isfinite(distances[target]) else None
    else:
        depth, before = levels(matrix, source)
        path = walk_back(before, source, target) if depth[target] != UNREACHED else None
    limit = task.parameters["max_depth"]
    if path is not None and isinstance(limit, int) and len(path) - 1 > limit:
        path = within(matrix, source, target, limit) if task.graph.weighted else None
    return Outcome(summary={"found": path is not None} | _described(task, matrix, path))


def _described(task: Task, matrix: Matrix, path: list[int] | None) -> dict[str, JsonValue]:
    if path is None:
        return {"path": None, "distance": None, "hops": None}
    length = sum(float(matrix[a, b]) for a, b in pairwise(path))
    ids = cast("list[JsonValue]", task.graph.nodes.ids(path))
    return {"path": ids, "distance": length, "hops": len(path) - 1}


def _all_shortest(task: Task) -> Outcome:
    matrix = task.graph.costs(directed=task.directed)
    source, target = task.node("source_id"), task.node("target_id")
    if task.graph.weighted:
        distances, nearest = cheapest(matrix, source)
    else:
        distances, nearest = _steps(matrix, source)
    if not np.isfinite(distances[target]):
        return Outcome(
            summary={
                "found": False,
                "paths": [],
                "path_count": 0,
                "distance": None,
                "truncated": False,
            }
        )
    order = _Order(distances, nearest, source)
    before = _predecessors(matrix.T.tocsr(), order, source, target)
    number = _count_paths(before, order, source, target)
    shown = [
        task.graph.nodes.ids(path)
        for path in islice(_unfold(before, source, target), task.integer("limit"))
    ]
    summary: dict[str, JsonValue] = {
        "found": True,
        "paths": cast("JsonValue", shown),
        "distance": float(distances[target]),
    }
    return Outcome(
        summary=summary | {"path_count": exact(number), "truncated": number > len(shown)}
    )


def _steps(matrix: Matrix, source: int) -> tuple[Floats, Ints]:
    depth, before = levels(matrix, source)
    return np.where(depth == UNREACHED, np.inf, depth.astype(np.float64)), before


class _Order:
    """Orders nodes by their distance from the source, and equal distances by their depth in the
    shortest-path tree: a weight may be too small to change a double. Paths follow this order, so
    they visit no node twice."""

    def __init__(self, distances: Floats, nearest: Ints, source: int) -> None:
        self.distances = distances
        self._nearest = nearest
        self._depths = {source: 0}

    def of(self, node: int) -> tuple[float, int]:
        return float(self.distances[node]), self._depth(node)

    def _depth(self, node: int) -> int:
        way = [node]
        while way[-1] not in self._depths:
            way.append(int(self._nearest[way[-1]]))
        depth = self._depths[way.pop()]
        while way:
            depth += 1
            self._depths[way.pop()] = depth
        return self._depths[node]


def _predecessors(inward: Matrix, order: _Order, source: int, target: int) -> dict[int, list[int]]:
    """The predecessors of every node on a shortest path."""
    predecessors: dict[int, list[int]] = {}
    waiting, distances = [target], order.distances
    while waiting:
        node = waiting.pop()
        if node in predecessors or node == source:
            continue
        span = slice(inward.indptr[node], inward.indptr[node + 1])
        near, weights = inward.indices[span], inward.data[span]
        tight = np.isclose(distances[near] + weights, distances[node], rtol=1e-12, atol=0)
        place = order.of(node)
        predecessors[node] = [other for other in near[tight].tolist() if order.of(other) < place]
        waiting.extend(predecessors[node])
    return predecessors


def _count_paths(before: dict[int, list[int]], order: _Order, source: int, target: int) -> int:
    ways: defaultdict[int, int] = defaultdict(int, {source: 1})
    for node in sorted(before, key=order.of):
        ways[node] = sum(ways[earlier] for earlier in before[node])
    return ways[target]


def _unfold(before: dict[int, list[int]], source: int, target: int) -> Iterator[list[int]]:
    stack = [[target]]
    while stack:
        path = stack.pop()
        if path[-1] == source:
            yield path[::-1]
        else:
            stack.extend([*path, earlier] for earlier in sorted(before[path[-1]], reverse=True))


def _k_shortest(task: Task) -> Outcome:
    matrix = task.graph.costs(directed=task.directed)
    source, target = task.node("source_id"), task.node("target_id")
    if source == target:
        paths = [[source]]
    else:
        count = task.integer("k")
        lengths, before = yen(
            matrix, source, target, count, directed=True, return_predecessors=True
        )
        paths = [walk_back(row, source, target) for row in before[: len(lengths)]]
    described = [_described(task, matrix, path) for path in paths]
    return Outcome(
        summary={
            "found": bool(described),
            "path_count": len(described),
            "paths": cast("JsonValue", described),
        }
    )


ALGORITHMS = (
    Algorithm(
        name="bfs",
        category="pathfinding",
        description="Breadth-first search: the number of edges to each node; null if unreachable.",
        parameters=(SOURCE, _DEPTH),
        run=_bfs,
    ),
    Algorithm(
        name="sssp",
        category="pathfinding",
        description="The shortest distance from one node to every other (Dijkstra); null if"
        " unreachable.",
        parameters=(
            SOURCE,
            Parameter(
                name="max_distance",
                type="number",
                minimum=0,
                description="Stop at this distance.",
            ),
        ),
        weights="optional",
        run=_sssp,
    ),
    Algorithm(
        name="shortest_path",
        category="pathfinding",
        description="A shortest path between two nodes: breadth-first without weights, Dijkstra"
        " with them, A* with coordinates.",
        parameters=(
            SOURCE,
            TARGET,
            _DEPTH,
            Parameter(
                name="heuristic",
                type="string",
                default="none",
                choices=("none", "euclidean", "haversine"),
                description="How A* estimates the remaining distance: on a plane, or in meters on"
                " the globe. Weights must not be less than the estimate.",
            ),
            Parameter(
                name="x_property",
                type="string",
                default="longitude",
                description="A node's x or longitude.",
            ),
            Parameter(
                name="y_property",
                type="string",
                default="latitude",
                description="A node's y or latitude.",
            ),
        ),
        weights="optional",
        per_node=False,
        run=_shortest,
    ),
    Algorithm(
        name="all_shortest_paths",
        category="pathfinding",
        description="All shortest paths between two nodes, and their number.",
        parameters=(
            SOURCE,
            TARGET,
            Parameter(
                name="limit",
                type="integer",
                default=100,
                minimum=1,
                maximum=10_000,
                description="Maximum number of paths returned.",
            ),
        ),
        weights="positive",
        per_node=False,
        run=_all_shortest,
    ),
    Algorithm(
        name="k_shortest_paths",
        category="pathfinding",
        description="The k shortest paths between two nodes without repeated nodes (Yen).",
        parameters=(
            SOURCE,
            TARGET,
            Parameter(
                name="k",
                type="integer",
                default=3,
                minimum=1,
                maximum=100,
                description="Number of paths.",
            ),
        ),
        weights="positive",
        per_node=False,
        run=_k_shortest,
    ),
)
