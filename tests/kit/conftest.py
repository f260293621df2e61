"""Clusters of a test's own, and supervisors in processes that can be killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import asyncpg
import psutil
import pytest

from penstock.kit.postgres import Binaries, Cluster, locate
from tests.servers import postgres

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

MAJORS = (postgres.OLDEST, "18")
_numbers = count(1)

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture(scope="session", params=MAJORS)
def binaries(request: pytest.FixtureRequest) -> Binaries:
    return postgres.binaries(request.param)


@pytest.fixture(scope="session")
def oldest() -> Binaries:
    return postgres.binaries(MAJORS[0])


@pytest.fixture(scope="session")
def newest() -> Binaries:
    return locate()


@pytest.fixture(scope="session")
async def prepared(short_dir: Path) -> Callable[[Binaries], Awaitable[Path]]:
    """Gives the folder of a stopped cluster, made once a major: most tests need a server, not a new
    one."""
    templates: dict[str, Path] = {}

    async def prepare(binaries: Binaries) -> Path:
        if binaries.major not in templates:
            async with Cluster(short_dir / f"prepared-{binaries.major}", binaries) as cluster:
                templates[binaries.major] = cluster.places.folder
        return templates[binaries.major]

    return prepare


@pytest.fixture
async def data_dir(prepared: Callable[[Binaries], Awaitable[Path]], newest: Binaries) -> Path:
    return await prepared(newest)


@pytest.fixture
async def cluster(data_dir: Path, newest: Binaries) -> AsyncIterator[Cluster]:
    """A server in earnest, whose disk does not lie; it may be stopped, killed and broken."""
    async with Cluster(data_dir, newest) as started:
        yield started


@pytest.fixture
def folder(short_dir: Path) -> Iterator[Path]:
    """An empty folder that every account can reach."""
    path = short_dir / f"c{next(_numbers)}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


@dataclass(frozen=True, slots=True)
class Supervisor:
    process: Process
    dsn: str

    def family(self) -> list[psutil.Process]:
        """The supervisor and every postgres process under it."""
        me = psutil.Process(self.process.pid)
        return [me, *me.children(recursive=True)]

    async def kill(self, *, all_of_them: bool) -> list[psutil.Process]:
        """SIGKILL; returns everybody who was alive before."""
        family = self.family()
        for member in family if all_of_them else family[:1]:
            with suppress(psutil.NoSuchProcess):
                member.send_signal(signal.SIGKILL)
        await self.process.wait()
        return family


@pytest.fixture
async def supervise() -> AsyncIterator[Callable[..., Awaitable[Supervisor]]]:
    """Starts `python -m penstock.kit.postgres run …` and waits for its DSN."""
    started: list[Process] = []

    async def start(*arguments: str | Path) -> Supervisor:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "penstock.kit.postgres",
            "run",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        return Supervisor(process, (await process.stdout.readline()).decode().strip())

    yield start
    for process in started:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def value(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.005)
