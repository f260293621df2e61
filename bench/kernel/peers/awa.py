"""awa: a Rust core under Python; COPY for many jobs, large claims and many workers, as its notes on
throughput say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import awa

from bench.kernel.section import PAD, Drain, Section, batches, produce, trace, user

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOBS = "SELECT count(*) FROM awa.jobs"
LEFT = "SELECT count(*) FROM awa.jobs WHERE state <> 'completed'"
QUEUE = "bench"
WORKERS = 256
CLAIM = 512


@dataclass
class Noop:
    n: int
    pad: str
    user: str = ""
    trace: str = ""


async def setup(dsn: str) -> None:
    async with awa.AsyncClient(dsn) as client:
        await client.migrate()
        await client.install_queue_storage()


async def bulk(section: Section, dsn: str, jobs: int, batch: int) -> None:
    async with awa.AsyncClient(dsn, 4) as client:

        async def enqueue(count: int) -> None:
            await client.enqueue_many_copy([Noop(1, PAD)] * count, queue=QUEUE)

        await batches(section, enqueue, jobs, batch)


async def singles(section: Section, dsn: str, jobs: int, producers: int) -> None:
    async with awa.AsyncClient(dsn, producers + 2) as client:

        def of(producer: int) -> Callable[[int], Awaitable[object]]:
            return lambda number: client.insert(
                Noop(1, PAD, user(producer), trace(producer, number)), queue=QUEUE
            )

        await produce(section, [of(producer) for producer in range(producers)], jobs)


async def drain(section: Section, dsn: str, jobs: int, _batch: int) -> None:
    async with awa.AsyncClient(dsn, 20) as client:
        backlog = Drain(section, dsn, jobs, LEFT)

        @client.task(Noop, queue=QUEUE)
        async def noop(_job: object) -> None:
            backlog.job()

        await client.start([{"name": QUEUE, "max_workers": WORKERS, "claim_batch_size": CLAIM}])
        await backlog.done()
        await client.shutdown()
