"""oban, the Python one: 100 jobs at a time, ends acknowledged in batches, as it does by itself.

It needs Python 3.12: where the project's environment is older, it runs in one of its own
(`interpreter.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oban import Oban, worker
from oban.schema import install

from bench.kernel.section import PAYLOAD, Drain, Section, batches, produce, tagged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOBS = "SELECT count(*) FROM oban_jobs"
LEFT = "SELECT count(*) FROM oban_jobs WHERE state <> 'completed'"
_backlogs: list[Drain] = []


@worker(queue="default")
class Noop:
    async def process(self, _job: object) -> None:
        _backlogs[0].job()


async def setup(dsn: str) -> None:
    pool = await Oban.create_pool(dsn)
    await install(pool)
    await pool.close()


async def bulk(section: Section, dsn: str, jobs: int, batch: int) -> None:
    pool = await Oban.create_pool(dsn, min_size=2, max_size=4)
    async with Oban(pool=pool) as oban:

        async def enqueue(count: int) -> None:
            await oban.enqueue_many([Noop.new(PAYLOAD) for _ in range(count)])

        await batches(section, enqueue, jobs, batch)
    await pool.close()


async def singles(section: Section, dsn: str, jobs: int, producers: int) -> None:
    pool = await Oban.create_pool(dsn, min_size=producers, max_size=producers + 2)
    async with Oban(pool=pool) as oban:

        def of(producer: int) -> Callable[[int], Awaitable[object]]:
            return lambda number: oban.enqueue(Noop.new(tagged(producer, number)))

        await produce(section, [of(producer) for producer in range(producers)], jobs)
    await pool.close()


async def drain(section: Section, dsn: str, jobs: int, batch: int) -> None:
    pool = await Oban.create_pool(dsn, min_size=4, max_size=10)
    backlog = Drain(section, dsn, jobs, LEFT)
    _backlogs.append(backlog)
    async with Oban(pool=pool, queues={"default": batch}):
        await backlog.done()
    await pool.close()
