"""The worker as it is deployed: settings from the environment, the control plane over HTTP, exit
codes."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from signal import SIGTERM
from typing import TYPE_CHECKING

import pytest

from penstock.api.serving.server import bind, listening
from penstock.jobs.model import JobSpec, Status
from penstock.wiring.control_plane import build_control_plane
from penstock.wiring.settings import Settings
from tests.worker.conftest import until
from tests.worker.worker_process import KINDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.worker.conftest import Hand, Hands, Jobs

TOKEN = "a-service-token"
PROGRAM = (
    "import sys; from tests.worker.worker_process import deployed as run; sys.exit(run({options}))"
)


@asynccontextmanager
async def control_plane(dsn: str, port: int = 0) -> AsyncIterator[int]:
    settings = Settings(service_token=TOKEN, reap_seconds=0.5)
    async with build_control_plane(settings, dsn, kinds=KINDS) as services:
        with bind("127.0.0.1", port) as listener:
            async with listening(services, listener):
                yield listener.getsockname()[1]


async def deploy(hands: Hands, port: int, options: str = "", **environment: str) -> Hand:
    settings = {
        "PENSTOCK_URL": f"http://127.0.0.1:{port}",
        "PENSTOCK_SERVICE_TOKEN": TOKEN,
        "PENSTOCK_WORKER_PORT": "0",
        "PENSTOCK_WORKER_QUEUES": "default",
        **environment,
    }
    return await hands.run("-c", PROGRAM.format(options=options), **settings)


async def test_a_result_outlives_a_restart_of_the_control_plane(
    database: str, jobs: Jobs, hands: Hands
) -> None:
    async with control_plane(database) as port:
        hand = await deploy(hands, port)
        job = await jobs.add("nap", seconds=1)
        await jobs.until(job, Status.RUNNING)
    await hand.event("call_failed")
    async with control_plane(database, port):
        view = await jobs.over(job)
        assert (view.status, view.attempt_no) == (Status.SUCCEEDED, 1)
        hand.send(SIGTERM)
        assert await hand.exit_code() == 0


async def test_work_outlives_an_absence_of_the_control_plane_that_is_longer_than_its_lease(
    database: str, jobs: Jobs, hands: Hands
) -> None:
    """The lease lapses while nobody can hear the worker; it renews before the reaper looks."""
    async with control_plane(database) as port:
        hand = await deploy(hands, port)
        job = await jobs.add("steady", seconds=8)
        await jobs.until(job, Status.RUNNING)
    until_lapsed = "SELECT lease_until < penstock.now() FROM penstock.live WHERE job_id = $1"

    async def lapsed() -> bool:
        async with jobs.connection() as connection:
            return bool(await connection.fetchval(until_lapsed, job))

    await until(lapsed)
    async with control_plane(database, port):
        view = await jobs.over(job)
        assert (view.status, view.attempt_no) == (Status.SUCCEEDED, 1)
        hand.send(SIGTERM)
        assert await hand.exit_code() == 0


@pytest.mark.parametrize(
    ("kind", "payload", "code"), [("nap", {"seconds": 0}, 0), ("flaky", {"failures": 1}, 1)]
)
async def test_one_job_decides_the_exit_code(
    database: str, jobs: Jobs, hands: Hands, kind: str, payload: dict[str, object], code: int
) -> None:
    async with control_plane(database) as port:
        await jobs.add(kind, **payload)
        hand = await deploy(hands, port, "once=True, wait=10")
        assert await hand.exit_code() == code


async def test_one_job_that_does_not_come_is_no_failure(database: str, hands: Hands) -> None:
    async with control_plane(database) as port:
        hand = await deploy(hands, port, "once=True, wait=0.1")
        assert await hand.exit_code() == 0


async def test_a_job_that_runs_once_is_handed_back_on_sigterm(
    database: str, jobs: Jobs, hands: Hands
) -> None:
    async with control_plane(database) as port:
        job = await jobs.add("nap", seconds=60)
        hand = await deploy(hands, port, "once=True, wait=10", PENSTOCK_WORKER_GRACE_SECONDS="0.2")
        await jobs.until(job, Status.RUNNING)
        hand.send(SIGTERM)
        assert await hand.exit_code() == 1
        assert (await jobs.store.job(job)).status is Status.READY


async def test_the_log_of_a_handler_carries_its_job_and_its_trace(
    database: str, jobs: Jobs, hands: Hands
) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    [added] = await jobs.store.enqueue([JobSpec(kind="bad", trace=trace)])
    async with control_plane(database) as port:
        hand = await deploy(hands, port, "once=True, wait=10")
        assert await hand.exit_code() == 1
    [event] = hand.events("handler_failed")
    assert (event["job_id"], event["trace"], event["process"]) == (added.job_id, trace, "worker")
    assert "hunter2" not in hand.log.read_text()


async def test_a_wrong_token_ends_the_worker_with_a_sentence(database: str, hands: Hands) -> None:
    async with control_plane(database) as port:
        hand = await deploy(hands, port, PENSTOCK_SERVICE_TOKEN="another")
        assert await hand.exit_code() == 1
        assert hand.events("worker_failed")[0]["code"] in {
            "AUTHENTICATION_REQUIRED",
            "INVALID_TOKEN",
        }


async def test_a_port_in_use_ends_the_worker_with_a_sentence(hands: Hands) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        hand = await deploy(hands, 1, PENSTOCK_WORKER_PORT=str(port))
        assert await hand.exit_code() == 1
    [event] = hand.events("worker_failed")
    assert (
        event["message"]
        == f"The worker cannot serve its health on 127.0.0.1:{port}: Address already in use."
    )
