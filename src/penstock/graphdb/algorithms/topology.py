"""The topology of a graph: sparse matrices, built once from Arrow columns and read by every
algorithm.

Edges of all types are in one matrix whose rows and columns are the nodes' indexes. The treatment of
parallel edges and loops depends on the algorithm, so a topology has three matrices:

- `flow` (PageRank, degree, communities): weights of parallel edges add up; an undirected edge has
  both directions, a loop is there once.
- `costs` (paths, trees): of parallel edges the lightest counts; a loop is irrelevant.
- `simple` (triangles, cores, similarity): undirected and unweighted, each pair once, no loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from penstock.graphdb.contract import SOURCE, TARGET
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from penstock.graphdb.algorithms.nodes import Floats, Ints, Nodes

    Indexes: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

Matrix: TypeAlias = Any
"""A `scipy.sparse.csr_array`; SciPy has no types."""
WEIGHT = "_weight"
"""The weight column; it cannot collide with properties, whose names begin with a letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Edges of one type between two labels: columns `_src`, `_dst` (offsets within their label) and
    optionally `_weight`."""

    type: str
    from_label: str
    to_label: str
    table: pa.Table


@dataclass(frozen=True, kw_only=True)
class Topology:
    """`sums` has each pair of nodes once, with the total weight (or the number) of its parallel
    edges; `lightest` has their minimum weight, or is None where that is equal."""

    nodes: Nodes
    sums: Matrix
    lightest: Matrix | None
    weighted: bool
    edge_count: int

    @property
    def count(self) -> int:
        return self.nodes.count

    def flow(self, *, directed: bool) -> Matrix:
        return self.sums if directed else self._both_ways

    def costs(self, *, directed: bool) -> Matrix:
        return self._steps if directed else self._steps_both_ways

    def merged(self, *, directed: bool) -> Topology:
        """The graph with only the lightest of parallel edges; in an undirected graph two opposite
        edges are parallel."""
        single = (
            self.costs(directed=directed)
            if directed
            else sp.triu(self.costs(directed=False)).tocsr()
        )
        return Topology(
            nodes=self.nodes,
            sums=single,
            lightest=None,
            weighted=self.weighted,
            edge_count=single.nnz,
        )

    @cached_property
    def _both_ways(self) -> Matrix:
        loops = sp.diags_array(self.sums.diagonal(), format="csr")
        return (self.sums + self.sums.T - loops).tocsr()

    @cached_property
    def _steps(self) -> Matrix:
        matrix = self.sums if self.lightest is None else self.lightest
        data = matrix.data if self.weighted else np.ones(matrix.nnz)
        return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)

    @cached_property
    def _steps_both_ways(self) -> Matrix:
        there = self._steps.tocoo()
        rows, columns = (
            np.concatenate([there.row, there.col]),
            np.concatenate([there.col, there.row]),
        )
        return merge(
            self.count, rows, columns, np.concatenate([there.data, there.data]), np.minimum
        )

    @cached_property
    def simple(self) -> Matrix:
        pattern = sp.csr_array(
            (np.ones(self.sums.nnz), self.sums.indices, self.sums.indptr), shape=self.sums.shape
        )
        both = without_loops((pattern + pattern.T).tocsr())
        both.data[:] = 1.0
        both.sort_indices()
        return both

    @cached_property
    def arcs(self) -> Matrix:
        """Directed, each ordered pair once, no loops."""
        pattern = sp.csr_array(
            (np.ones(self.sums.nnz), self.sums.indices, self.sums.indptr), shape=self.sums.shape
        )
        return without_loops(pattern)


def build(
    nodes: Nodes, edges: Sequence[Edges], *, offsets: dict[str, Ints] | None = None
) -> Topology:
    """`offsets` has the sorted offsets of labels where they are not contiguous from 0."""
    weighted = bool(edges) and all(WEIGHT in e.table.column_names for e in edges)
    rows = _joined([_indexes(nodes, e.from_label, e.table[SOURCE], offsets) for e in edges])
    columns = _joined([_indexes(nodes, e.to_label, e.table[TARGET], offsets) for e in edges])
    if not weighted:
        return _topology(
            nodes,
            merge(nodes.count, rows, columns, np.ones(len(rows)), np.add),
            None,
            len(rows),
            False,
        )
    weights = np.concatenate([_weights(e) for e in edges])
    sums = merge(nodes.count, rows, columns, weights, np.add)
    lightest = (
        None if sums.nnz == len(rows) else merge(nodes.count, rows, columns, weights, np.minimum)
    )
    return _topology(nodes, sums, lightest, len(rows), True)


def _topology(
    nodes: Nodes, sums: Matrix, lightest: Matrix | None, edge_count: int, weighted: bool
) -> Topology:
    return Topology(
        nodes=nodes, sums=sums, lightest=lightest, weighted=weighted, edge_count=edge_count
    )


def merge(count: int, rows: Ints, columns: Ints, data: Floats, reduce: np.ufunc) -> Matrix:
    """A matrix with each pair once, its values reduced; unlike SciPy's own conversion it keeps
    zeros and supports the minimum."""
    if reduce is np.add:
        return sp.coo_array((data, _narrow(count, rows, columns)), shape=(count, count)).tocsr()
    place = rows.astype(np.int64) * count + columns
    order = np.argsort(place)
    place, data = place[order], data[order]
    first = (
        np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
        if len(place)
        else np.empty(0, np.int64)
    )
    merged = reduce.reduceat(data, first) if len(place) else data
    row, column = np.divmod(place[first], max(count, 1))
    indptr = np.searchsorted(row, np.arange(count + 1))
    index_type = np.int32 if len(merged) < 2**31 and count < 2**31 else np.int64
    return sp.csr_array(
        (merged, column.astype(index_type), indptr.astype(index_type)), shape=(count, count)
    )


def without_loops(matrix: Matrix) -> Matrix:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    keep = matrix.indices != rows
    if keep.all():
        return matrix
    lengths = np.bincount(rows[keep], minlength=matrix.shape[0])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(matrix.indptr.dtype)
    return sp.csr_array((matrix.data[keep], matrix.indices[keep], indptr), shape=matrix.shape)


def _narrow(count: int, rows: Ints, columns: Ints) -> tuple[Indexes, Indexes]:
    if count < 2**31 and len(rows) < 2**31:
        return rows.astype(np.int32, copy=False), columns.astype(np.int32, copy=False)
    return rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _indexes(
    nodes: Nodes, label: str, column: pa.ChunkedArray, offsets: dict[str, Ints] | None
) -> Ints:
    indexes: Ints = column.to_numpy()
    if offsets and label in offsets:
        indexes = np.searchsorted(offsets[label], indexes)
    span = nodes.span(label)
    if len(indexes) and (indexes.min() < 0 or indexes.max() >= span.stop - span.start):
        raise ValueError(f"an edge refers to a missing {label}")
    shifted: Ints = indexes + span.start
    return shifted


def _weights(edges: Edges) -> Floats:
    column = edges.table[WEIGHT]
    if column.null_count:
        raise InvalidInput(
            f"weight_property: {column.null_count} edges of type {edges.type} have no weight.",
            hint="Fill the property in the mapping's query, or leave weight_property out.",
            parameter="weight_property",
        )
    values: Floats = column.to_numpy().astype(np.float64)
    if not np.isfinite(values).all():
        raise InvalidInput(
            f"weight_property: edges of type {edges.type} have weights that are not finite.",
            parameter="weight_property",
        )
    return values
