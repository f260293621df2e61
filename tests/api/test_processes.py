"""Several control-plane processes on one port: real ones, killed and stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
import psutil
import pytest

from penstock.api.serving.processes import bind_all
from penstock.api.serving.server import bind
from penstock.api.serving.siblings import added
from penstock.kit.errors import Conflict, InvalidInput
from penstock.kit.vault import new_key
from penstock.wiring import settings as config
from tests.api.control_plane import OPERATOR, SERVICE
from tests.api.test_server import CODE, free_port
from tests.worker.conftest import until

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator
    from pathlib import Path

COUNT = 2
JOBS = 40
HEADERS = {"Authorization": f"Bearer {OPERATOR}"}


@asynccontextmanager
async def supervisor(dsn: str, port: int, home: Path, **more: str) -> AsyncIterator[Process]:
    environment = {
        "PATH": os.environ["PATH"],
        "PENSTOCK_HOME": str(home),
        "PENSTOCK_DATABASE_URL": dsn,
        "PENSTOCK_PORT": str(port),
        "PENSTOCK_SERVICE_TOKEN": SERVICE,
        "PENSTOCK_OPERATOR_TOKEN": OPERATOR,
        "PENSTOCK_SECRET_KEY": new_key(),
        "PENSTOCK_PROCESSES": str(COUNT),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CODE),
        env=environment | more,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ready(url: str) -> None:
    """One of them answers; they start side by side, and the machine may be busy."""

    async def answers() -> bool:
        try:
            return (await ask(url, "GET", "/ready")).is_success
        except httpx2.TransportError:
            return False

    await until(answers, within=120)


def members(process: Process) -> set[int]:
    return {member.pid for member in psutil.Process(process.pid).children()}


def lives(pid: int) -> bool:
    """One that ended counts as gone, whether anybody has asked how it ended or not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def ask(url: str, method: str, path: str, **more: object) -> httpx2.Response:
    """Over a connection of its own, which may be any process's."""
    async with httpx2.AsyncClient(base_url=url, headers=HEADERS, trust_env=False) as client:
        return await client.request(method, path, timeout=60, **more)


async def enqueue(url: str, number: int) -> None:
    """A request that a process takes down with it is asked again; its key makes it one job."""
    job = {"kind": "probe", "unique_key": f"job-{number}"}

    async def is_accepted() -> bool:
        try:
            return (await ask(url, "POST", "/api/jobs", json=job)).is_success
        except httpx2.TransportError:
            return False

    await until(is_accepted, within=60)


async def test_a_process_that_is_killed_loses_nothing_and_comes_back(
    database: str, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with supervisor(database, port, tmp_path) as process:
        await ready(url)
        before = members(process)
        assert len(before) == COUNT
        for number in range(JOBS // 2):
            await enqueue(url, number)
        os.kill(min(before), signal.SIGKILL)
        await asyncio.gather(*(enqueue(url, number) for number in range(JOBS // 2, JOBS)))

        async def is_back() -> bool:
            now = members(process)
            return len(now) == COUNT and now != before

        await until(is_back)
        listing = (await ask(url, "GET", "/api/jobs?limit=100&kind=probe")).json()
        assert listing["meta"]["total"] == JOBS


async def test_sigterm_ends_all_of_them_in_order(database: str, tmp_path: Path) -> None:
    port = free_port()
    async with supervisor(database, port, tmp_path) as process:
        await ready(f"http://127.0.0.1:{port}")
        children = members(process)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 40) == 0
        assert not any(lives(child) for child in children)


async def test_they_end_with_their_supervisor_however_it_goes(
    database: str, tmp_path: Path
) -> None:
    port = free_port()
    async with supervisor(database, port, tmp_path) as process:
        await ready(f"http://127.0.0.1:{port}")
        children = members(process)
        process.kill()
        await process.wait()

        async def are_gone() -> bool:
            return not any(lives(child) for child in children)

        await until(are_gone, within=40)


async def test_a_start_that_cannot_succeed_is_not_repeated(database: str, tmp_path: Path) -> None:
    wrong = {"PENSTOCK_SECRET_KEY": "short"}
    async with supervisor(database, free_port(), tmp_path, **wrong) as process:
        assert await asyncio.wait_for(process.wait(), 60) == 1


async def test_metrics_are_of_all_processes(database: str, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with supervisor(database, port, tmp_path) as process:
        await ready(url)
        one = max(psutil.Process(child).memory_info().rss for child in members(process))

        async def of_both() -> bool:
            text = (await ask(url, "GET", "/metrics")).text
            assert "penstock_database_up 1.0" in text
            name = "process_resident_memory_bytes "
            line = next(line for line in text.splitlines() if line.startswith(name))
            return float(line.removeprefix(name)) > 1.5 * one

        await until(of_both)


@pytest.mark.parametrize("count", [0, -1, 65, "many"])
def test_a_count_that_makes_no_sense_is_refused_by_name(count: object) -> None:
    with pytest.raises(InvalidInput, match="Setting processes: "):
        config.load(processes=count)


def test_each_process_has_a_socket_of_one_port_which_was_nobodys() -> None:
    listeners = bind_all("127.0.0.1", 0, 3)
    try:
        assert len({listener.getsockname() for listener in listeners}) == 1
        with pytest.raises(Conflict, match="Cannot listen on port"):
            bind_all("127.0.0.1", listeners[0].getsockname()[1], 2)
    finally:
        for listener in listeners:
            listener.close()
    with bind("127.0.0.1", 0) as other, pytest.raises(Conflict):
        bind_all("127.0.0.1", other.getsockname()[1], 2)


def test_counters_are_added_and_what_each_process_knows_is_not() -> None:
    own = b"""# TYPE done_total counter
done_total{kind="a"} 2.0
# TYPE took histogram
took_bucket{le="1.0"} 1.0
took_bucket{le="+Inf"} 2.0
took_count 2.0
took_sum 3.0
# TYPE depth gauge
depth 7.0
# TYPE process_open_fds gauge
process_open_fds 5.0
"""
    other = b"""# TYPE done_total counter
done_total{kind="a"} 3.0
done_total{kind="b"} 1.0
# TYPE took histogram
took_bucket{le="1.0"} 4.0
took_bucket{le="+Inf"} 4.0
took_count 4.0
took_sum 2.0
# TYPE depth gauge
depth 6.0
# TYPE process_open_fds gauge
process_open_fds 6.0
"""
    lines = set(added(own, [other]).decode().splitlines())
    assert {
        'done_total{kind="a"} 5.0',
        'done_total{kind="b"} 1.0',
        'took_bucket{le="1.0"} 5.0',
        'took_bucket{le="+Inf"} 6.0',
        "took_count 6.0",
        "took_sum 5.0",
        "depth 7.0",
        "process_open_fds 11.0",
    } <= lines
