"""A stand-in for the graph server: it speaks its protocol to both sides, and misbehaves on demand.

    python graph_server.py CONTROL

CONTROL is a JSON file: {"fail": CODE} reports that failure, {"exit": n} leaves without a word,
{"hold": true} loads until the file says otherwise, {"counts": [n, m]} is what it says it has
loaded.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.types import Send

CHUNK = bytes(range(256)) * 256
allocations: list[bytearray] = []
state: dict[str, Any] = {"busy": False, "cancelled": 0, "waiting": 0}


def control() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    return document


@cache
def secrets() -> dict[str, str]:
    """By a pipe from the subprocess launcher, in files of a pod."""
    if "PENSTOCK_INSTANCE_SECRETS_FD" in os.environ:
        handed_over: dict[str, str] = json.load(sys.stdin)
        return handed_over
    folder = Path(os.environ["PENSTOCK_SECRETS_DIR"])
    return {file.name.upper(): file.read_text() for file in folder.iterdir() if file.is_file()}


class Plane:
    """The internal API, as this instance reaches it."""

    def __init__(self) -> None:
        url, instance_id = os.environ["PENSTOCK_URL"], os.environ["PENSTOCK_INSTANCE_ID"]
        base = f"{url}/api/internal/instances/{instance_id}"
        headers = {
            "Authorization": f"Bearer {secrets()['PENSTOCK_INSTANCE_TOKEN']}",
            "X-Component": "wrapper",
        }
        self._http = httpx2.AsyncClient(base_url=base, headers=headers, timeout=10, trust_env=False)

    async def say(self, what: str, **body: Any) -> None:
        await self._patiently("PUT", what, body)

    async def mapping(self) -> dict[str, Any]:
        document: dict[str, Any] = (await self._patiently("GET", "mapping", None)).json()["data"]
        return document

    async def _patiently(
        self, method: str, what: str, body: dict[str, Any] | None
    ) -> httpx2.Response:
        """A control plane may be away for a while."""
        for _ in range(600):
            try:
                answer = await self._http.request(method, f"/{what}", json=body)
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
                continue
            return answer.raise_for_status()
        raise TimeoutError


async def load(server: uvicorn.Server) -> None:
    plane, script = Plane(), control()
    if "exit" in script:
        sys.stderr.write("leaving without a word\n")
        os._exit(script["exit"])
    mapping = await plane.mapping()
    names = [node["label"] for node in mapping["node_definitions"]]
    steps = [
        {"name": name, "type": "node", "status": "in_progress", "row_count": None} for name in names
    ]
    await plane.say(
        "progress", phase="loading_data", current_step=names[0], progress_percent=40, steps=steps
    )
    while control().get("hold"):  # noqa: ASYNC110 - a file rings no bell
        await asyncio.sleep(0.02)
    if "fail" in script:
        trace = "Traceback: stand-in"
        await plane.say(
            "status",
            status="failed",
            error_code=script["fail"],
            error_message="as told",
            failed_phase="loading_data",
            stack_trace=trace,
        )
        server.should_exit = True
        os._exit(1)
    nodes, edges = script.get("counts", [3, 2])
    await plane.say(
        "status", status="running", graph_stats={"node_count": nodes, "edge_count": edges}
    )


async def health(_: Request) -> Response:
    return JSONResponse({"status": "healthy", "pid": os.getpid()})


async def echo(request: Request) -> Response:
    body = await request.body()
    path = request.scope["raw_path"].decode()
    headers = [[name.decode(), value.decode()] for name, value in request.headers.raw]
    query = request.scope["query_string"].decode()
    return JSONResponse(
        {
            "path": path,
            "query": query,
            "headers": headers,
            "size": len(body),
            "method": request.method,
        }
    )


class Streamed(StreamingResponse):
    """Counts the answers that were not read to their end."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except asyncio.CancelledError:
            state["cancelled"] += 1
            raise


async def stream(request: Request) -> Response:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(int(request.query_params["chunks"])):
            yield CHUNK
            await asyncio.sleep(
                0
            )  # a connection that is gone takes everything at once, and nobody else gets a turn

    return Streamed(chunks(), media_type="application/vnd.apache.arrow.stream")


async def slow(request: Request) -> Response:
    """Answers when its caller has gone."""
    await request.body()
    state["waiting"] += 1
    while not await request.is_disconnected():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    state["cancelled"] += 1
    return Response()


async def told(_: Request) -> Response:
    return JSONResponse(state)


async def busy(request: Request) -> Response:
    state["busy"] = (await request.json())["busy"]
    return JSONResponse(state)


async def grow(request: Request) -> Response:
    allocations.append(bytearray(os.urandom(1024)) * (int(request.query_params["mib"]) * 1024))
    return JSONResponse({"held": sum(map(len, allocations))})


async def die(_: Request) -> Response:
    os.kill(os.getpid(), 9)
    return Response()


async def environment(_: Request) -> Response:
    return JSONResponse(
        {"environment": dict(os.environ), "affinity": sorted(os.sched_getaffinity(0))}
    )


async def shutdown(_: Request) -> Response:
    if state["busy"]:
        error = {
            "code": "SHUTDOWN_BLOCKED",
            "message": "An algorithm runs.",
            "details": {"algorithm": "pagerank"},
        }
        return JSONResponse({"error": error}, status_code=409)
    return JSONResponse({"acknowledged": True, "active_queries": 0, "lock_held": False})


ROUTES = [
    Route("/health", health),
    Route("/stream", stream),
    Route("/slow", slow, methods=["GET", "POST"]),
    Route("/told", told),
    Route("/busy", busy, methods=["POST"]),
    Route("/grow", grow, methods=["POST"]),
    Route("/die", die, methods=["POST"]),
    Route("/environment", environment),
    Route("/shutdown", shutdown, methods=["POST"]),
    Route("/{path:path}", echo, methods=["GET", "POST", "PUT", "DELETE", "PATCH"]),
]


async def main() -> None:
    server = uvicorn.Server(
        uvicorn.Config(
            Starlette(routes=ROUTES),
            uds=os.environ.get("PENSTOCK_INSTANCE_SOCKET"),
            host=os.environ.get("PENSTOCK_INSTANCE_HOST", "127.0.0.1"),
            port=int(os.environ.get("PENSTOCK_INSTANCE_PORT", "0")),
            ws="none",
            lifespan="off",
            log_level="warning",
        )
    )
    loading = asyncio.create_task(load(server))
    loading.add_done_callback(_die_with)
    await server.serve()
    loading.cancel()


def _die_with(loading: asyncio.Task[None]) -> None:
    """As the real one does: it never stays up without a graph."""
    if not loading.cancelled() and (why := loading.exception()):
        traceback.print_exception(why)
        os._exit(1)


if __name__ == "__main__":
    asyncio.run(main())
