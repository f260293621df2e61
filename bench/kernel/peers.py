"""PgQueuer and procrastinate doing the same work, each the way its own documentation says is fast."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg

PAYLOAD = b'{"n": 1, "pad": "0123456789012345678901234567890123456789"}'


async def pgqueuer_setup(dsn: str) -> None:
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.optimize_autovacuum()
    await connection.close()


async def pgqueuer_bulk(dsn: str, jobs: int, batch: int = 1000) -> None:
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    for _ in range(0, jobs, batch):
        await queries.enqueue(["noop"] * batch, [PAYLOAD] * batch, [0] * batch)
    await connection.close()


async def pgqueuer_singles(dsn: str, jobs: int, producers: int) -> None:
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    async def produce() -> None:
        connection = await asyncpg.connect(dsn)
        queries = Queries(AsyncpgDriver(connection))
        for _ in range(jobs // producers):
            await queries.enqueue("noop", PAYLOAD, 0)
        await connection.close()

    await asyncio.gather(*(produce() for _ in range(producers)))


async def pgqueuer_drain(dsn: str, jobs: int, batch: int) -> None:
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.qm import QueueManager
    from pgqueuer.queries import Queries

    connection = await asyncpg.connect(dsn)
    manager = QueueManager(Queries(AsyncpgDriver(connection)))
    done = 0

    @manager.entrypoint("noop")
    async def noop(_job: object) -> None:
        nonlocal done
        done += 1
        if done >= jobs:
            manager.shutdown.set()

    await manager.run(dequeue_timeout=timedelta(seconds=1), batch_size=batch)
    await connection.close()


async def procrastinate_setup(dsn: str) -> None:
    async with _app(dsn).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def procrastinate_bulk(dsn: str, jobs: int, batch: int = 1000) -> None:
    async with _app(dsn).open_async() as app:
        for _ in range(0, jobs, batch):
            size = min(batch, jobs)
            await app.tasks["noop"].batch_defer_async(*({"n": i} for i in range(size)))


async def procrastinate_singles(dsn: str, jobs: int, producers: int) -> None:
    async with _app(dsn, size=producers).open_async() as app:

        async def produce() -> None:
            for i in range(jobs // producers):
                await app.tasks["noop"].defer_async(n=i)

        await asyncio.gather(*(produce() for _ in range(producers)))


async def procrastinate_drain(dsn: str, jobs: int, batch: int) -> None:
    del jobs
    async with _app(dsn, size=batch).open_async() as app:
        await app.run_worker_async(wait=False, concurrency=20, install_signal_handlers=False)


def _app(dsn: str, size: int = 4):  # type: ignore[no-untyped-def]
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn, min_size=1, max_size=size))

    @app.task(name="noop")
    async def noop(n: int) -> None:
        del n

    return app
