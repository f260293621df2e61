"""chancy: its executor for asyncio, 100 jobs at a time, eager polling, the plugins that a lone
worker needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chancy import Chancy, Queue, Worker, job
from chancy.plugins.leadership import Leadership
from chancy.plugins.recovery import Recovery

from bench.kernel.section import PAYLOAD, Drain, Section, batches, produce, tagged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOBS = "SELECT count(*) FROM chancy_jobs"
LEFT = "SELECT count(*) FROM chancy_jobs WHERE state <> 'succeeded'"
_backlogs: list[Drain] = []


@job(queue="bench")
async def noop(**_: object) -> None:
    _backlogs[0].job()


def _app(dsn: str, size: int) -> Chancy:
    return Chancy(
        dsn,
        plugins=[Leadership(), Recovery()],
        no_default_plugins=True,
        min_connection_pool_size=size,
        max_connection_pool_size=size,
    )


async def setup(dsn: str) -> None:
    async with _app(dsn, 2) as chancy:
        await chancy.migrate()


async def bulk(section: Section, dsn: str, jobs: int, batch: int) -> None:
    async with _app(dsn, 2) as chancy:

        async def enqueue(count: int) -> None:
            async for _ in chancy.push_many(
                [noop.job.with_kwargs(**PAYLOAD)] * count, batch_size=batch
            ):
                pass

        await batches(section, enqueue, jobs, batch)


async def singles(section: Section, dsn: str, jobs: int, producers: int) -> None:
    async with _app(dsn, producers) as chancy:

        def of(producer: int) -> Callable[[int], Awaitable[object]]:
            return lambda number: chancy.push(noop.job.with_kwargs(**tagged(producer, number)))

        await produce(section, [of(producer) for producer in range(producers)], jobs)


async def drain(section: Section, dsn: str, jobs: int, batch: int) -> None:
    backlog = Drain(section, dsn, jobs, LEFT)
    _backlogs.append(backlog)
    async with _app(dsn, 10) as chancy:
        queue = Queue(
            name="bench",
            concurrency=batch,
            executor=Chancy.Executor.Async,
            polling_interval=1,
            eager_polling=True,
        )
        await chancy.declare(queue, upsert=True)
        async with Worker(chancy, register_signal_handlers=False):
            await backlog.done()
