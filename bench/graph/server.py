"""Starts a real graph server on the benchmark's data, published as by a worker."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import psutil
from tests.graph_server.server import GraphServer, graph_server
from tests.graph_server.snapshots import Edge, Node, publish

from penstock.storage.object_store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

MEMORY_BYTES = 8 * 1024**3
THREADS = 2
LOAD_DEADLINE = 1800.0
_TYPES = {"INT64": "INT64", "STRING": "STRING", "DOUBLE": "DOUBLE"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """`seconds` from the first answer to readiness: connecting, copying and counting."""

    server: GraphServer
    seconds: float

    async def post(self, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
        answer = await self.server.http.post(
            path, json=body, headers=headers, timeout=LOAD_DEADLINE
        )
        if answer.status_code not in (200, 202):
            raise RuntimeError(answer.text)
        result: dict[str, Any] = answer.json()
        return result

    async def run(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Until it is done, however long."""
        result = await self.post(path, body, **{"X-Penstock-Write": "1"})
        while result["status"] == "running":
            await asyncio.sleep(0.02)
            result = (await self.server.http.get(f"/algo/status/{result['execution_id']}")).json()
        if result["status"] != "completed":
            raise RuntimeError(str(result))
        return result

    def peak_mb(self) -> float:
        status = Path(f"/proc/{self.server.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))

    def rss_mb(self) -> float:
        used: int = psutil.Process(self.server.process.pid).memory_info().rss
        return used / 2**20


async def published(folder: Path, nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, Any]:
    folder.mkdir(parents=True)
    return await publish(open_store(str(folder)), nodes, edges, prefix="bench/1/v1/1/")


@asynccontextmanager
async def loaded(folder: Path, assignment: dict[str, Any]) -> AsyncIterator[Loaded]:
    storage = f"file://{folder / 'storage'}"
    settings = {"instance_memory_bytes": str(MEMORY_BYTES), "instance_cpu": str(THREADS)}
    async with graph_server(folder / "i", storage, assignment, **settings) as server:
        await _answers(server, "/health")
        began = time.perf_counter()
        await _answers(server, "/ready")
        yield Loaded(server, time.perf_counter() - began)


async def _answers(server: GraphServer, path: str) -> None:
    async with asyncio.timeout(LOAD_DEADLINE):
        while True:
            with suppress(httpx2.TransportError):  # the socket may not be there yet
                if (await server.http.get(path)).status_code == 200:
                    return
            if server.process.poll() is not None:
                raise RuntimeError(server.log.read_text()[-4000:])
            await asyncio.sleep(0.02)


def bare_plan(
    path: Path, storage: Path, nodes: Sequence[Node], edges: Sequence[Edge], *, questions: bool
) -> Path:
    """The same files and tables for the engine by itself."""
    prefix = storage / "bench/1/v1/1"
    tables = [_node_table(node) for node in nodes]
    tables += [
        f"CREATE REL TABLE {edge.type}(FROM {edge.ends[0]} TO {edge.ends[1]})" for edge in edges
    ]
    files = {
        table.path.split("/")[1]: sorted(map(str, (prefix / table.path).glob("*.parquet")))
        for table in (*nodes, *edges)
    }
    customers = next((len(node.table) for node in nodes if node.label == "Customer"), 0)
    plan = {"tables": tables, "files": files, "questions": questions, "customers": customers}
    path.write_text(json.dumps(plan | {"threads": THREADS, "cache_bytes": int(MEMORY_BYTES * 0.6)}))
    return path


def _node_table(node: Node) -> str:
    columns = [f"{name} {_TYPES[kind]}" for name, kind in (node.key, *node.properties)]
    return f"CREATE NODE TABLE {node.label}({', '.join(columns)}, PRIMARY KEY ({node.key[0]}))"
