"""Benchmark data: TPC-H as a graph, and a power-law graph for the algorithms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.graph_server.snapshots import Edge, Node

if TYPE_CHECKING:
    import numpy.typing as npt

CACHE = Path(__file__).parents[2] / ".cache" / "bench"
TABLES = ("lineitem", "orders", "customer", "supplier", "nation")


def tpch(scale: float) -> Path:
    """The generator's own Parquet files, kept for the next run."""
    folder = CACHE / f"tpch-{scale:g}"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        generator = Path(sys.executable).with_name("tpchgen-cli")
        options = [f"--tables={','.join(TABLES)}", f"--output-dir={folder}"]
        subprocess.run(
            [generator, "parquet", "-s", f"{scale:g}", *options],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (folder / "done").touch()
    return folder


def as_graph(folder: Path) -> tuple[list[Node], list[Edge]]:
    """Supplier → lineitem → orders → customer → nation."""
    read = {name: pq.read_table(folder / f"{name}.parquet") for name in TABLES}
    lines, orders, customers = read["lineitem"], read["orders"], read["customer"]
    line_key = pc.add(
        pc.multiply(lines["l_orderkey"], 8), pc.cast(lines["l_linenumber"], pa.int64())
    )
    quantity = pc.cast(lines["l_quantity"], pa.float64())
    nodes = [
        _node("Supplier", read["supplier"]["s_suppkey"], name=read["supplier"]["s_name"]),
        _node("Lineitem", line_key, quantity=quantity),
        _node("Orders", orders["o_orderkey"], status=pc.cast(orders["o_orderstatus"], pa.string())),
        _node("Customer", customers["c_custkey"], name=customers["c_name"]),
        _node("Nation", read["nation"]["n_nationkey"], name=read["nation"]["n_name"]),
    ]
    edges = [
        _edge("SUPPLIED", ("Supplier", "Lineitem"), lines["l_suppkey"], line_key),
        _edge("PART_OF", ("Lineitem", "Orders"), line_key, lines["l_orderkey"]),
        _edge("PLACED_BY", ("Orders", "Customer"), orders["o_orderkey"], orders["o_custkey"]),
        _edge("LIVES_IN", ("Customer", "Nation"), customers["c_custkey"], customers["c_nationkey"]),
    ]
    return nodes, edges


def _node(label: str, key: pa.ChunkedArray, **properties: pa.ChunkedArray) -> Node:
    columns = {
        name: pc.cast(c, pa.string()) if _is_text(c) else c for name, c in properties.items()
    }
    types = tuple((name, "STRING" if _is_text(c) else "DOUBLE") for name, c in properties.items())
    table = pa.table({"key": pc.cast(key, pa.int64()), **columns})
    return Node(label=label, key=("key", "INT64"), properties=types, table=table)


def _is_text(column: pa.ChunkedArray) -> bool:
    return not pa.types.is_floating(column.type)


def _edge(
    kind: str, ends: tuple[str, str], source: pa.ChunkedArray, target: pa.ChunkedArray
) -> Edge:
    table = pa.table({"a": pc.cast(source, pa.int64()), "b": pc.cast(target, pa.int64())})
    return Edge(type=kind, ends=ends, table=table)


def power_law(nodes: int, edges: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Few nodes with many edges, in no order; the same every time."""
    draw = np.random.default_rng(1)
    shuffled = draw.permutation(nodes)
    source = (nodes * draw.random(edges) ** 2.5).astype(np.int64)
    target = (nodes * draw.random(edges) ** 1.5).astype(np.int64)
    return shuffled[source], shuffled[target]


def as_network(nodes: int, edges: int) -> tuple[list[Node], list[Edge]]:
    source, target = power_law(nodes, edges)
    people = Node(label="N", key=("key", "INT64"), table=pa.table({"key": np.arange(nodes)}))
    return [people], [Edge(type="E", ends=("N", "N"), table=pa.table({"a": source, "b": target}))]
