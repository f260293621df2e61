"""Our kernel doing the benchmark's work: through the same worker and store that production runs."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.model import Ending, JobSpec, Succeeded
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.migrate import find, migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KINDS = Kinds([KindPolicy(name="noop")])
PAYLOAD = {"n": 1, "pad": "0123456789012345678901234567890123456789"}


@asynccontextmanager
async def store(dsn: str, size: int = 6) -> AsyncIterator[PgJobStore]:
    async with Db(dsn, size=size, settings=ENGINE_SETTINGS) as db, PgJobStore(db, KINDS) as opened:
        yield opened


async def setup(dsn: str) -> None:
    await migrate(dsn, find(["penstock.jobs.migrations"]))


async def bulk(dsn: str, jobs: int, batch: int = 1000) -> None:
    async with store(dsn) as opened:
        for _ in range(0, jobs, batch):
            await opened.enqueue([JobSpec(kind="noop", payload=PAYLOAD) for _ in range(min(batch, jobs))])


async def singles(dsn: str, jobs: int, producers: int) -> None:
    async with store(dsn, size=producers + 2) as opened:

        async def produce() -> None:
            for _ in range(jobs // producers):
                await opened.enqueue([JobSpec(kind="noop", payload=PAYLOAD)])

        await asyncio.gather(*(produce() for _ in range(producers)))


async def claims(dsn: str, rounds: int, batch: int) -> list[float]:
    """Seconds of each claim of a batch, with the batch ended in between so that the depth stays as it was."""
    times = []
    async with store(dsn) as opened:
        for _ in range(rounds):
            started = time.perf_counter()
            claimed = await opened.claim("bench", ["default"], batch)
            times.append(time.perf_counter() - started)
            await opened.finish([Ending(fence=job.fence, outcome=Succeeded()) for job in claimed])
    return times


async def later(dsn: str, jobs: int, batch: int = 10_000) -> None:
    """Jobs scheduled for tomorrow."""
    async with store(dsn) as opened:
        for _ in range(0, jobs, batch):
            spec = JobSpec(kind="noop", payload=PAYLOAD, run_in=timedelta(days=1))
            await opened.enqueue([spec] * batch)


async def churn(dsn: str, jobs: int, batch: int) -> None:
    """Jobs that come and go, a batch at a time, the way a busy day goes by."""
    async with store(dsn) as opened:
        for _ in range(0, jobs, batch):
            await opened.enqueue([JobSpec(kind="noop", payload=PAYLOAD)] * batch)
            claimed = await opened.claim("bench", ["default"], batch)
            await opened.finish([Ending(fence=job.fence, outcome=Succeeded()) for job in claimed])


async def drain(dsn: str, jobs: int, batch: int) -> None:
    del dsn, jobs, batch
    raise NotImplementedError


async def pickup(dsn: str, jobs: int, batch: int) -> list[float]:
    raise NotImplementedError


async def pickup_http(dsn: str, jobs: int, batch: int) -> list[float]:
    raise NotImplementedError
