from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import asyncpg
import psutil
import pytest

from penstock.kit.postgres import Binaries, Cluster, ClusterHeld, Shutdown
from tests.kit.conftest import Supervisor, execute, runs, until, value

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from penstock.kit.postgres.account import Account


async def test_a_second_start_says_who_holds_the_data(
    data_dir: Path, newest: Binaries, supervise: Callable[..., Awaitable[Supervisor]]
) -> None:
    holder = await supervise(data_dir)
    with pytest.raises(ClusterHeld) as caught:
        await Cluster(data_dir, newest).start()
    message = caught.value.message
    assert f"held by process {holder.process.pid} since 20" in message
    assert "-m penstock.kit.postgres run" in message
    assert caught.value.hint is not None
    assert f"kill {holder.process.pid}" in caught.value.hint
    assert await value(holder.dsn, "SELECT 1") == 1


async def test_two_first_starts_at_once_make_one_server(folder: Path, newest: Binaries) -> None:
    pair = [Cluster(folder / "pg", newest) for _ in range(2)]
    outcomes = await asyncio.gather(*(one.start() for one in pair), return_exceptions=True)
    try:
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ClusterHeld", "NoneType"]
        assert await value(pair[0].dsn(), "SELECT 1") == 1
    finally:
        for one in pair:
            await one.stop()


async def test_a_server_that_somebody_started_by_hand_is_named(
    cluster: Cluster, newest: Binaries
) -> None:
    await cluster.stop()
    account = cluster.places.account
    command = (
        newest.postgres,
        "-D",
        cluster.places.data,
        "-k",
        cluster.places.sockets,
        "-c",
        "listen_addresses=",
    )
    async with _spawned(account, *command) as by_hand:
        await until(lambda: _is_ready(cluster))
        with pytest.raises(ClusterHeld, match=f"held by process {by_hand.pid} .*postgres -D"):
            await cluster.start()
    await cluster.start()


async def test_a_zombie_in_the_pid_file_is_seen_through(
    cluster: Cluster, zombie: Callable[[Account], int]
) -> None:
    await _restart_with_pid(cluster, str(zombie(cluster.places.account)))


async def test_a_recycled_pid_in_the_pid_file_is_seen_through(cluster: Cluster) -> None:
    async with _spawned(cluster.places.account, "sleep", "60") as stranger:
        await _restart_with_pid(cluster, str(stranger.pid))
        assert stranger.returncode is None


async def test_a_server_that_is_still_dying_is_waited_for(cluster: Cluster) -> None:
    """It has let go of the lock and not of its pid: a loaded machine takes its time over that."""
    account, data = cluster.places.account, cluster.places.data
    async with _spawned(account, "sleep", "3", cwd=data) as dying:
        await _restart_with_pid(cluster, str(dying.pid))
        assert await dying.wait() == 0


@pytest.mark.parametrize("content", ["", "not a pid"])
async def test_a_torn_pid_file_is_seen_through(cluster: Cluster, content: str) -> None:
    await _restart_with_pid(cluster, content)


async def test_a_busy_backend_without_its_postmaster_does_not_hold_up_the_next_start(
    cluster: Cluster,
) -> None:
    connection = await asyncpg.connect(cluster.dsn())
    pid = await connection.fetchval("SELECT pg_backend_pid()")
    busy = asyncio.create_task(connection.execute("DO $$ BEGIN LOOP END LOOP; END $$"))
    backend = psutil.Process(pid)
    await until(lambda: backend.cpu_times().user > 0.02)
    assert cluster.pid is not None
    psutil.Process(cluster.pid).kill()
    await cluster.wait()
    await asyncio.wait_for(cluster.restart(), 10)
    with suppress(asyncpg.PostgresError, OSError):
        await busy
    assert not runs(backend)


async def _restart_with_pid(cluster: Cluster, first_line: str) -> None:
    """Stop hard, put the line where a dead server's pid stands, and start again."""
    await execute(cluster.dsn(), "CREATE TABLE witness (body int); INSERT INTO witness VALUES (1)")
    pid_file = cluster.places.data / "postmaster.pid"
    left = pid_file.read_text().split("\n", 1)[1]
    await cluster.stop(Shutdown.KILL)
    pid_file.write_text(f"{first_line}\n{left}" if first_line else "")
    await cluster.start()
    assert await value(cluster.dsn(), "SELECT body FROM witness") == 1
    await execute(cluster.dsn(), "DROP TABLE witness")


@pytest.fixture
def zombie() -> Iterator[Callable[[Account], int]]:
    """Makes a process that is dead and not reaped, under the server's own account."""
    children: list[subprocess.Popen[bytes]] = []

    def make(account: Account) -> int:
        process = subprocess.Popen(["true"], user=_user(account))
        children.append(process)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return process.pid

    yield make
    for process in children:
        process.wait()


@asynccontextmanager
async def _spawned(
    account: Account, *command: str | Path, cwd: Path | None = None
) -> AsyncIterator[Process]:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, user=_user(account), cwd=cwd, stdout=quiet, stderr=quiet
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def _user(account: Account) -> int | None:
    return account.uid if os.geteuid() == 0 else None


def _is_ready(cluster: Cluster) -> bool:
    status = cluster.places.data / "postmaster.pid"
    return status.exists() and "ready" in status.read_text()
