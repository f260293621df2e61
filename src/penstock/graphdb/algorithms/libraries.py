"""Converts sparse matrices to networkit graphs, and configures networkit."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from types import ModuleType

    import networkit as nk

    from penstock.graphdb.algorithms.topology import Matrix


def networkit_graph(matrix: Matrix, *, directed: bool, weighted: bool) -> nk.Graph:
    """For an undirected graph `matrix` is symmetric, and its upper half is used."""
    import networkit as nk

    entries = (matrix if directed else sp.triu(matrix)).tocoo()
    ends = (entries.row.astype(np.uint64), entries.col.astype(np.uint64))
    return nk.GraphFromCoo(
        (entries.data.astype(np.float64), ends),
        n=matrix.shape[0],
        weighted=weighted,
        directed=directed,
    )


def seeded(seed: int) -> ModuleType:
    """networkit with one thread and this seed, for reproducible results."""
    nk = import_module("networkit")
    nk.setNumberOfThreads(1)
    nk.setSeed(seed, False)
    return nk


def parallel() -> ModuleType:
    """networkit with the number of threads configured for this process."""
    nk = import_module("networkit")
    nk.setNumberOfThreads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    return nk
