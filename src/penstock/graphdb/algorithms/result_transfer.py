"""Transfers a graph from the engine to algorithm children: mapped Arrow files, and the matrices
that the first child builds.

A graph's topology does not change after its load, so later runs with the same selection reuse the
folder.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from penstock.graphdb.algorithms.nodes import Nodes
from penstock.graphdb.algorithms.topology import WEIGHT, Edges, Topology, build
from penstock.graphdb.contract import KEY, OFFSET, SOURCE, TARGET
from penstock.graphdb.files import arrow_file
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.graphdb.algorithms.nodes import Ints
    from penstock.graphdb.algorithms.selection import Selection
    from penstock.graphdb.algorithms.topology import Matrix
    from penstock.graphdb.contract import EdgeTable, GraphSchema

_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePiece:
    """One file of the folder, and the engine's table that it contains."""

    name: str
    label: str
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgePiece:
    name: str
    table: EdgeTable
    properties: tuple[str, ...]


def node_pieces(schema: GraphSchema, selection: Selection) -> list[NodePiece]:
    pieces = []
    for number, label in enumerate(selection.labels):
        has = {p.name for table in schema.nodes if table.label == label for p in table.columns}
        names = tuple(name for name in selection.node_properties if name in has)
        pieces.append(NodePiece(name=f"nodes-{number}.arrow", label=label, properties=names))
    return pieces


def edge_pieces(schema: GraphSchema, selection: Selection) -> list[EdgePiece]:
    weight = [selection.weight] if selection.weight else []
    names = tuple(dict.fromkeys([*weight, *selection.edge_properties]))
    pieces = []
    for number, edge in enumerate(selection.edges):
        pair = (edge.from_label, edge.to_label)
        table = next(t for t in schema.pairs(edge.type) if (t.from_node, t.to_node) == pair)
        pieces.append(EdgePiece(name=f"edges-{number}.arrow", table=table, properties=names))
    return pieces


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """A folder to fill; it gets its final name when complete, and is deleted on failure."""
    begun = folder.with_name(f"{uuid4().hex}.part")
    begun.mkdir(parents=True)
    try:
        yield begun
        begun.rename(folder)
    finally:
        shutil.rmtree(begun, ignore_errors=True)


def read_nodes(
    folder: Path, selection: Selection
) -> tuple[Nodes, dict[str, pa.Array], dict[str, Ints]]:
    """Nodes in the order of their offsets, their properties, and the offsets of labels where they
    are not contiguous."""
    tables = [arrow_file.read(folder / f"nodes-{n}.arrow") for n in range(len(selection.labels))]
    tables = [_in_order(table) for table in tables]
    nodes = Nodes.of(selection.labels, [_whole(table[KEY]) for table in tables])
    properties = {name: _property(tables, name) for name in selection.node_properties}
    holes = {}
    for label, table in zip(selection.labels, tables, strict=True):
        offsets = table[OFFSET].to_numpy()
        if len(offsets) and offsets[-1] != len(offsets) - 1:
            holes[label] = offsets
    return nodes, properties, holes


def read_edges(
    folder: Path, selection: Selection, holes: dict[str, Ints] | None = None
) -> list[Edges]:
    """The raw edges with all properties and a weight column."""
    edges = []
    for number, edge in enumerate(selection.edges):
        table = arrow_file.read(folder / f"edges-{number}.arrow")
        if selection.weight:
            table = table.append_column(WEIGHT, _weights(table[selection.weight], edge.type))
        for end, label in ((SOURCE, edge.from_label), (TARGET, edge.to_label)):
            if holes and label in holes:
                dense = np.searchsorted(holes[label], table[end].to_numpy())
                table = table.set_column(
                    table.column_names.index(end), end, pa.array(dense, pa.int64())
                )
        edges.append(
            Edges(type=edge.type, from_label=edge.from_label, to_label=edge.to_label, table=table)
        )
    return edges


def _weights(column: pa.ChunkedArray, edge_type: str) -> pa.ChunkedArray:
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid as e:
        raise InvalidInput(
            f"weight_property: edges of type {edge_type} have weights beyond 2^53, which a DOUBLE"
            " cannot represent exactly.",
            hint="Make them smaller, or a DOUBLE, in the mapping's query.",
            parameter="weight_property",
        ) from e


def read_topology(
    folder: Path, selection: Selection, nodes: Nodes, holes: dict[str, Ints]
) -> Topology:
    """The matrices saved by an earlier child, or built now and saved for later ones."""
    if not (folder / "built").exists():
        topology = build(nodes, read_edges(folder, selection, holes))
        _save(folder, "sums", topology.sums)
        if topology.lightest is not None:
            _save(folder, "lightest", topology.lightest)
        begun = folder / f"{os.getpid()}-built"
        begun.write_bytes(
            orjson.dumps({"weighted": topology.weighted, "edges": topology.edge_count})
        )
        begun.rename(folder / "built")
        return topology
    metadata = orjson.loads((folder / "built").read_bytes())
    has_lightest = (folder / "lightest-data.npy").exists()
    return Topology(
        nodes=nodes,
        sums=_load(folder, "sums", nodes.count),
        lightest=_load(folder, "lightest", nodes.count) if has_lightest else None,
        weighted=metadata["weighted"],
        edge_count=metadata["edges"],
    )


def _save(folder: Path, name: str, matrix: Matrix) -> None:
    for part in _PARTS:
        begun = (
            folder / f"{os.getpid()}-{name}-{part}.npy"
        )  # two children may build at once; each file appears whole
        np.save(begun, getattr(matrix, part))
        begun.rename(folder / f"{name}-{part}.npy")


def _load(folder: Path, name: str, count: int) -> Matrix:
    data, indices, indptr = (
        np.load(folder / f"{name}-{part}.npy", mmap_mode="r") for part in _PARTS
    )
    return sp.csr_array((data, indices, indptr), shape=(count, count))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    )


def _in_order(table: pa.Table) -> pa.Table:
    offsets = table[OFFSET].to_numpy()
    return (
        table if (offsets[1:] > offsets[:-1]).all() else table.take(pc.sort_indices(table[OFFSET]))
    )


def _property(tables: list[pa.Table], name: str) -> pa.Array:
    """The property over all labels; null where a label has none of that name."""
    kind = next(table[name].type for table in tables if name in table.column_names)
    parts = [
        table[name].cast(kind) if name in table.column_names else pa.nulls(len(table), kind)
        for table in tables
    ]
    return _whole(
        pa.chunked_array(
            [chunk for part in parts for chunk in getattr(part, "chunks", [part])], kind
        )
    )
