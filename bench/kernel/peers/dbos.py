"""DBOS: workflows of nothing in a database-backed queue, looked at every 10 ms.

Its calls are SQLAlchemy in threads: each producer has one. Many at a time go in one transaction of
the caller's.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig

from bench.kernel.section import PAYLOAD, Drain, Section, batches, produce, tagged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dbos import EnqueueOptions

JOBS = "SELECT count(*) FROM dbos.workflow_status"
LEFT = "SELECT count(*) FROM dbos.workflow_status WHERE status <> 'SUCCESS'"
QUEUE = "bench"
OPTIONS: EnqueueOptions = {"queue_name": QUEUE, "workflow_name": "noop", "app_version": "1"}
_backlogs: list[Drain] = []


@DBOS.workflow(name="noop")
async def noop(_payload: object) -> None:
    _backlogs[0].job()


def _launch(dsn: str) -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": dsn,
        "application_version": "1",
        "sys_db_pool_size": 20,
        "log_level": "CRITICAL",
    }
    DBOS(config=config)
    DBOS.launch()


async def setup(dsn: str) -> None:
    await asyncio.to_thread(_launch, dsn)
    await asyncio.to_thread(DBOS.register_queue, QUEUE, polling_interval_sec=0.01)
    await asyncio.to_thread(DBOS.destroy)


async def bulk(section: Section, dsn: str, jobs: int, batch: int) -> None:
    client = DBOSClient(system_database_url=dsn)
    engine = sa.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))

    def enqueue(count: int) -> None:
        with engine.begin() as connection:
            for _ in range(count):
                client.enqueue_in_transaction(connection, OPTIONS, PAYLOAD)

    await batches(section, lambda count: asyncio.to_thread(enqueue, count), jobs, batch)
    engine.dispose()
    client.destroy()


async def singles(section: Section, dsn: str, jobs: int, producers: int) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(producers))
    client = DBOSClient(system_database_url=dsn, system_database_pool_size=producers)

    def of(producer: int) -> Callable[[int], Awaitable[object]]:
        return lambda number: client.enqueue_async(OPTIONS, tagged(producer, number))

    await produce(section, [of(producer) for producer in range(producers)], jobs)
    client.destroy()


async def drain(section: Section, dsn: str, jobs: int, batch: int) -> None:
    backlog = Drain(section, dsn, jobs, LEFT)
    _backlogs.append(backlog)
    await asyncio.to_thread(_launch, dsn)
    options = {
        "worker_concurrency": batch,
        "polling_interval_sec": 0.01,
        "on_conflict": "always_update",
    }
    await asyncio.to_thread(DBOS.register_queue, QUEUE, **options)
    await backlog.done()
    await asyncio.to_thread(DBOS.destroy)
