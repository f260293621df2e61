"""Our kernel doing the benchmark's work: through the same worker and store that production runs."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import SecretStr

from bench.kernel.section import (
    PAYLOAD,
    WARM_UP,
    Drain,
    Section,
    batches,
    produce,
    running,
    trace,
    user,
)
from penstock.api.serving.server import bind, listening
from penstock.jobs.handler import Handlers, Result
from penstock.jobs.http_store import HttpJobStore
from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.model import Ending, JobSpec, Succeeded
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit import logging
from penstock.kit.db import Db
from penstock.kit.migrate import find, migrate
from penstock.wiring.control_plane import build_control_plane
from penstock.wiring.migrations import MIGRATION_PACKAGES
from penstock.wiring.settings import Settings
from penstock.worker.runtime import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from penstock.jobs.contract import JobStore
    from penstock.jobs.handler import Job, JobContext
    from penstock.worker.runtime import StoreFactory

JOBS = "SELECT count(*) FROM penstock.job"
LEFT = "SELECT count(*) FROM penstock.live"
KINDS = Kinds([KindPolicy(name="noop")])
TOKEN = "bench"
IDLE_SECONDS = 0.02
CLAIMS = 30


@asynccontextmanager
async def store(dsn: str, size: int = 6) -> AsyncIterator[PgJobStore]:
    logging.configure(level="ERROR")
    async with Db(dsn, size=size, settings=ENGINE_SETTINGS) as db, PgJobStore(db, KINDS) as opened:
        yield opened


async def setup(dsn: str) -> None:
    await migrate(dsn, find(MIGRATION_PACKAGES))


async def bulk(section: Section, dsn: str, jobs: int, batch: int) -> None:
    async with store(dsn) as opened:

        async def enqueue(count: int) -> None:
            await opened.enqueue([_spec() for _ in range(count)])

        await batches(section, enqueue, jobs, batch)


async def singles(section: Section, dsn: str, jobs: int, producers: int) -> None:
    """Each producer is another user, and each job has a trace of its own."""
    async with store(dsn, size=producers + 2) as opened:

        def of(producer: int) -> Callable[[int], Awaitable[object]]:
            name = user(producer)
            return lambda number: opened.enqueue(
                [
                    JobSpec(
                        kind="noop", payload=PAYLOAD, created_by=name, trace=trace(producer, number)
                    )
                ]
            )

        await produce(section, [of(producer) for producer in range(producers)], jobs)


async def alike(section: Section, dsn: str, jobs: int, producers: int) -> None:
    """All jobs are nobody's and have no trace."""
    async with store(dsn, size=producers + 2) as opened:
        await produce(section, [lambda _: opened.enqueue([_spec()])] * producers, jobs)


async def own(section: Section, dsn: str, jobs: int, producers: int) -> None:
    """Each job in a transaction of the producer's own, the way it goes together with the producer's
    rows."""
    async with (
        Db(dsn, size=producers + 2, settings=ENGINE_SETTINGS) as db,
        PgJobStore(db, KINDS) as opened,
    ):

        def of(producer: int) -> Callable[[int], Awaitable[object]]:
            async def enqueue(number: int) -> None:
                spec = JobSpec(
                    kind="noop",
                    payload=PAYLOAD,
                    created_by=user(producer),
                    trace=trace(producer, number),
                )
                async with db.transaction() as tx:
                    await opened.enqueue([spec], tx=tx)

            return enqueue

        await produce(section, [of(producer) for producer in range(producers)], jobs)


async def drain(section: Section, dsn: str, jobs: int, batch: int) -> None:
    """The production worker with a handler that does nothing, straight on the store."""
    backlog = Drain(section, dsn, jobs, LEFT)

    async def noop(_job: Job, _ctx: JobContext) -> Result:
        backlog.job()
        return Result()

    worker = Worker(
        lambda: store(dsn),
        Handlers({"noop": noop}),
        KINDS,
        name="bench",
        queues=["default"],
        slots=batch,
    )
    async with running(worker.run()):
        await backlog.done()
        worker.stop()


async def claims(_section: Section, dsn: str, _jobs: int, batch: int) -> list[float]:
    """Seconds of each claim of a batch, with the batch ended in between so that the depth stays as
    it was."""
    times = []
    async with store(dsn) as opened:
        for _ in range(CLAIMS):
            started = time.perf_counter()
            claimed = await opened.claim("bench", ["default"], batch)
            times.append(time.perf_counter() - started)
            await opened.finish([Ending(fence=job.fence, outcome=Succeeded()) for job in claimed])
    return times


async def later(_section: Section, dsn: str, jobs: int, batch: int) -> None:
    """Jobs scheduled for tomorrow."""
    async with store(dsn) as opened:
        for _ in range(0, jobs, batch):
            spec = JobSpec(kind="noop", payload=PAYLOAD, run_in=timedelta(days=1))
            await opened.enqueue([spec] * batch)


async def churn(_section: Section, dsn: str, jobs: int, batch: int) -> None:
    """Jobs that come and go, a batch at a time, the way a busy day goes by."""
    async with store(dsn) as opened:
        for _ in range(0, jobs, batch):
            await opened.enqueue([_spec()] * batch)
            claimed = await opened.claim("bench", ["default"], batch)
            await opened.finish([Ending(fence=job.fence, outcome=Succeeded()) for job in claimed])


async def pickup(_section: Section, dsn: str, jobs: int, _batch: int) -> list[float]:
    """Seconds from an enqueue to the handler's first line, one job at a time on an idle worker."""
    async with store(dsn) as source:
        return await _pickup(lambda: store(dsn), source, jobs)


async def pickup_http(_section: Section, dsn: str, jobs: int, _batch: int) -> list[float]:
    """The same through a control plane: the job comes in by HTTP and the worker long-polls by
    HTTP."""
    logging.configure(level="ERROR")
    settings = Settings(service_token=SecretStr(TOKEN), port=0)
    async with build_control_plane(settings, dsn, kinds=KINDS) as services:
        with bind("127.0.0.1", 0) as listener:
            async with listening(services, listener) as url, HttpJobStore(url, TOKEN) as source:
                return await _pickup(lambda: HttpJobStore(url, TOKEN), source, jobs)


async def _pickup(open_store: StoreFactory, source: JobStore, jobs: int) -> list[float]:
    """The first jobs wait for the worker to start (a third of a second with its connections), which
    is no pickup of an idle one."""
    began: asyncio.Queue[float] = asyncio.Queue()

    async def noop(_job: Job, _ctx: JobContext) -> Result:
        began.put_nowait(time.perf_counter())
        return Result()

    worker = Worker(
        open_store, Handlers({"noop": noop}), KINDS, name="bench", queues=["default"], slots=10
    )
    times = []
    async with running(worker.run()):
        for _ in range(WARM_UP + jobs):
            started = time.perf_counter()
            await source.enqueue([_spec()])
            times.append(await began.get() - started)
            await asyncio.sleep(IDLE_SECONDS)
        worker.stop()
    return times[WARM_UP:]


def _spec() -> JobSpec:
    return JobSpec(kind="noop", payload=PAYLOAD)
