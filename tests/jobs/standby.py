"""A primary with a real standby, and traffic that goes on whatever happens to them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import asyncpg

from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.model import Ending, JobSpec, Succeeded, Verdict
from penstock.kit.errors import DatabaseUnavailable
from penstock.kit.migrate import find, migrate
from penstock.kit.postgres import Cluster, ClusterSettings, locate
from penstock.wiring.migrations import MIGRATION_PACKAGES
from tests.kit.conftest import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.jobs.store import PgJobStore

KINDS = Kinds([KindPolicy(name="work", lease=60, heartbeat=10, timeout=600, max_attempts=3)])
PATIENCE = 60.0
"""How long a test waits for the service to come back before it fails; how long it takes is a matter
of `bench`."""


def cluster(data_dir: Path) -> Cluster:
    server = {"fsync": "off", "shared_buffers": "64MB", "max_wal_senders": "4", "hot_standby": "on"}
    return Cluster(data_dir, locate(), settings=ClusterSettings(server=server))


async def execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def follow(standby: Cluster, primary: Cluster) -> None:
    """Copy the primary and start the copy as its standby."""
    places = standby.places
    account = {"user": places.account.uid, "group": places.account.gid} if os.geteuid() == 0 else {}
    command = [locate().bin_dir / "pg_basebackup", "--pgdata", places.data, "--write-recovery-conf"]
    command += ["--checkpoint", "fast", "--host", primary.places.sockets, "--username", "penstock"]
    environment = {"PGPASSFILE": str(primary.places.password)}
    await asyncio.to_thread(
        subprocess.run,
        command,
        check=True,
        capture_output=True,
        cwd="/",
        env=environment,
        **account,
    )
    await asyncio.to_thread(shutil.copy2, primary.places.password, standby.places.password)
    await standby.start()


def both(*clusters: Cluster) -> str:
    hosts = ",".join(str(c.places.sockets) for c in clusters)
    ports = ",".join(str(c.settings.port) for c in clusters)
    passfile = clusters[0].places.password
    return f"postgresql:///penstock?host={hosts}&port={ports}&user=penstock&passfile={passfile}"


@dataclass
class Traffic:
    """Producers and a worker that go on whatever happens, and remember what they were promised."""

    store: PgJobStore
    enqueued: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    async def produce(self) -> None:
        while True:
            with suppress(DatabaseUnavailable):
                self.enqueued += [
                    e.job_id for e in await self.store.enqueue([JobSpec(kind="work")] * 3)
                ]
            await asyncio.sleep(0.01)

    async def work(self) -> None:
        while True:
            with suppress(DatabaseUnavailable):
                claimed = await self.store.claim("w", ["default"], 5, wait=0.2)
                endings = [Ending(fence=c.fence, outcome=Succeeded()) for c in claimed]
                verdicts = await self.store.finish(endings)
                self.ended += [
                    c.job_id for c, v in zip(claimed, verdicts, strict=True) if v is Verdict.DONE
                ]
            await asyncio.sleep(0.01)

    async def goes_on(self) -> None:
        """Until both have got further than they are now; an error of theirs is raised."""
        jobs, ends = len(self.enqueued), len(self.ended)
        await until(lambda: len(self.enqueued) > jobs and len(self.ended) > ends, PATIENCE)


@asynccontextmanager
async def traffic(store: PgJobStore) -> AsyncIterator[Traffic]:
    running = Traffic(store)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(running.produce()), group.create_task(running.work())]
        yield running
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def primary_and_standby(folder: Path) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """With our schema; the standby is synchronous, so it has all that was acknowledged."""
    async with AsyncExitStack() as stack:
        primary, standby = cluster(folder / "a"), cluster(folder / "b")
        await stack.enter_async_context(primary)
        await migrate(primary.dsn(), find(MIGRATION_PACKAGES))
        stack.push_async_callback(standby.stop)
        await follow(standby, primary)
        await execute(primary.dsn(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
        await execute(primary.dsn(), "SELECT pg_reload_conf()")
        yield primary, standby
