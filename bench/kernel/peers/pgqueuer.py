"""PgQueuer: asyncpg, batches of 100, its autovacuum settings."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg
from pgqueuer.db import AsyncpgDriver
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench.kernel.section import PAYLOAD, Drain, Section, batches, produce, running, tagged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOBS = "SELECT count(*) FROM pgqueuer"
LEFT = JOBS
TEXT = json.dumps(PAYLOAD).encode()


async def setup(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.optimize_autovacuum()
    await connection.close()


async def bulk(section: Section, dsn: str, jobs: int, batch: int) -> None:
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))

    async def enqueue(count: int) -> None:
        await queries.enqueue(["noop"] * count, [TEXT] * count, [0] * count)

    await batches(section, enqueue, jobs, batch)
    await connection.close()


async def singles(section: Section, dsn: str, jobs: int, producers: int) -> None:
    connections = [await asyncpg.connect(dsn) for _ in range(producers)]
    enqueues = [_enqueue(connection, number) for number, connection in enumerate(connections)]
    await produce(section, enqueues, jobs)
    for connection in connections:
        await connection.close()


def _enqueue(
    connection: asyncpg.Connection[asyncpg.Record], producer: int
) -> Callable[[int], Awaitable[object]]:
    queries = Queries(AsyncpgDriver(connection))

    async def enqueue(number: int) -> None:
        await queries.enqueue("noop", json.dumps(tagged(producer, number)).encode(), 0)

    return enqueue


async def drain(section: Section, dsn: str, jobs: int, batch: int) -> None:
    connection = await asyncpg.connect(dsn)
    manager = QueueManager(Queries(AsyncpgDriver(connection)))
    backlog = Drain(section, dsn, jobs, LEFT)

    @manager.entrypoint("noop")
    async def noop(_job: object) -> None:
        backlog.job()

    async with running(manager.run(dequeue_timeout=timedelta(seconds=1), batch_size=batch)):
        await backlog.done()
        manager.shutdown.set()
    await connection.close()
