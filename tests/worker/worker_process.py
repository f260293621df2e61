"""A worker process for tests, and what its handlers do."""

from __future__ import annotations

import asyncio
import ctypes
import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import uvloop

from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.model import JobSpec
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit import logging
from penstock.kit.backoff import Backoff
from penstock.kit.db import Db
from penstock.kit.errors import InvalidInput
from penstock.wiring import settings as config
from penstock.wiring.worker import run_worker
from penstock.worker import Handlers, Job, JobContext, Park, Result, Worker
from penstock.worker.probe import PROBE, probe
from penstock.worker.signals import Process
from tests.worker.errands import brood

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

QUICK = Backoff(base=0.05, factor=1.0, cap=0.05)


def policy(name: str, **changed: object) -> KindPolicy:
    return KindPolicy(
        **({"name": name, "lease": 2, "heartbeat": 1, "timeout": 60, "backoff": QUICK} | changed)
    )


KINDS = Kinds(
    [
        PROBE.policy,
        policy("nap"),
        policy("slow-lease", lease=3600),
        policy("steady", lease=4),
        policy("strict", on_sigterm="fail", max_attempts=1),
        policy("stuck-thread"),
        policy("stuck-loop"),
        policy("stubborn"),
        policy("child"),
        policy("bad"),
        policy("flaky"),
        policy("poll"),
        policy("big"),
        policy("spawn"),
        policy("talk"),
        policy("unheard-of"),
    ]
)


@asynccontextmanager
async def open_store(dsn: str) -> AsyncIterator[PgJobStore]:
    async with (
        Db(dsn, size=4, settings=ENGINE_SETTINGS, command_timeout=15) as db,
        PgJobStore(db, KINDS) as store,
    ):
        yield store


async def nap(job: Job, ctx: JobContext) -> Result:
    await asyncio.sleep(job.payload["seconds"])
    return Result({"napped": job.payload["seconds"], "attempt": job.attempt_no})


async def stuck_thread(job: Job, ctx: JobContext) -> Result:
    """Blocked in C, as in a driver: no signal and no cancel reaches it."""
    await ctx.in_thread(ctypes.CDLL(None).sleep, job.payload["seconds"])
    return Result("the thread came back")


async def stuck_loop(job: Job, ctx: JobContext) -> Result:
    ctypes.CDLL(None).sleep(job.payload["seconds"])
    return Result("the loop came back")


async def stubborn(job: Job, ctx: JobContext) -> Result:
    """Does not hear that it is cancelled."""
    until = time.monotonic() + job.payload["seconds"]
    while (left := until - time.monotonic()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            ctx.log.info("stubborn_goes_on")
    return Result("it came back")


async def child(job: Job, ctx: JobContext) -> Result:
    return Result(await ctx.in_process(brood, job.payload["seconds"], job.payload["file"]))


async def bad(job: Job, ctx: JobContext) -> Result:
    raise InvalidInput("postgresql://me:hunter2@db/x is no place for this.")


async def flaky(job: Job, ctx: JobContext) -> Result:
    if job.attempt_no <= job.payload["failures"]:
        raise ConnectionError("Bearer abc.def was refused")
    return Result(job.attempt_no)


async def poll(job: Job, ctx: JobContext) -> Result | Park:
    seen = job.state or 0
    return Result(seen) if seen == job.payload["polls"] else Park(seen + 1, 0.01)


async def big(job: Job, ctx: JobContext) -> Result:
    return Result("x" * job.payload["bytes"])


async def spawn(job: Job, ctx: JobContext) -> Result:
    return Result(spawn=[JobSpec(kind=job.payload["kind"], payload={"seconds": 0})])


async def talk(job: Job, ctx: JobContext) -> Result:
    ctx.progress(rows=10, percent=50)
    ctx.progress(rows=20, phase="second half")
    await asyncio.sleep(job.payload["seconds"])
    return Result()


HANDLERS = Handlers(
    {
        "probe": probe,
        "nap": nap,
        "slow-lease": nap,
        "steady": nap,
        "strict": nap,
        "stuck-thread": stuck_thread,
        "stuck-loop": stuck_loop,
        "stubborn": stubborn,
        "child": child,
        "bad": bad,
        "flaky": flaky,
        "poll": poll,
        "big": big,
        "spawn": spawn,
        "talk": talk,
    }
)


def deployed(**options: object) -> int:
    return run_worker(config.load(), handlers=HANDLERS, kinds=KINDS, **options)


def main(dsn: str, options: str) -> int:
    logging.configure(level="DEBUG")
    fields = {"name": "hand", "queues": ["default"], "slots": 10, **json.loads(options)}
    worker = Worker(lambda: open_store(dsn), HANDLERS, KINDS, **fields)
    return Process(worker, loop_factory=uvloop.new_event_loop).run()
