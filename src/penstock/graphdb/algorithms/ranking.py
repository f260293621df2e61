"""Centrality by power iteration on the sparse matrix: PageRank, eigenvector, Katz, HITS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from penstock.graphdb.algorithms.algorithm import Algorithm, Outcome, Task, column, statistics
from penstock.graphdb.algorithms.parameters import Parameter
from penstock.kit.errors import InvalidInput
from penstock.kit.json_value import JsonValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphdb.algorithms.nodes import Floats
    from penstock.graphdb.algorithms.topology import Matrix
    from penstock.kit.json_value import JsonValue

_RUNAWAY = 1e12
_ITERATIONS = Parameter(
    name="max_iterations",
    type="integer",
    default=100,
    minimum=1,
    maximum=100_000,
    description="Maximum number of steps.",
)
_TOLERANCE = Parameter(
    name="tolerance",
    type="number",
    default=1e-8,
    minimum=0,
    maximum=1,
    description="Converged when a step changes the values by less in total; 0 runs all steps.",
)
_DAMPING = Parameter(
    name="damping_factor",
    type="number",
    default=0.85,
    minimum=0,
    below=1,
    description="The probability to follow an edge rather than to jump.",
)


def iterate(
    task: Task, first: Floats, step: Callable[[Floats], Floats]
) -> tuple[Floats, dict[str, JsonValue]]:
    """Iterate until the values converge; the summary has the number of steps and `converged`."""
    values, limit, tolerance = first, task.integer("max_iterations"), task.number("tolerance")
    for iteration in range(1, limit + 1):
        following = step(values)
        change = float(np.abs(following - values).sum())
        values = following
        task.progress(iteration / limit)
        if change < tolerance:
            return values, {"iterations": iteration, "converged": True}
        if change > _RUNAWAY:
            return values, {"iterations": iteration, "converged": False}
    return values, {"iterations": limit, "converged": False}


def _pagerank(task: Task) -> Outcome:
    count = task.graph.count
    return _walk(task, np.full(count, 1 / max(count, 1)))


def _personalized(task: Task) -> Outcome:
    jump = np.zeros(task.graph.count)
    sources = np.unique(task.nodes("source_ids"))
    jump[sources] = 1 / len(sources)
    return _walk(task, jump)


def _walk(task: Task, jump: Floats) -> Outcome:
    """PageRank; a walker on a node without outgoing edges jumps."""
    matrix, damping = task.graph.flow(directed=task.directed), task.number("damping_factor")
    out = np.asarray(matrix.sum(axis=1)).ravel()
    stuck = out == 0
    share = np.divide(1.0, out, out=np.zeros_like(out), where=~stuck)
    inward = matrix.T

    def step(rank: Floats) -> Floats:
        arrived: Floats = inward @ (rank * share)
        arrived *= damping
        arrived += (damping * float(rank[stuck].sum()) + (1 - damping) * float(rank.sum())) * jump
        return arrived

    first = np.full(len(jump), 1 / max(len(jump), 1))
    rank, summary = iterate(task, first, step)
    return Outcome(summary=summary | statistics(rank), columns={"": column(rank)})


def _eigenvector(task: Task) -> Outcome:
    inward = _scaled_flow(task).T
    count = task.graph.count

    def step(values: Floats) -> Floats:
        # The shift by `values` prevents oscillation on bipartite graphs.
        grown: Floats = values + inward @ values
        grown /= np.linalg.norm(grown)
        return grown

    values, summary = iterate(task, np.full(count, 1 / np.sqrt(max(count, 1))), step)
    return Outcome(summary=summary | statistics(values), columns={"": column(values)})


def _katz(task: Task) -> Outcome:
    inward = task.graph.flow(directed=task.directed).T
    alpha, beta = task.number("alpha"), task.number("beta")
    values, summary = iterate(
        task, np.zeros(task.graph.count), lambda x: alpha * (inward @ x) + beta
    )
    size = float(np.linalg.norm(values))
    if not summary["converged"] and size > np.sqrt(_RUNAWAY):
        raise InvalidInput(
            f"alpha {alpha:g} is too large for this graph: the values diverge.",
            hint="It must be less than 1 over the largest eigenvalue; try a tenth of it.",
            parameter="alpha",
        )
    if task.flag("normalized") and size:
        values = values / size
    return Outcome(summary=summary | statistics(values), columns={"": column(values)})


def _hits(task: Task) -> Outcome:
    matrix = _scaled_flow(task)
    count = max(task.graph.count, 1)

    def step(hubs: Floats) -> Floats:
        grown: Floats = matrix @ (matrix.T @ hubs)
        return _share(grown)

    hubs, summary = iterate(task, np.full(task.graph.count, 1 / count), step)
    authorities = _share(matrix.T @ hubs)
    return Outcome(
        summary=summary, columns={"_hub": column(hubs), "_authority": column(authorities)}
    )


def _scaled_flow(task: Task) -> Matrix:
    """The matrix scaled to a largest weight of 1, which keeps the eigenvectors and avoids
    underflow."""
    matrix = task.graph.flow(directed=task.directed)
    largest = float(matrix.data.max(initial=0.0))
    if not task.graph.weighted or not largest or not np.isfinite(largest):
        return matrix
    return sp.csr_array((matrix.data / largest, matrix.indices, matrix.indptr), shape=matrix.shape)


def _share(values: Floats) -> Floats:
    total = float(values.sum())
    return values / total if total else values


ALGORITHMS = (
    Algorithm(
        name="pagerank",
        category="centrality",
        description="The probability that a random walker, who sometimes jumps to any node, is at"
        " each node.",
        parameters=(_DAMPING, _ITERATIONS, _TOLERANCE),
        weights="optional",
        run=_pagerank,
    ),
    Algorithm(
        name="personalized_pagerank",
        category="centrality",
        description="PageRank whose walker jumps only to the given nodes: proximity to them.",
        parameters=(
            Parameter(
                name="source_ids",
                type="nodes",
                required=True,
                description="The nodes to jump back to.",
            ),
            _DAMPING,
            _ITERATIONS,
            _TOLERANCE,
        ),
        weights="optional",
        run=_personalized,
    ),
    Algorithm(
        name="eigenvector",
        category="centrality",
        description="The adjacency matrix's first eigenvector: nodes score high if their neighbors"
        " do.",
        parameters=(_ITERATIONS, _TOLERANCE),
        weights="optional",
        run=_eigenvector,
    ),
    Algorithm(
        name="katz",
        category="centrality",
        description="The number of walks that end at a node, longer ones weighted less.",
        parameters=(
            Parameter(
                name="alpha",
                type="number",
                default=0.1,
                above=0,
                maximum=1,
                description="The attenuation of each further step.",
            ),
            Parameter(
                name="beta",
                type="number",
                default=1.0,
                above=0,
                maximum=1e6,
                description="The base score of each node.",
            ),
            Parameter(
                name="normalized",
                type="boolean",
                default=True,
                description="Scale to a length of 1.",
            ),
            _ITERATIONS,
            _TOLERANCE,
        ),
        weights="optional",
        run=_katz,
    ),
    Algorithm(
        name="hits",
        category="centrality",
        description="Hub and authority scores: good hubs point to good authorities; each score"
        " sums to 1.",
        parameters=(_ITERATIONS, _TOLERANCE),
        weights="optional",
        suffixes=("_hub", "_authority"),
        run=_hits,
    ),
)
