"""What is loaded: a Penstock as `penstock up` runs it, with one instance of a small graph, and a
graph server of the same graph that listens on a port of its own, for there is no way around the
control plane to the instance's."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.graph_server.server import PROXY, running_server
from tests.graph_server.snapshots import Edge, Node
from tests.servers.process import free_ports

from bench import cpu
from bench.api import starts
from bench.api.asking import Asker
from bench.graph.server import published
from bench.users import ops_keys
from penstock.cli.home import Home
from penstock.cli.stack import Stack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

USERS = 16
LOOK_SECONDS = 0.1
SETTLE_SECONDS = 120.0
QUIET_LOOK_SECONDS = 2.0
QUIET_SHARE = 0.1
"""Of a core, of all processes together."""
ROOMY = {
    "PENSTOCK_INSTANCE_MEMORY_PER_USER_GB": "1000",
    "PENSTOCK_INSTANCE_MEMORY_TOTAL_GB": "1000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An address, what its callers show, and the process trees behind it by their part."""

    url: str
    path: str
    headers: list[dict[str, str]]
    trees: dict[str, int]
    operator_token: str = ""

    def cpu(self) -> dict[str, float]:
        return {name: cpu.of_tree(pid) for name, pid in self.trees.items()}


@asynccontextmanager
async def plane(folder: Path, more: Mapping[str, str] | None = None) -> AsyncIterator[Place]:
    """With settings of `more`, 16 people of the role ops, and a running instance at `path`; no
    worker asks for jobs once it runs."""
    async with Stack(
        Home(folder / "home"), port=0, workers=1, environment=ROOMY | dict(more or {})
    ) as stack:
        token = stack.home.secret("operator_token")
        keys = await ops_keys(stack.url, token, USERS)
        async with Asker(stack.url, token) as ask:
            mapping = await starts.mapping(ask, folder)
            instance = await running_instance(ask, {"mapping_id": mapping, "name": "small"})
            await _end_worker(stack)
            try:
                yield Place(
                    url=stack.url,
                    path=f"/wrapper/{instance['url_slug']}",
                    headers=[_headers(f"Bearer {key}") for key in keys],
                    trees={
                        "plane": stack.members["control-plane"].pid,
                        "graph": _graph_server(folder / "home"),
                        "postgres": postgres(stack),
                    },
                    operator_token=token,
                )
            finally:
                await starts.ended(ask)


@asynccontextmanager
async def graph_server(folder: Path) -> AsyncIterator[Place]:
    ids = list(range(10))
    names = [f"c{number}" for number in ids]
    nodes = [
        Node(
            label="Customer",
            key=("id", "INT64"),
            properties=(("name", "STRING"),),
            table=_table(ids, names),
        )
    ]
    friends = pa.table({"a": ids, "b": [(number + 1) % 10 for number in ids]})
    edges = [Edge(type="KNOWS", ends=("Customer", "Customer"), table=friends)]
    assignment = await published(folder / "storage", nodes, edges)
    [port] = free_ports(1)
    storage = f"file://{folder / 'storage'}"
    async with running_server(
        folder / "direct", storage, assignment, instance_port=str(port)
    ) as server:
        yield Place(
            url=f"http://127.0.0.1:{port}",
            path="",
            headers=[PROXY | {"Content-Type": "application/json"}],
            trees={"graph": server.process.pid},
        )


async def settled(*places: Place) -> None:
    """Until nobody there is busy with what it does after its start: a graph server loads its
    algorithms' libraries for a while."""
    async with asyncio.timeout(SETTLE_SECONDS):
        busy = QUIET_SHARE
        while busy >= QUIET_SHARE:
            before = _total(places)
            await asyncio.sleep(QUIET_LOOK_SECONDS)
            busy = (_total(places) - before) / QUIET_LOOK_SECONDS


def _total(places: Sequence[Place]) -> float:
    return sum(sum(place.cpu().values()) for place in places)


def postgres(stack: Stack) -> int:
    """The postmaster of the home."""
    pids = list((stack.home.folder).glob("postgres*/**/postmaster.pid"))
    if len(pids) != 1:
        raise RuntimeError(f"one postmaster was expected in {stack.home.folder}, not {len(pids)}")
    return int(pids[0].read_text().split()[0])


async def running_instance(ask: Asker, body: Mapping[str, Any]) -> dict[str, Any]:
    instance: dict[str, Any] = await ask("POST", "/api/instances", body)
    async with asyncio.timeout(starts.PATIENCE):
        while instance["status"] != "running":
            if instance["status"] == "failed":
                raise SystemExit(f"The instance did not start: {instance['error_message']}")
            await asyncio.sleep(LOOK_SECONDS)
            instance = await ask("GET", f"/api/instances/{instance['id']}")
    return instance


def database_url(stack: Stack) -> str:
    """Which the control plane gets in a file."""
    folder = stack.home.secrets_of("control-plane")
    return (folder / "penstock_database_url").read_text().strip()


async def _end_worker(stack: Stack) -> None:
    worker = stack.members.pop("worker-1")
    if worker.watcher is not None:
        worker.watcher.cancel()
    if worker.process is not None:
        worker.process.terminate()
        await worker.process.wait()


def _graph_server(home: Path) -> int:
    """The process that keeps the only graph server there is."""
    [file] = home.glob("**/process.json")
    pid: int = json.loads(file.read_text())["pid"]
    return pid


def _headers(authorization: str) -> dict[str, str]:
    return {"Authorization": authorization, "Content-Type": "application/json"}


def _table(ids: list[int], names: list[str]) -> pa.Table:
    return pa.table({"id": ids, "name": names})
