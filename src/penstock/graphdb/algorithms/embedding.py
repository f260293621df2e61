"""Node embeddings by fast random projection: a few sparse matrix products, no training."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from penstock.graphdb.algorithms.algorithm import Algorithm, Outcome, Task
from penstock.graphdb.algorithms.centrality import SEED
from penstock.graphdb.algorithms.parameters import Parameter

if TYPE_CHECKING:
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

_SPARSITY = 3


def _fastrp(task: Task) -> Outcome:
    matrix = task.graph.flow(directed=task.directed)
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    share = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    step = sp.diags_array(share.astype(np.float32)).dot(matrix.astype(np.float32)).tocsr()
    vectors = _projection(task, degrees)
    weights = cast("list[float]", task.parameters["iteration_weights"])
    total = np.zeros_like(vectors)
    for number, weight in enumerate(weights, 1):
        vectors = _unit(step @ vectors)
        total += np.float32(weight) * vectors
        task.progress(number / len(weights))
    values = pa.array(total.ravel().astype(np.float64))
    width = task.integer("dimensions")
    offsets = pa.array(np.arange(0, len(values) + 1, width, dtype=np.int32))
    return Outcome(
        summary={"dimensions": width}, columns={"": pa.ListArray.from_arrays(offsets, values)}
    )


def _projection(task: Task, degrees: npt.NDArray[np.float64]) -> Vectors:
    """Very sparse random signs, scaled by a power of the degree."""
    draw = np.random.default_rng(task.integer("seed"))
    drawn = draw.integers(
        0, 2 * _SPARSITY, size=(task.graph.count, task.integer("dimensions")), dtype=np.int8
    )
    signs = (drawn == 0).astype(np.float32) - (drawn == 1).astype(np.float32)
    total = max(float(degrees.sum()), 1.0)
    scale = (np.maximum(degrees, 1e-12) / total) ** task.number("normalization_strength")
    projected: Vectors = signs * (np.sqrt(_SPARSITY) * scale).astype(np.float32)[:, None]
    return projected


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


ALGORITHMS = (
    Algorithm(
        name="fastrp",
        category="embedding",
        description="A vector for each node by fast random projection: nodes with similar"
        " neighborhoods are close.",
        parameters=(
            Parameter(
                name="dimensions",
                type="integer",
                default=128,
                minimum=1,
                maximum=2048,
                description="Length of the vectors.",
            ),
            Parameter(
                name="iteration_weights",
                type="numbers",
                default=[0.0, 1.0, 1.0],
                minimum=-1000,
                maximum=1000,
                description="The weight of each step; there are as many steps as weights.",
            ),
            Parameter(
                name="normalization_strength",
                type="number",
                default=0.0,
                minimum=-1,
                maximum=1,
                description="Less than 0 lowers the influence of nodes with many edges.",
            ),
            SEED,
        ),
        directed=False,
        weights="optional",
        run=_fastrp,
    ),
)
