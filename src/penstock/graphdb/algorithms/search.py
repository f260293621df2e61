"""Graph searches shared by several algorithms: breadth-first, Dijkstra, A*."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, dijkstra

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphdb.algorithms.nodes import Floats, Ints
    from penstock.graphdb.algorithms.topology import Matrix

UNREACHED = -1


def levels(matrix: Matrix, source: int) -> tuple[Ints, Ints]:
    """Steps from the source (-1 if unreachable) and each node's predecessor.

    The order of a breadth-first search is sorted by level, and so are the predecessors' positions
    in it: a level ends where they leave the previous level.
    """
    order, before = breadth_first_order(matrix, source, directed=True, return_predecessors=True)
    place = np.empty(matrix.shape[0], dtype=np.int64)
    place[order] = np.arange(len(order))
    parents = place[before[order[1:]]]
    depth = np.full(matrix.shape[0], UNREACHED, dtype=np.int64)
    depth[source] = 0
    start, stop, level = 0, 1, 0
    while stop < len(order):
        level += 1
        start, stop = stop, 1 + int(np.searchsorted(parents, stop))
        depth[order[start:stop]] = level
    return depth, before.astype(np.int64)


def cheapest(matrix: Matrix, source: int, limit: float = np.inf) -> tuple[Floats, Ints]:
    distances, before = dijkstra(matrix, indices=source, return_predecessors=True, limit=limit)
    return distances, before.astype(np.int64)


def walk_back(before: Ints, source: int, target: int) -> list[int]:
    path = [target]
    while path[-1] != source:
        path.append(int(before[path[-1]]))
    return path[::-1]


def a_star(
    matrix: Matrix, source: int, target: int, guess: Callable[[int], float]
) -> list[int] | None:
    """The shortest path, with a heuristic that never overestimates the remaining distance."""
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    best, before = {source: 0.0}, {source: source}
    open_nodes = [(guess(source), source)]
    closed: set[int] = set()
    while open_nodes:
        _, node = heapq.heappop(open_nodes)
        if node == target:
            break
        if node in closed:
            continue
        closed.add(node)
        near = slice(indptr[node], indptr[node + 1])
        for other, weight in zip(indices[near].tolist(), data[near].tolist(), strict=True):
            cost = best[node] + weight
            if other not in closed and cost < best.get(other, np.inf):
                best[other], before[other] = cost, node
                heapq.heappush(open_nodes, (cost + guess(other), other))
    if target not in before:
        return None
    path = [target]
    while path[-1] != source:
        path.append(before[path[-1]])
    return path[::-1]


def within(matrix: Matrix, source: int, target: int, hops: int) -> list[int] | None:
    """The shortest path of at most `hops` edges (Bellman-Ford, one layer per edge)."""
    edges = matrix.tocoo()
    layers = [np.full(matrix.shape[0], np.inf)]
    layers[0][source] = 0.0
    for _ in range(hops):
        following = layers[-1].copy()
        np.minimum.at(following, edges.col, layers[-1][edges.row] + edges.data)
        if (following == layers[-1]).all():
            break
        layers.append(following)
    if not np.isfinite(layers[-1][target]):
        return None
    return _unrolled(matrix.T.tocsr(), layers, target)


def _unrolled(inward: Matrix, layers: list[Floats], target: int) -> list[int]:
    path, node = [target], target
    for nearer, here in zip(layers[-2::-1], layers[:0:-1], strict=True):
        if nearer[node] == here[node]:
            continue
        span = slice(inward.indptr[node], inward.indptr[node + 1])
        sources = inward.indices[span]
        node = int(sources[np.argmin(nearer[sources] + inward.data[span])])
        path.append(node)
    return path[::-1]
