"""The control plane as a process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg
import httpx2
import pytest
from pydantic import SecretStr

from penstock.api.serving.server import bind
from penstock.jobs.http_store import HttpJobStore
from penstock.jobs.model import GroupSpec, JobSpec, Status
from penstock.kit.errors import Conflict, InvalidInput
from penstock.kit.vault import new_key
from penstock.wiring import control_plane, job_kinds
from penstock.wiring.settings import Settings
from penstock.worker.probe import PROBE
from tests.api.control_plane import OPERATOR, SERVICE
from tests.jobs.conformance import Clock

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.jobs.gates import Fired
    from penstock.kit.db import Tx
    from penstock.kit.postgres import Cluster

CODE = (
    "import sys; from penstock.wiring import control_plane, settings;"
    " sys.exit(control_plane.serve(settings.load()))"
)


@asynccontextmanager
async def process(dsn: str, port: int, home: Path) -> AsyncIterator[Process]:
    environment = {
        "PATH": os.environ["PATH"],
        "PENSTOCK_HOME": str(home),
        "PENSTOCK_DATABASE_URL": dsn,
        "PENSTOCK_PORT": str(port),
        "PENSTOCK_SERVICE_TOKEN": SERVICE,
        "PENSTOCK_OPERATOR_TOKEN": OPERATOR,
        "PENSTOCK_FAILED_LOGINS_PER_MINUTE": "0",  # wrong credentials must be 401, not 429
        "PENSTOCK_SECRET_KEY": new_key(),
    }
    with output_file(home).open("wb") as output:
        started = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            CODE,
            env=environment,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


def output_file(home: Path) -> Path:
    """A file, because a pipe that nobody reads blocks the server once it is full."""
    return home / "output.log"


async def ready(url: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client, asyncio.timeout(30):
        while True:
            try:
                if (await client.get(f"{url}/ready")).is_success:
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.05)


def free_port() -> int:
    with bind("127.0.0.1", 0) as listener:
        port: int = listener.getsockname()[1]
        return port


async def test_on_sigterm_long_polls_are_answered_and_the_process_ends_in_order(
    database: str, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with process(database, port, tmp_path) as server, HttpJobStore(url, SERVICE) as store:
        await ready(url)
        polls = [
            asyncio.create_task(store.claim(f"w{n}", ["default"], 1, wait=25)) for n in range(5)
        ]
        assert not (await asyncio.wait(polls, timeout=0.3))[0]
        server.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            assert await asyncio.gather(*polls) == [[]] * 5
            assert await server.wait() == 0
        await server.wait()
        output = output_file(tmp_path).read_bytes()
        assert b"control_plane_stopping" in output
        assert b"Traceback" not in output
        assert SERVICE.encode() not in output


async def test_a_database_without_our_schema_is_refused_in_a_sentence(
    pg: Cluster, tmp_path: Path
) -> None:
    async with process(pg.dsn("postgres"), free_port(), tmp_path) as server:
        await asyncio.wait_for(server.wait(), 30)
        output = output_file(tmp_path).read_bytes()
        assert server.returncode
        assert b"penstock migrate" in output or b"lacks" in output


async def test_a_process_that_starts_without_its_database_waits_for_it(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    dsn = f"postgresql:///nothing?host={tmp_path}&port=5999&user=nobody"
    async with (
        process(dsn, port, tmp_path) as server,
        httpx2.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        async with asyncio.timeout(30):
            while True:
                try:
                    answer = await client.get("/ready")
                    break
                except httpx2.TransportError:
                    await asyncio.sleep(0.05)
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "DATABASE_UNAVAILABLE"
        server.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.wait(), 15) == 0


def test_a_port_in_use_is_named() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=f"port {port} of 127.0.0.1") as refused:
            bind("127.0.0.1", port)
        assert "PENSTOCK_PORT" in str(refused.value.hint)


async def test_a_control_plane_runs_its_loops(database: str) -> None:
    settings = Settings(operator_token=SecretStr(OPERATOR), reap_seconds=0.05)
    connection = await asyncpg.connect(database)
    try:
        async with (
            control_plane.build_control_plane(settings, database) as services,
            asyncio.timeout(20),
        ):
            [added] = await services.store.enqueue([JobSpec(kind="probe")])
            assert await services.store.claim("w1", ["default"], 1)
            await Clock(connection).advance(11)
            while (await services.store.job(added.job_id)).status is not Status.READY:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            ran = services.registry.get_sample_value(
                "background_job_execution_total", {"job_name": "reaper", "status": "success"}
            )
            assert ran
            assert services.registry.get_sample_value("process_cpu_seconds_total")
    finally:
        await connection.close()


async def test_a_handler_of_the_wiring_runs_when_its_gate_opens(database: str) -> None:
    fired: list[str] = []

    async def opened(_tx: Tx, gate: Fired) -> None:
        fired.append(gate.name)

    settings = Settings()
    async with control_plane.build_control_plane(
        settings, database, gates={"opened": opened}
    ) as services:
        await services.store.open_group(GroupSpec(name="empty", gate="opened"), [])
    assert fired == ["empty"]


def test_the_kinds_are_those_of_the_plan() -> None:
    table = {
        k.name: (k.queue, k.lease, k.heartbeat, k.max_attempts, k.on_sigterm)
        for k in job_kinds.default_kinds()
    }
    plan = {
        "export": ("export", 600, 30, 3, "release"),
        "stage_plan": ("stage", 120, 30, 3, "release"),
        "stage_chunk": ("stage", 90, 30, 3, "release"),
        "match": ("match", 90, 30, 3, "release"),
        "maintenance": ("maintenance", 90, 30, 3, "fail"),
        "probe": ("default", PROBE.policy.lease, PROBE.policy.heartbeat, 5, "release"),
    }
    assert table | plan == table
    too_long = {k.name for k in job_kinds.default_kinds() if k.lease > 4 * k.heartbeat}
    assert too_long == {"export"}, "a killed worker blocks what it holds for the whole lease"


def test_a_lease_can_be_set_and_a_wrong_one_is_refused() -> None:
    assert job_kinds.default_kinds({"maintenance": 1800})["maintenance"].lease == 1800
    with pytest.raises(InvalidInput, match="no job kind 'maintenence'"):
        job_kinds.default_kinds({"maintenence": 1800})
    with pytest.raises(InvalidInput, match="shorter than the lease"):
        job_kinds.default_kinds({"maintenance": 20})


async def test_the_lease_that_is_set_is_the_one_that_jobs_get(database: str) -> None:
    settings = Settings(lease_seconds={"probe": 1800})
    async with control_plane.build_control_plane(settings, database) as services:
        await services.store.enqueue([JobSpec(kind="probe")])
        [claimed] = await services.store.claim("w1", ["default"], 1)
    assert claimed.lease_seconds == 1800
