"""kill -9, in the middle of things: what was acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.kit.postgres import Binaries, Cluster
from tests.kit.conftest import Supervisor, execute, root_only, runs, until, value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

WRITERS = 4
TURNS = 2


@pytest.mark.parametrize("all_of_them", [True, False], ids=["everything", "the-supervisor-alone"])
async def test_no_acknowledged_row_is_lost(
    prepared: Callable[[Binaries], Awaitable[Path]],
    binaries: Binaries,
    supervise: Callable[..., Awaitable[Supervisor]],
    all_of_them: bool,
) -> None:
    data_dir = await prepared(binaries)
    async with Cluster(data_dir, binaries) as cluster:
        await execute(
            cluster.dsn(), "DROP TABLE IF EXISTS note; CREATE TABLE note (id int PRIMARY KEY)"
        )
    acknowledged: set[int] = set()
    for turn in range(TURNS):
        running = await supervise(data_dir)
        before = len(acknowledged)
        writers = [
            asyncio.create_task(_write(running.dsn, acknowledged, turn, n)) for n in range(WRITERS)
        ]
        await until(lambda: len(acknowledged) > before + 150)  # noqa: B023 - awaited within the turn
        family = await running.kill(all_of_them=all_of_them)
        await asyncio.gather(*writers)
        await until(lambda: not any(runs(member) for member in family))  # noqa: B023
    async with cluster:
        ids = await _ids(cluster.dsn())
    assert acknowledged <= ids
    assert len(ids - acknowledged) <= TURNS * WRITERS


async def test_a_start_right_after_the_kill_waits_for_the_dying_server(
    data_dir: Path, newest: Binaries, supervise: Callable[..., Awaitable[Supervisor]]
) -> None:
    for _ in range(3):
        running = await supervise(data_dir)
        await running.kill(all_of_them=False)
    async with Cluster(data_dir, newest) as cluster:
        assert await value(cluster.dsn(), "SELECT 1") == 1


async def test_an_initdb_that_was_killed_is_done_again(folder: Path, binaries: Binaries) -> None:
    for sign in ("data.new", "data.new/base", "data.new/global/pg_control"):
        await _kill_when(folder / "pg" / sign, folder / "pg", binaries)
        assert not (folder / "pg" / "data").exists()
    async with Cluster(folder / "pg", binaries) as cluster:
        assert await value(cluster.dsn(), "SELECT 1") == 1


@root_only
@pytest.mark.parametrize("size", ["4k", "16m", "40m"])
async def test_a_full_disk_is_said_in_a_sentence(folder: Path, size: str) -> None:
    script = (
        f'mount -t tmpfs -o size={size},mode=755 none "$1" && exec "$2" -m penstock.kit.postgres'
        f' run "$1/pg"'
    )
    output = await _unshared(script, folder)
    assert f"The disk that holds {folder}/pg" in output
    assert "is full." in output
    assert "Traceback" not in output


GONE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


async def _write(dsn: str, acknowledged: set[int], turn: int, writer: int) -> None:
    """One row a commit until the server is gone, which it may be before this has signed in."""
    try:
        connection = await asyncpg.connect(dsn)
    except GONE:
        return
    try:
        for n in range(100_000):
            row = (turn * WRITERS + writer) * 100_000 + n
            await connection.execute("INSERT INTO note VALUES ($1)", row)
            acknowledged.add(row)
    except GONE:
        return
    finally:
        connection.terminate()


async def _ids(dsn: str) -> set[int]:
    connection = await asyncpg.connect(dsn)
    try:
        return {row["id"] for row in await connection.fetch("SELECT id FROM note")}
    finally:
        await connection.close()


async def _kill_when(sign: Path, data_dir: Path, binaries: Binaries) -> None:
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "penstock.kit.postgres", "run", data_dir, "--major", binaries.major
    )
    await until(sign.exists)
    supervisor.kill()
    await supervisor.wait()


async def _unshared(script: str, folder: Path) -> str:
    """Run in a mount namespace of its own, which takes its mounts with it."""
    child = await asyncio.create_subprocess_exec(
        "unshare",
        "-m",
        "sh",
        "-c",
        script,
        "sh",
        folder,
        sys.executable,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, output = await asyncio.wait_for(child.communicate(), 30)
    finally:
        with suppress(ProcessLookupError):
            child.terminate()
    return output.decode()
