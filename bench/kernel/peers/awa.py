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
LEFT = "SELECT {jobs} - coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches"
"""The same count by its view of all jobs takes a quarter of a second, which would be awa's."""
QUEUE = "bench"
WORKERS = 512
CLAIM = {"claim_batch_size": 512, "claimers": 2}


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
        backlog = Drain(section, dsn, jobs, LEFT.format(jobs=jobs))

        @client.task(Noop, queue=QUEUE)
        async def noop(_job: object) -> None:
            backlog.job()

        await client.start([{"name": QUEUE, "max_workers": WORKERS, **CLAIM}])
        await backlog.done()
        await client.shutdown()
