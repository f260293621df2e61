"""Connected components and community detection. Groups are numbered from 0, the largest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import connected_components

from penstock.graphdb.algorithms.algorithm import Algorithm, Outcome, Task, by_size, column
from penstock.graphdb.algorithms.centrality import SEED
from penstock.graphdb.algorithms.libraries import networkit_graph, seeded
from penstock.graphdb.algorithms.parameters import Parameter
from penstock.kit.json_value import JsonValue

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.nodes import Floats, Ints
    from penstock.graphdb.algorithms.topology import Matrix
    from penstock.kit.json_value import JsonValue

_RESOLUTION = Parameter(
    name="resolution",
    type="number",
    default=1.0,
    above=0,
    maximum=1000,
    description="More than 1 makes smaller communities, less than 1 larger ones.",
)


def _weak(task: Task) -> Outcome:
    return _components(task.graph.sums, "weak")


def _strong(task: Task) -> Outcome:
    return _components(task.graph.sums, "strong")


def _components(matrix: Matrix, connection: str) -> Outcome:
    _, labels = connected_components(matrix, directed=True, connection=connection)
    groups, sizes = by_size(labels.astype(np.int64))
    return Outcome(summary=_sizes("components", sizes), columns={"": column(groups)})


def _sizes(name: str, sizes: Ints) -> dict[str, JsonValue]:
    return {
        name: len(sizes),
        "largest": int(sizes[0]) if len(sizes) else 0,
        "sizes": sizes[:100].tolist(),
    }


def _louvain(task: Task) -> Outcome:
    nk = seeded(task.integer("seed"))
    matrix = task.graph.flow(directed=False)
    graph = networkit_graph(matrix, directed=False, weighted=True)
    levels = task.integer("max_iterations")
    method = nk.community.PLM(graph, gamma=task.number("resolution"), par="none", maxIter=levels)
    return _communities(task, matrix, method.run().getPartition().getVector())


def _leiden(task: Task) -> Outcome:
    nk = seeded(task.integer("seed"))
    matrix = task.graph.flow(directed=False)
    graph = networkit_graph(matrix, directed=False, weighted=True)
    rounds, gamma = task.integer("max_iterations"), task.number("resolution")
    method = nk.community.ParallelLeiden(graph, randomize=True, iterations=rounds, gamma=gamma)
    return _communities(task, matrix, method.run().getPartition().getVector())


def _communities(task: Task, matrix: Matrix, partition: list[int]) -> Outcome:
    groups, sizes = by_size(np.asarray(partition, dtype=np.int64))
    quality = modularity(matrix, groups, task.number("resolution"))
    return Outcome(
        summary=_sizes("communities", sizes) | {"modularity": quality}, columns={"": column(groups)}
    )


def modularity(matrix: Matrix, groups: Ints, resolution: float = 1.0) -> float:
    """Newman's modularity of an undirected weighted graph; a loop is in the matrix once and counts
    twice in a degree."""
    entries = matrix.tocoo()
    loops = matrix.diagonal()
    degrees = np.asarray(matrix.sum(axis=1)).ravel() + loops
    total = float(degrees.sum())
    if not total:
        return 0.0
    inside = float(entries.data[groups[entries.row] == groups[entries.col]].sum() + loops.sum())
    shares = np.bincount(groups, weights=degrees) / total
    return float(inside / total - resolution * (shares**2).sum())


def _label_propagation(task: Task) -> Outcome:
    """All nodes at once take the most common label of their neighbors, ties going to the first:
    the result is deterministic."""
    matrix = task.graph.flow(directed=True).tocoo()
    back = matrix.row != matrix.col
    rows = np.concatenate([matrix.row, matrix.col[back]]).astype(np.int64)
    columns = np.concatenate([matrix.col, matrix.row[back]]).astype(np.int64)
    votes = np.concatenate([matrix.data, matrix.data[back]])
    weights = votes if task.graph.weighted else None
    if weights is None:  # as many entries as votes: sorting them is enough
        rows, columns = (np.repeat(ends, votes.astype(np.int64)) for ends in (rows, columns))
    labels, limit = task.graph.nodes.order(), task.integer("max_iterations")
    converged, iteration = False, 0
    while iteration < limit and not converged:
        following = _most_common(task.graph.count, rows, columns, weights, labels)
        converged = bool((following == labels).all())
        labels, iteration = following, iteration + 1
        task.progress(iteration / limit)
    groups, sizes = by_size(labels)
    summary = _sizes("communities", sizes) | {"iterations": iteration, "converged": converged}
    quality = modularity(task.graph.flow(directed=False), groups)
    return Outcome(summary=summary | {"modularity": quality}, columns={"": column(groups)})


def _most_common(
    count: int, rows: Ints, columns: Ints, weights: Floats | None, labels: Ints
) -> Ints:
    """Votes are sorted by node, then label: a node's winner is the first with the most votes."""
    if not len(rows):
        return labels
    place = rows * count + labels[columns]
    if weights is None:
        place.sort()
    else:
        order = np.argsort(place)
        place, weights = place[order], weights[order]
    first = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
    votes = (
        np.diff(np.append(first, len(place)))
        if weights is None
        else np.add.reduceat(weights, first)
    )
    node, label = np.divmod(place[first], count)
    begins = np.flatnonzero(np.concatenate([[True], node[1:] != node[:-1]]))
    most = np.repeat(np.maximum.reduceat(votes, begins), np.diff(np.append(begins, len(node))))
    best = np.flatnonzero(votes == most)
    winner = best[np.concatenate([[True], node[best][1:] != node[best][:-1]])]
    following = labels.copy()
    following[node[winner]] = label[winner]
    return following


ALGORITHMS = (
    Algorithm(
        name="wcc",
        category="community",
        description="Weakly connected components: nodes connected by edges of either direction.",
        direction="undirected",
        directed=False,
        run=_weak,
    ),
    Algorithm(
        name="scc",
        category="community",
        description="Strongly connected components: nodes that reach each other along directed"
        " edges.",
        direction="directed",
        run=_strong,
    ),
    Algorithm(
        name="scc_kosaraju",
        category="community",
        description="Strongly connected components, for callers of Kosaraju's method; the same"
        " result as scc.",
        direction="directed",
        run=_strong,
    ),
    Algorithm(
        name="louvain",
        category="community",
        description="Communities by Louvain's method, which maximizes modularity.",
        parameters=(
            _RESOLUTION,
            Parameter(
                name="max_iterations",
                type="integer",
                default=32,
                minimum=1,
                maximum=1000,
                description="Maximum rounds of moves per level.",
            ),
            SEED,
        ),
        direction="undirected",
        directed=False,
        weights="optional",
        run=_louvain,
    ),
    Algorithm(
        name="leiden",
        category="community",
        description="Communities by Leiden's method, which refines Louvain's so that each community"
        " is connected.",
        parameters=(
            _RESOLUTION,
            Parameter(
                name="max_iterations",
                type="integer",
                default=3,
                minimum=1,
                maximum=100,
                description="Maximum rounds of the whole method.",
            ),
            SEED,
        ),
        direction="undirected",
        directed=False,
        weights="optional",
        run=_leiden,
    ),
    Algorithm(
        name="label_propagation",
        category="community",
        description="Communities by synchronous label propagation over edges of either direction;"
        " ties go to the smallest key.",
        parameters=(
            Parameter(
                name="max_iterations",
                type="integer",
                default=10,
                minimum=1,
                maximum=10_000,
                description="Maximum number of steps.",
            ),
        ),
        weights="optional",
        run=_label_propagation,
    ),
)
