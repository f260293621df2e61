"""Absurd: its SDK for asyncio on the schema that its command line carries.

It has no call for many tasks: they go one by one in one transaction. A worker has one connection,
on which its ends wait for each other, so several of them share the queue.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import psycopg
from absurd_sdk import AsyncAbsurd
from absurdctl import BUNDLED_SCHEMA_SQL

from bench.kernel.section import PAYLOAD, Drain, Section, batches, produce, tagged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOBS = "SELECT count(*) FROM absurd.t_default"
LEFT = "SELECT count(*) FROM absurd.t_default WHERE state <> 'completed'"
WORKERS = 8


async def setup(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(BUNDLED_SCHEMA_SQL)
    await connection.close()
    app = AsyncAbsurd(dsn)
    await app.create_queue("default")
    await app.close()


async def bulk(section: Section, dsn: str, jobs: int, batch: int) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        app = AsyncAbsurd(connection)

        async def enqueue(count: int) -> None:
            async with connection.transaction():
                for _ in range(count):
                    await app.spawn("noop", PAYLOAD, queue="default")

        await batches(section, enqueue, jobs, batch)


async def singles(section: Section, dsn: str, jobs: int, producers: int) -> None:
    apps = [AsyncAbsurd(dsn) for _ in range(producers)]

    def of(app: AsyncAbsurd, producer: int) -> Callable[[int], Awaitable[object]]:
        return lambda number: app.spawn("noop", tagged(producer, number), queue="default")

    await produce(section, [of(app, producer) for producer, app in enumerate(apps)], jobs)
    for app in apps:
        await app.close()


async def drain(section: Section, dsn: str, jobs: int, batch: int) -> None:
    backlog = Drain(section, dsn, jobs, LEFT)
    apps = [AsyncAbsurd(dsn) for _ in range(WORKERS)]

    async def noop(_params: object, _ctx: object) -> None:
        backlog.job()

    async with asyncio.TaskGroup() as group:
        for number, app in enumerate(apps):
            app.register_task("noop")(noop)
            work = app.start_worker(
                f"bench-{number}", concurrency=batch // WORKERS, poll_interval=0.01
            )
            group.create_task(work)
        await backlog.done()
        for app in apps:
            app.stop_worker()
    for app in apps:
        await app.close()
