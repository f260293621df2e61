"""The way into networkit, which knows graphs only in a form of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.topology import Matrix


def networkit_graph(matrix: Matrix, *, directed: bool, weighted: bool) -> Any:
    """`matrix` is symmetric where the graph is undirected; then its upper half says all."""
    import networkit as nk

    found = (matrix if directed else sp.triu(matrix)).tocoo()
    ends = (found.row.astype(np.uint64), found.col.astype(np.uint64))
    return nk.GraphFromCoo(
        (found.data.astype(np.float64), ends),
        n=matrix.shape[0],
        weighted=weighted,
        directed=directed,
    )


def seeded(seed: int) -> Any:
    """networkit with one thread and this seed: the same answer every time."""
    import networkit as nk

    nk.setNumberOfThreads(1)
    nk.setSeed(seed, False)
    return nk


def parallel() -> Any:
    """networkit with the threads that this process was given."""
    import networkit as nk

    nk.setNumberOfThreads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    return nk
