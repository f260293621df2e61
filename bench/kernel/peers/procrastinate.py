"""procrastinate: psycopg with a pool, 20 jobs at a time, jobs deleted when they succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import procrastinate

from bench.kernel.section import PAYLOAD, Drain, Section, batches, produce, running, tagged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOBS = "SELECT count(*) FROM procrastinate_jobs"
LEFT = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
CONCURRENCY = 20


async def setup(dsn: str) -> None:
    async with _app(dsn).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def bulk(section: Section, dsn: str, jobs: int, batch: int) -> None:
    async with _app(dsn).open_async() as app:

        async def enqueue(count: int) -> None:
            await app.configure_task("noop").batch_defer_async(*[PAYLOAD] * count)

        await batches(section, enqueue, jobs, batch)


async def singles(section: Section, dsn: str, jobs: int, producers: int) -> None:
    async with _app(dsn, size=producers).open_async() as app:

        def of(producer: int) -> Callable[[int], Awaitable[object]]:
            return lambda number: app.configure_task("noop").defer_async(**tagged(producer, number))

        await produce(section, [of(producer) for producer in range(producers)], jobs)


async def drain(section: Section, dsn: str, jobs: int, _batch: int) -> None:
    application = _app(dsn, size=CONCURRENCY + 4)
    backlog = Drain(section, dsn, jobs, LEFT)

    @application.task(name="noop")
    async def noop(**_: object) -> None:
        backlog.job()

    async with application.open_async() as app:
        worker = app.run_worker_async(
            wait=False,
            concurrency=CONCURRENCY,
            install_signal_handlers=False,
            delete_jobs="successful",
        )
        async with running(worker):
            await backlog.done()


def _app(dsn: str, size: int = 4) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(conninfo=dsn, min_size=size, max_size=size)
    return procrastinate.App(connector=connector)
