"""Centrality by degree and by shortest paths: degree, betweenness, closeness, harmonic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import dijkstra

from penstock.graphdb.algorithms.algorithm import Algorithm, Outcome, Task, column, statistics
from penstock.graphdb.algorithms.dependencies import dependencies
from penstock.graphdb.algorithms.libraries import networkit_graph, parallel, seeded
from penstock.graphdb.algorithms.parameters import Parameter
from penstock.graphdb.algorithms.topology import without_loops

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.nodes import Floats
    from penstock.graphdb.algorithms.topology import Matrix

SEED = Parameter(
    name="seed",
    type="integer",
    default=42,
    minimum=0,
    maximum=2**31 - 1,
    description="Random seed; the same seed gives the same result.",
)
_NORMALIZED = Parameter(
    name="normalized", type="boolean", default=True, description="Scale to between 0 and 1."
)
_CELLS = 1 << 22


def _degree(task: Task) -> Outcome:
    matrix, which = (
        task.graph.flow(directed=True),
        task.text("direction") if task.directed else "both",
    )
    out, into = np.asarray(matrix.sum(axis=1)).ravel(), np.asarray(matrix.sum(axis=0)).ravel()
    degree: Floats = {"out": out, "in": into, "both": out + into}[which]
    if task.flag("normalized"):
        degree = degree / max(task.graph.count - 1, 1)
    elif not task.graph.weighted:
        whole = degree.astype(np.int64)
        return Outcome(summary=statistics(degree), columns={"": column(whole)})
    return Outcome(summary=statistics(degree), columns={"": column(degree)})


def _betweenness(task: Task) -> Outcome:
    count, samples = task.graph.count, task.integer("samples")
    sampled = 0 < samples < count
    matrix = without_loops(task.graph.costs(directed=task.directed))
    scores = _between_sampled(task, matrix, samples) if sampled else _between(task, matrix)
    pairs = (count - 1) * (count - 2)
    if task.flag("normalized"):
        scores = scores / pairs if pairs > 0 else scores
    elif not task.directed:
        scores = scores / 2  # each pair was counted from both ends
    summary = statistics(scores) | {"exact": not sampled, "samples": samples if sampled else count}
    return Outcome(summary=summary, columns={"": column(scores)})


def _between(task: Task, matrix: Matrix) -> Floats:
    if not task.graph.count:
        return np.empty(0)
    graph = networkit_graph(matrix, directed=task.directed, weighted=task.graph.weighted)
    return np.asarray(parallel().centrality.Betweenness(graph).run().scores(), dtype=np.float64)


def _between_sampled(task: Task, matrix: Matrix, samples: int) -> Floats:
    if task.graph.weighted:
        nk = seeded(task.integer("seed"))
        graph = networkit_graph(matrix, directed=task.directed, weighted=True)
        return np.asarray(
            nk.centrality.EstimateBetweenness(graph, samples).run().scores(), dtype=np.float64
        )
    draw = np.random.default_rng(task.integer("seed"))
    sources = draw.choice(task.graph.count, samples, replace=False)
    return dependencies(matrix, sources, task.progress) * (task.graph.count / samples)


def _closeness(task: Task) -> Outcome:
    inward = _inward(task)
    if task.graph.weighted:
        scores = _measured(task, inward, _closeness_of)
    else:
        nk = parallel()
        graph = networkit_graph(inward, directed=True, weighted=False)
        generalized = nk.centrality.ClosenessVariant.GENERALIZED
        run = nk.centrality.Closeness(graph, True, generalized).run() if task.graph.count else None
        scores = np.nan_to_num(np.asarray(run.scores() if run else [], dtype=np.float64))
    return Outcome(summary=statistics(scores), columns={"": column(scores)})


def _harmonic(task: Task) -> Outcome:
    inward = _inward(task)
    if task.graph.weighted:
        scores = _measured(task, inward, _harmonic_of)
    else:
        nk = parallel()
        graph = networkit_graph(inward, directed=True, weighted=False)
        run = nk.centrality.HarmonicCloseness(graph, False).run() if task.graph.count else None
        scores = np.asarray(run.scores() if run else [], dtype=np.float64)
    if task.flag("normalized"):
        scores = scores / max(task.graph.count - 1, 1)
    return Outcome(summary=statistics(scores), columns={"": column(scores)})


def _inward(task: Task) -> Matrix:
    """The reversed edges: closeness uses the distances to a node, not from it."""
    return without_loops(task.graph.costs(directed=task.directed).T.tocsr())


def _measured(task: Task, inward: Matrix, score: _Score) -> Floats:
    """Scores computed from distances in batches of nodes, which bounds memory."""
    count = task.graph.count
    batch = max(1, _CELLS // max(count, 1))
    scores = np.zeros(count)
    for start in range(0, count, batch):
        rows = np.arange(start, min(start + batch, count))
        scores[rows] = score(dijkstra(inward, indices=rows), count)
        task.progress(rows[-1] / count)
    return scores


def _closeness_of(distances: Floats, count: int) -> Floats:
    reached = np.isfinite(distances)
    others = reached.sum(axis=1) - 1
    total = np.where(reached, distances, 0).sum(axis=1)
    near = np.divide(others, total, out=np.zeros(len(total)), where=total > 0)
    scaled: Floats = near * others / max(count - 1, 1)
    return scaled


def _harmonic_of(distances: Floats, _count: int) -> Floats:
    usable = np.isfinite(distances) & (distances > 0)
    inverse: Floats = np.divide(1.0, distances, out=np.zeros_like(distances), where=usable).sum(
        axis=1
    )
    return inverse


if TYPE_CHECKING:
    from collections.abc import Callable

    _Score = Callable[[Floats, int], Floats]

ALGORITHMS = (
    Algorithm(
        name="degree",
        category="centrality",
        description="The number of edges of a node (or their weight); a loop counts twice.",
        parameters=(
            Parameter(
                name="direction",
                type="string",
                default="both",
                choices=("in", "out", "both"),
                description="Which edges count where the graph is directed.",
            ),
            Parameter(
                name="normalized",
                type="boolean",
                default=False,
                description="Divide by the number of other nodes.",
            ),
        ),
        weights="optional",
        run=_degree,
    ),
    Algorithm(
        name="betweenness",
        category="centrality",
        description="The share of shortest paths through a node, exact or estimated from sampled"
        " sources.",
        parameters=(
            Parameter(
                name="samples",
                type="integer",
                default=0,
                minimum=0,
                maximum=10_000_000,
                description="Sources to sample; 0 uses all of them and is exact.",
            ),
            _NORMALIZED,
            SEED,
        ),
        weights="positive",
        run=_betweenness,
    ),
    Algorithm(
        name="closeness",
        category="centrality",
        description="The inverse of the mean distance from the nodes that reach it, scaled by their"
        " number.",
        weights="positive",
        run=_closeness,
    ),
    Algorithm(
        name="harmonic",
        category="centrality",
        description="The sum of the inverse distances from all other nodes; unreachable nodes add"
        " nothing.",
        parameters=(
            Parameter(
                name="normalized", type="boolean", default=False, description="Divide by n - 1."
            ),
        ),
        weights="positive",
        run=_harmonic,
    ),
)
