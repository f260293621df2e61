"""A real graph server as a process, with a stand-in for its control plane."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from tests.graph_server.control_plane import DEADLINE, INSTANCE, TOKEN, StandIn
from tests.servers.process import running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Sequence

PROXY = {"Authorization": f"Bearer {TOKEN}", "X-Penstock-User": "ada", "X-Penstock-Role": "analyst"}
PLANE = {"Authorization": f"Bearer {TOKEN}"}
COMMAND = (sys.executable, "-I", "-m", "penstock.graph_server")
ROOT = Path(__file__).parents[2]
ARROW = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphServer:
    plane: StandIn
    http: httpx2.AsyncClient
    process: subprocess.Popen[bytes]
    folder: Path
    log: Path

    async def query(self, text: str, **more: Any) -> httpx2.Response:
        return await self.http.post("/query", json={"query": text, **more})

    async def rows(self, text: str, **more: Any) -> list[list[Any]]:
        answer = await self.query(text, **more)
        assert answer.status_code == 200, answer.text
        table_rows: list[list[Any]] = answer.json()["rows"]
        return table_rows

    async def engine(self) -> dict[str, Any]:
        """What the server says of its engine: pids, restarts by reason, the memory of queries."""
        status: dict[str, Any] = (await self.http.get("/status")).json()["engine"]
        return status

    async def exit_code(self) -> int:
        async with asyncio.timeout(DEADLINE):
            return await asyncio.to_thread(self.process.wait)


@asynccontextmanager
async def graph_server(
    folder: Path,
    storage_url: str,
    assignment: dict[str, Any] | None,
    command: Sequence[str] = COMMAND,
    **settings: str,
) -> AsyncIterator[GraphServer]:
    """Started, not yet loaded: wait for `plane.outcome()`. It listens on a socket unless it is
    given a port."""
    folder.mkdir(parents=True, exist_ok=True)
    sock, port = str(folder / "s"), settings.get("instance_port")
    async with StandIn(assignment) as plane:
        environment = {
            "PENSTOCK_URL": plane.url,
            "PENSTOCK_STORAGE_URL": storage_url,
            "PENSTOCK_INSTANCE_ID": str(INSTANCE),
            "PENSTOCK_INSTANCE_TOKEN": TOKEN,
            "PENSTOCK_INSTANCE_DIR": str(folder / "own"),
            **({} if port else {"PENSTOCK_INSTANCE_SOCKET": sock}),
            "PENSTOCK_INSTANCE_MEMORY_BYTES": str(2 * 1024**3),
            "PENSTOCK_INSTANCE_CPU": "2",
            "PENSTOCK_INSTANCE_ISOLATION": "require",
            "TMPDIR": str(folder / "tmp"),
            "PYTHONPATH": str(ROOT),
            **{f"PENSTOCK_{name.upper()}": value for name, value in settings.items()},
        }
        (folder / "tmp").mkdir(exist_ok=True)
        transport = httpx2.AsyncHTTPTransport(uds=None if port else sock)
        with running(command, log=folder / "log", cwd=folder, env=environment) as process:
            async with httpx2.AsyncClient(
                transport=transport,
                base_url=f"http://127.0.0.1:{port or 1}",
                headers=PROXY,
                timeout=DEADLINE,
            ) as http:
                yield GraphServer(
                    plane=plane, http=http, process=process, folder=folder, log=folder / "log"
                )


@asynccontextmanager
async def running_server(
    folder: Path,
    storage_url: str,
    assignment: dict[str, Any],
    command: Sequence[str] = COMMAND,
    **settings: str,
) -> AsyncIterator[GraphServer]:
    """Loaded and ready."""
    async with graph_server(folder, storage_url, assignment, command, **settings) as server:
        outcome = await server.plane.outcome()
        assert outcome["status"] == "running", (outcome, server.log.read_text())
        yield server
