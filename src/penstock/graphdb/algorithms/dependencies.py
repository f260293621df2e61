"""Brandes' dependency scores of sampled sources, vectorized by level.

For sampled betweenness this is several times faster than networkit, and unbiased: with every node
as a source it is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.graphdb.algorithms.search import UNREACHED, levels

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphdb.algorithms.nodes import Floats, Ints
    from penstock.graphdb.algorithms.topology import Matrix


def dependencies(matrix: Matrix, sources: Ints, progress: Callable[[float], None]) -> Floats:
    """For each node, the sum over the sources of the shares of their shortest paths through it."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    total = np.zeros(matrix.shape[0])
    for number, source in enumerate(sources.tolist(), 1):
        shares = _of_one(matrix, rows, source)
        shares[source] = 0
        total += shares
        progress(number / len(sources))
    return total


def _of_one(matrix: Matrix, rows: Ints, source: int) -> Floats:
    depth, _ = levels(matrix, source)
    steps = _steps(depth, rows, matrix.indices)
    paths = np.zeros(len(depth))
    paths[source] = 1
    for before, after in steps:
        np.add.at(paths, after, paths[before])
    shares = np.zeros(len(depth))
    for before, after in reversed(steps):
        np.add.at(shares, before, paths[before] / paths[after] * (1 + shares[after]))
    return shares


def _steps(depth: Ints, rows: Ints, columns: Ints) -> list[tuple[Ints, Ints]]:
    """The edges on shortest paths, from level to level."""
    onward = np.flatnonzero((depth[rows] != UNREACHED) & (depth[columns] == depth[rows] + 1))
    level = depth[rows[onward]]
    order = onward[np.argsort(level, kind="stable")]
    ends = np.cumsum(np.bincount(level))
    return (
        [(rows[part], columns[part]) for part in np.split(order, ends[:-1])] if len(order) else []
    )
