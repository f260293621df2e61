"""A worker's health, readiness and metrics."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.model import Status
from penstock.kit.errors import Conflict
from penstock.worker import Worker
from penstock.worker.health import MAX_REQUEST
from tests.worker.conftest import until
from tests.worker.worker_process import HANDLERS, KINDS, open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.worker.conftest import Hands, Jobs

    Working = Callable[..., Worker]

HERE = ("127.0.0.1", 0)


async def talk(url: str, request: bytes) -> tuple[int, str]:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(" ")[1]), answer.partition("\r\n\r\n")[2]


async def get(url: str, path: str) -> tuple[int, str]:
    return await talk(url, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


async def served(worker: Worker) -> str:
    async def it_is() -> bool:
        return worker.health is not None and worker.health.url != ""

    await until(it_is)
    return worker.health.url


async def _is_ready(url: str) -> bool:
    """It is once its first heartbeat was answered."""
    return (await get(url, "/ready?probe=1"))[0] == 200


async def test_pages_say_how_a_worker_is(jobs: Jobs, working: Working) -> None:
    worker = working(health=HERE)
    url = await served(worker)
    job = await jobs.add("nap", seconds=60)
    await jobs.until(job, Status.RUNNING)
    status, body = await get(url, "/health")
    assert (status, json.loads(body)["status"], json.loads(body)["active"]) == (200, "ok", 1)
    await until(lambda: _is_ready(url))
    status, body = await get(url, "/metrics")
    assert status == 200
    for line in (
        "penstock_worker_active_jobs 1.0",
        'penstock_worker_current_job_type{type="nap"} 1.0',
        "penstock_worker_current_job_duration_seconds ",
        "penstock_worker_last_heartbeat_seconds_ago ",
        "# TYPE penstock_worker_jobs_completed_total counter",
        "# TYPE penstock_job_duration_seconds histogram",
        "# TYPE penstock_worker_rows_processed_total counter",
    ):
        assert line in body


async def test_a_worker_that_stops_is_not_ready(jobs: Jobs, working: Working) -> None:
    worker = working(health=HERE, grace_seconds=30)
    url = await served(worker)
    await jobs.until(await jobs.add("nap", seconds=60), Status.RUNNING)
    worker.stop()
    assert (await get(url, "/ready"))[0] == 503
    assert (await get(url, "/health"))[0] == 200


async def test_anything_else_is_refused(jobs: Jobs, working: Working) -> None:
    url = await served(working(health=HERE))
    assert (await talk(url, b"GET / HTTP/1.1\r\n\r\n"))[0] == 404
    assert (await talk(url, b"POST /health HTTP/1.1\r\n\r\n"))[0] == 405
    assert (await talk(url, b"nonsense\r\n\r\n"))[0] == 400
    assert (await talk(url, b"GET /health HTTP/1.1\r\nX: " + b"x" * MAX_REQUEST + b"\r\n\r\n"))[
        0
    ] == 431
    assert (await talk(url, b"HEAD /health HTTP/1.1\r\n\r\n")) == (200, "")


async def test_health_answers_while_the_event_loop_is_blocked(jobs: Jobs, hands: Hands) -> None:
    hand = await hands.hire(health=HERE)
    url = str((await hand.event("health_served"))["url"])
    await jobs.until(await jobs.add("stuck-loop", seconds=60), Status.RUNNING)
    assert (await get(url, "/health"))[0] == 200


async def test_a_port_in_use_is_named(database: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker = Worker(
            lambda: open_store(database),
            HANDLERS,
            KINDS,
            name="w",
            queues=["default"],
            health=("127.0.0.1", port),
        )
        with pytest.raises(Conflict, match=f"127.0.0.1:{port}"):
            await asyncio.wait_for(worker.run(), 10)
