"""Our kernel doing the benchmark's work: through the same worker and store that production runs."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import SecretStr

from penstock.api.server import bind, listening
from penstock.jobs.http import HttpJobStore
from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.model import Ending, JobSpec, Succeeded
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.config import Settings
from penstock.kit.db import Db
from penstock.kit.migrate import find, migrate
from penstock.rooms import ROOMS_WITH_TABLES
from penstock.wiring import build_control_plane
from penstock.worker.handlers import Handlers, Result
from penstock.worker.runtime import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.jobs.contract import JobStore
    from penstock.worker.context import JobContext
    from penstock.worker.handlers import Job
    from penstock.worker.runtime import StoreFactory

KINDS = Kinds([KindPolicy(name="noop")])
TOKEN = "bench"
IDLE_SECONDS = 0.02
PAYLOAD = {"n": 1, "pad": "0123456789012345678901234567890123456789"}


@asynccontextmanager
async def store(dsn: str, size: int = 6) -> AsyncIterator[PgJobStore]:
    async with Db(dsn, size=size, settings=ENGINE_SETTINGS) as db, PgJobStore(db, KINDS) as opened:
        yield opened


async def setup(dsn: str) -> None:
    await migrate(dsn, find(ROOMS_WITH_TABLES))


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


async def own(dsn: str, jobs: int, producers: int) -> None:
    """Each job in a transaction of the producer's own, the way it goes together with the producer's rows."""
    async with Db(dsn, size=producers + 2, settings=ENGINE_SETTINGS) as db, PgJobStore(db, KINDS) as opened:

        async def produce() -> None:
            for _ in range(jobs // producers):
                async with db.transaction() as tx:
                    await opened.enqueue([JobSpec(kind="noop", payload=PAYLOAD)], tx=tx)

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
    """The production worker with a handler that does nothing, straight on the store."""
    done = 0

    async def noop(_job: Job, _ctx: JobContext) -> Result:
        nonlocal done
        done += 1
        if done == jobs:
            worker.stop()
        return Result()

    worker = Worker(lambda: store(dsn), Handlers({"noop": noop}), KINDS, name="bench", queues=["default"], slots=batch)
    await worker.run()


async def pickup(dsn: str, jobs: int, _batch: int) -> list[float]:
    """Seconds from an enqueue to the handler's first line, one job at a time on an idle worker."""
    async with store(dsn) as giver:
        return await _pickup(lambda: store(dsn), giver, jobs)


async def pickup_http(dsn: str, jobs: int, _batch: int) -> list[float]:
    """The same through a control plane: the job comes in by HTTP and the worker long-polls by HTTP."""
    settings = Settings(service_token=SecretStr(TOKEN), port=0)
    async with build_control_plane(settings, dsn, kinds=KINDS) as parts:
        with bind("127.0.0.1", 0) as listener:
            async with listening(parts, listener) as url, HttpJobStore(url, TOKEN) as giver:
                return await _pickup(lambda: HttpJobStore(url, TOKEN), giver, jobs)


async def _pickup(open_store: StoreFactory, giver: JobStore, jobs: int) -> list[float]:
    began: asyncio.Queue[float] = asyncio.Queue()

    async def noop(_job: Job, _ctx: JobContext) -> Result:
        began.put_nowait(time.perf_counter())
        return Result()

    worker = Worker(open_store, Handlers({"noop": noop}), KINDS, name="bench", queues=["default"], slots=10)
    running = asyncio.create_task(worker.run())
    times = []
    for _ in range(jobs):
        given = time.perf_counter()
        await giver.enqueue([JobSpec(kind="noop", payload=PAYLOAD)])
        times.append(await began.get() - given)
        await asyncio.sleep(IDLE_SECONDS)
    worker.stop()
    await running
    return times
