"""`make bench NAME=graph`: the graph server beside the engine by itself, SQL on the same Parquet,
and bare libraries.

TPC_SCALE and GRAPH_NODES shrink it for a try (the goals are for 1 and 1,000,000). What is compared
runs in processes of its own, one after the other, on the same files.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console
from tests.graph_server.server import ARROW

from bench.figures import Figure, figure, median, publish, quantile
from bench.graph.client import connected
from bench.graph.data import as_graph, as_network, tpch
from bench.graph.questions import CYPHER, POINT, SCAN, SUPPLIERS
from bench.graph.server import Loaded, bare_plan, loaded, published
from penstock.kit import logging

if TYPE_CHECKING:
    from tests.graph_server.snapshots import Edge, Node

SCALE = float(os.environ.get("TPC_SCALE", "1"))
NODES = int(os.environ.get("GRAPH_NODES", "1000000"))
EDGES = 10 * NODES
FEWER = max(NODES // 10, 1000)
"""NetworkX can finish this."""
POINTS = 2000
CLIENTS = (1, 8, 32)
say = Console(stderr=True).print


async def main() -> int:
    logging.configure(level="ERROR")
    scratch = Path(tempfile.mkdtemp(prefix="pg-bench-"))
    try:
        figures = await _relations(scratch / "t")
        figures |= await _network(scratch / "n")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return publish("graph", figures)


async def _relations(scratch: Path) -> dict[str, Figure]:
    folder = tpch(SCALE)
    nodes, edges = as_graph(folder)
    say(
        f"TPC-H {SCALE:g}: {sum(len(n.table) for n in nodes):,} nodes,"
        f" {sum(len(e.table) for e in edges):,} edges"
    )
    source = await published(scratch / "storage", nodes, edges)
    bare = await _bare(scratch, nodes, edges, questions=True)
    async with loaded(scratch, source) as graph:
        figures = {
            "load_seconds": figure(graph.seconds, "s"),
            "load_vs_own_copy": figure(graph.seconds / bare["load"], "x", "<= 1.15"),
            "memory_after_load": figure(graph.rss_mb(), "MB"),
        }
        figures |= await _hops(graph, bare["hops"], folder)
        figures |= await _points(graph, bare["points"], len(nodes[3].table))
        figures |= await _stream(graph, bare["fetch"], len(nodes[1].table))
        return figures | {"memory_peak": figure(graph.peak_mb(), "MB")}


async def _bare(
    scratch: Path, nodes: list[Node], edges: list[Edge], *, questions: bool
) -> dict[str, Any]:
    plan = bare_plan(scratch / "plan.json", scratch / "storage", nodes, edges, questions=questions)
    return await _child("bench.graph.bare", str(plan))


async def _hops(graph: Loaded, bare: dict[str, float], folder: Path) -> dict[str, Figure]:
    others = {
        way: await _child("bench.graph.tables", way, str(folder))
        for way in ("duckdb", "datafusion")
    }
    figures: dict[str, Figure] = {}
    for name, text in CYPHER.items():
        mine = median([await _asked(graph, text, key) for key in SUPPLIERS])
        say(
            f"{name}: {mine * 1e3:.1f} ms, engine {bare[name] * 1e3:.1f}, "
            + ", ".join(f"{way} {timings[name] * 1e3:.1f}" for way, timings in others.items())
        )
        figures[f"{name}_http"] = figure(mine * 1e3, "ms")
        figures[f"{name}_engine"] = figure(bare[name] * 1e3, "ms")
        for way, timings in others.items():
            figures[f"{name}_{way}_vs_http"] = figure(timings[name] / mine, "x")
    return figures


async def _asked(graph: Loaded, text: str, key: int) -> float:
    body = {"query": text, "parameters": {"k": key}, "timeout_ms": 600_000}
    await graph.post("/query", body)
    began = time.perf_counter()
    await graph.post("/query", body)
    return time.perf_counter() - began


async def _points(graph: Loaded, bare: dict[str, float], customers: int) -> dict[str, Figure]:
    figures: dict[str, Figure] = {"point_engine_p50": figure(bare["p50"] * 1e3, "ms")}
    for clients in CLIENTS:
        times = await _clients(graph, clients, customers)
        p50, p99 = (quantile(times, part) * 1e3 for part in (0.5, 0.99))
        say(f"points, {clients} clients: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        figures[f"point_{clients}_clients_p50"] = figure(p50, "ms")
        figures[f"point_{clients}_clients_p99"] = figure(p99, "ms")
        if clients == 1:
            figures["point_added_p50"] = figure(p50 - bare["p50"] * 1e3, "ms", "< 1")
    return figures


async def _clients(graph: Loaded, clients: int, customers: int) -> list[float]:
    times: list[float] = []

    async def one(number: int) -> None:
        async with connected(graph.server.folder / "s") as ask:
            for turn in range(POINTS // clients):
                body = {
                    "query": POINT,
                    "parameters": {"k": (number * POINTS + turn) * 7919 % customers + 1},
                }
                began = time.perf_counter()
                await ask("/query", body)
                times.append(time.perf_counter() - began)

    await asyncio.gather(*(one(number) for number in range(clients)))
    return times


async def _stream(graph: Loaded, fetch: float, rows: int) -> dict[str, Figure]:
    seconds = min([await _streamed(graph, rows) for _ in range(3)])
    say(
        f"Arrow: {rows / seconds / 1e6:.2f} M rows/s, the engine's own fetch"
        f" {rows / fetch / 1e6:.2f}"
    )
    return {
        "arrow_rows_per_second": figure(rows / seconds, "rows/s"),
        "arrow_vs_own_fetch": figure(fetch / seconds, "x", ">= 0.8"),
    }


async def _streamed(graph: Loaded, rows: int) -> float:
    began = time.perf_counter()
    body = {"query": SCAN, "timeout_ms": 600_000}
    async with graph.server.http.stream(
        "POST", "/query", json=body, headers={"Accept": ARROW}
    ) as answer:
        content = b"".join([part async for part in answer.aiter_bytes()])
    streamed_rows = pa.ipc.open_stream(content).read_all().num_rows
    if streamed_rows != rows:
        raise RuntimeError(f"{streamed_rows} rows of {rows}")
    return time.perf_counter() - began


async def _network(scratch: Path) -> dict[str, Figure]:
    nodes, edges = as_network(NODES, EDGES)
    source = await published(scratch / "storage", nodes, edges)
    library = await _child("bench.graph.libraries", "networkit", str(NODES), str(EDGES))
    own = await _child("bench.graph.libraries", "ours", str(NODES), str(EDGES))
    async with loaded(scratch, source) as graph:
        figures = {"network_load_seconds": figure(graph.seconds, "s")}
        first, again = [await _ranked(graph, name) for name in ("rank", "rank")]
        written = (await graph.run("/algo/degree", {"result_property": "degree"}))[
            "duration_ms"
        ] / 1e3
        say(
            f"pagerank written: {first:.1f} s, then {again:.1f}; networkit"
            f" {library['pagerank']:.1f}, "
            f"our compute {own['pagerank']:.1f}"
        )
        figures |= {
            "pagerank_written_first": figure(first, "s"),
            "pagerank_written_again": figure(again, "s"),
            "pagerank_written_vs_networkit": figure(again / library["pagerank"], "x", "<= 1.5"),
            "pagerank_written_vs_scipy": figure(again / own["pagerank"], "x"),
            "write_back_rows_per_second": figure(NODES / written, "rows/s"),
            "network_memory_peak": figure(graph.peak_mb(), "MB"),
        }
    for name in ("pagerank", "wcc", "kcore"):
        figures[f"{name}_cpu"] = figure(own[name], "CPU s")
        figures[f"{name}_vs_networkit"] = figure(library[name] / own[name], "x less CPU")
    return figures | await _against_networkx()


async def _ranked(graph: Loaded, name: str) -> float:
    began = time.perf_counter()
    await graph.run("/algo/pagerank", {"result_property": name})
    return time.perf_counter() - began


async def _against_networkx() -> dict[str, Figure]:
    ours, theirs = [
        await _child("bench.graph.libraries", way, str(FEWER), str(10 * FEWER))
        for way in ("ours", "networkx")
    ]
    say(f"NetworkX at {FEWER:,} nodes: {theirs}")
    names = ("build", "pagerank", "wcc", "kcore", "triangle_count")
    return {f"networkx_{name}": figure(theirs[name] / ours[name], "x our CPU") for name in names}


async def _child(module: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", module, *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{module} {arguments[0]} failed")
    result: dict[str, Any] = json.loads(output)
    return result


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
