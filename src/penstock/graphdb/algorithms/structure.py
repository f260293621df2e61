"""Graph structure: cores, triangles, clustering, spanning trees and the diameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from penstock.graphdb.algorithms.algorithm import (
    LIST_LIMIT,
    Algorithm,
    Outcome,
    Task,
    column,
    statistics,
)
from penstock.graphdb.algorithms.parameters import Parameter
from penstock.graphdb.algorithms.search import levels
from penstock.graphdb.algorithms.topology import without_loops
from penstock.kit.json_value import JsonValue

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.nodes import Floats, Ints
    from penstock.graphdb.algorithms.topology import Matrix
    from penstock.kit.json_value import JsonValue

_STEPS = 4_000_000


def _kcore(task: Task) -> Outcome:
    from sknetwork.topology import get_core_decomposition

    simple = task.graph.simple
    narrow = (
        simple.data,
        simple.indices.astype(np.int32),
        simple.indptr.astype(np.int32),
    )  # it accepts 32-bit indexes only
    whole = np.zeros(task.graph.count, dtype=np.int64)
    if simple.nnz:
        whole = np.asarray(
            get_core_decomposition(sp.csr_matrix(narrow, shape=simple.shape)), dtype=np.int64
        )
    largest = int(whole.max()) if len(whole) else 0
    return Outcome(
        summary={"max_k": largest, "nodes_in_max_core": int((whole == largest).sum())},
        columns={"": column(whole)},
    )


def _triangles(task: Task) -> Outcome:
    counts = _opposite(task, task.graph.simple).astype(np.int64)
    summary: dict[str, JsonValue] = {
        "triangles": int(counts.sum()) // 3,
        "nodes_in_triangles": int((counts > 0).sum()),
    }
    return Outcome(summary=summary, columns={"": column(counts)})


def _clustering(task: Task) -> Outcome:
    degrees = np.diff(task.graph.simple.indptr).astype(np.float64)
    possible = degrees * (degrees - 1)
    arcs = task.graph.arcs + task.graph.arcs.T if task.directed else 2 * task.graph.simple
    around = _opposite(task, arcs.tocsr())
    values = np.divide(around, possible, out=np.zeros(task.graph.count), where=possible > 0)
    summary = statistics(values) | {"average": float(values.mean()) if len(values) else 0.0}
    summary |= {"transitivity": float(around.sum() / possible.sum()) if possible.sum() else 0.0}
    return Outcome(summary=summary, columns={"": column(values)})


def _opposite(task: Task, sides_of: Matrix) -> Floats:
    """For each node, the sum of `sides_of` over the opposite sides of its triangles.

    Every triangle is found once, by searching for the third side of two edges that lead from lower
    to higher degrees, which keeps their number small; edges are processed in slices of bounded
    work.
    """
    simple, count = task.graph.simple, task.graph.count
    ranked = np.argsort(np.diff(simple.indptr), kind="stable")
    upper = sp.triu(sides_of[ranked][:, ranked], 1).tocsr()
    upper.sort_indices()
    rows = np.repeat(np.arange(count, dtype=np.int64), np.diff(upper.indptr))
    columns, sides = upper.indices.astype(np.int64), upper.data
    places, degrees = rows * count + columns, np.diff(upper.indptr)
    totals = np.zeros(count)
    for start, stop in _slices(np.cumsum(degrees[columns])):
        first = np.repeat(np.arange(start, stop), degrees[columns[start:stop]])
        second = _fans(upper.indptr, columns[start:stop], degrees)
        opposite = rows[first] * count + columns[second]
        third = np.minimum(np.searchsorted(places, opposite), len(places) - 1)
        closed = places[third] == opposite
        first, second, third = first[closed], second[closed], third[closed]
        for corner, side in (
            (rows[first], second),
            (columns[first], third),
            (columns[second], first),
        ):
            totals += np.bincount(corner, weights=sides[side], minlength=count)
        task.progress(stop / len(rows))
    result = np.empty(count)
    result[ranked] = totals
    return result


def _fans(indptr: Ints, nodes: Ints, degrees: Ints) -> Ints:
    """The positions of all edges of each node, concatenated."""
    lengths = degrees[nodes]
    shift = np.repeat(indptr[nodes] - (np.cumsum(lengths) - lengths), lengths)
    places: Ints = np.arange(int(lengths.sum())) + shift
    return places


def _slices(work: Ints) -> list[tuple[int, int]]:
    """Ranges of about `_STEPS` steps each."""
    if not len(work):
        return []
    cuts = np.searchsorted(work, np.arange(_STEPS, work[-1] + _STEPS, _STEPS))
    ends = np.unique(np.concatenate([np.minimum(cuts + 1, len(work)), [len(work)]])).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _spanning_tree(task: Task) -> Outcome:
    """Uses the ranks of the weights from 1: SciPy takes a zero for no edge, and the tree depends
    only on their order."""
    costs = sp.triu(without_loops(task.graph.costs(directed=False))).tocsr()
    different, ranks = np.unique(costs.data, return_inverse=True)
    ranked = sp.csr_array((ranks + 1.0, costs.indices, costs.indptr), shape=costs.shape)
    tree = minimum_spanning_tree(ranked).tocoo()
    weights = different[tree.data.astype(np.int64) - 1]
    ids = task.graph.nodes.ids
    shown = slice(0, LIST_LIMIT)
    ends = zip(ids(tree.row[shown]), ids(tree.col[shown]), weights[shown].tolist(), strict=True)
    edges = [{"source": a, "target": b, "weight": w} for a, b, w in ends]
    summary: dict[str, JsonValue] = {"edges": tree.nnz, "total_weight": float(weights.sum())}
    summary |= {"trees": task.graph.count - tree.nnz, "tree": cast("JsonValue", edges)}
    return Outcome(summary=summary | {"truncated": tree.nnz > LIST_LIMIT})


def _diameter(task: Task) -> Outcome:
    """Double sweep: each search starts at the farthest node so far, or half-way between two far
    ends, where the eccentricity gives an upper bound."""
    simple = task.graph.simple
    if not task.graph.count:
        return Outcome(
            summary={
                "lower_bound": 0,
                "upper_bound": 0,
                "exact": True,
                "component_size": 0,
                "path_ends": [],
            }
        )
    _, labels = connected_components(simple, directed=False)
    members = np.flatnonzero(labels == np.bincount(labels).argmax())
    start = int(members[np.argmax(np.diff(simple.indptr)[members])])
    low, high, ends, sweeps = 0, 2 * len(members), (start, start), task.integer("sweeps")
    for sweep in range(sweeps):
        depth, before = levels(simple, start)
        far = int(members[np.argmax(depth[members])])
        high = min(high, 2 * int(depth[far]))
        if depth[far] > low or sweep == 0:
            low, ends = int(depth[far]), (start, far)
        start = far if sweep % 2 == 0 else _midway(before, far, int(depth[far]) // 2)
        task.progress((sweep + 1) / sweeps)
        if low >= high:
            break
    high = max(low, high)
    summary: dict[str, JsonValue] = {"lower_bound": low, "upper_bound": high, "exact": low == high}
    names = cast("list[JsonValue]", task.graph.nodes.ids(list(ends)))
    return Outcome(summary=summary | {"component_size": len(members), "path_ends": names})


def _midway(before: Ints, end: int, steps: int) -> int:
    for _ in range(steps):
        end = int(before[end])
    return end


ALGORITHMS = (
    Algorithm(
        name="kcore",
        category="structure",
        description="The core number: the largest k for which a node is in the k-core.",
        direction="undirected",
        directed=False,
        run=_kcore,
    ),
    Algorithm(
        name="triangle_count",
        category="structure",
        description="The number of triangles of a node; the summary has the total of the graph.",
        direction="undirected",
        directed=False,
        run=_triangles,
    ),
    Algorithm(
        name="clustering_coefficient",
        category="structure",
        description="The share of possible edges between a node's neighbors that exist. Directed:"
        " neighbors of either direction, edges between them in each direction.",
        directed=False,
        run=_clustering,
    ),
    Algorithm(
        name="minimum_spanning_tree",
        category="structure",
        description="The edges of least total weight that connect each component.",
        direction="undirected",
        directed=False,
        weights="optional",
        per_node=False,
        run=_spanning_tree,
    ),
    Algorithm(
        name="diameter",
        category="structure",
        description="Bounds of the longest shortest path in the largest component, by double"
        " sweep.",
        parameters=(
            Parameter(
                name="sweeps",
                type="integer",
                default=10,
                minimum=2,
                maximum=10_000,
                description="Number of searches.",
            ),
        ),
        direction="undirected",
        directed=False,
        per_node=False,
        run=_diameter,
    ),
)
