"""A worker of the storm: the real runtime, with handlers that do little and write down all they
do.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import TYPE_CHECKING

from penstock.jobs.handler import Handlers, Park, Result
from penstock.jobs.kinds import Kinds
from penstock.jobs.model import JobSpec
from penstock.wiring.worker import run_worker
from tests.chaos.kinds import KINDS

if TYPE_CHECKING:
    from penstock.jobs.handler import Job, JobContext
    from penstock.wiring.settings import Settings


def run(settings: Settings) -> int:
    name = os.environ["STORM_WORKER"]
    return run_worker(settings, name=name, handlers=Handlers(HANDLERS), kinds=Kinds(KINDS))


def _effect(job: Job, event: str) -> None:
    line = {
        "event": event,
        "job_id": job.job_id,
        "attempt_id": str(job.fence.attempt_id),
        "at": time.time(),
    }
    file = os.open(os.environ["STORM_EFFECTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, json.dumps(line).encode() + b"\n")
    os.close(file)


async def work(job: Job, ctx: JobContext) -> Result:
    _effect(job, "begin")
    for step in range(job.payload["steps"]):
        await asyncio.sleep(job.payload["pause"])
        ctx.progress(rows=step + 1)
        ctx.check()
    _effect(job, "end")
    return Result({"by": os.getpid()})


async def park(job: Job, ctx: JobContext) -> Result | Park:
    _effect(job, "poll")
    await asyncio.sleep(job.payload["pause"])
    seen = (job.state or {}).get("polls", 0)
    if seen < job.payload["polls"]:
        return Park({"polls": seen + 1}, after_seconds=job.payload["pause"])
    return Result({"polls": seen})


async def flaky(job: Job, ctx: JobContext) -> Result:
    _effect(job, "begin")
    await asyncio.sleep(job.payload["pause"])
    if job.attempt_no <= job.payload["failures"]:
        raise ConnectionError("the storm wants this attempt to fail")
    return Result({"attempt": job.attempt_no})


async def blocked(job: Job, ctx: JobContext) -> Result:
    """Blocks the whole event loop for a while, as a careless handler would."""
    _effect(job, "begin")
    time.sleep(job.payload["pause"])  # noqa: ASYNC251
    _effect(job, "end")
    return Result()


async def spawn(job: Job, ctx: JobContext) -> Result:
    await asyncio.sleep(job.payload["pause"])
    spec = JobSpec(
        kind="storm.work",
        payload={"steps": 1, "pause": job.payload["pause"]},
        group_id=job.group_id,
    )
    return Result({"spawned": job.payload["children"]}, spawn=[spec] * job.payload["children"])


async def poison(job: Job, ctx: JobContext) -> Result:
    _effect(job, "poison")
    os._exit(9)


HANDLERS = {
    "storm.work": work,
    "storm.strict": work,
    "storm.park": park,
    "storm.flaky": flaky,
    "storm.blocked": blocked,
    "storm.spawn": spawn,
    "storm.after": work,
    "storm.poison": poison,
}
