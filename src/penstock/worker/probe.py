"""The probe: a configurable no-op job for demos, diagnostics and stress tests."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

from penstock.jobs.handler import Job, Result
from penstock.jobs.kinds import JobKind, KindPolicy
from penstock.kit.backoff import Backoff
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.jobs.handler import JobContext
    from penstock.jobs.model import Json

MAX_STEPS = 100_000
MAX_SECONDS = 3600.0
BLOCKS = (None, "thread", "loop", "process")


class ProbeFailed(Exception):
    """The failure requested by a probe's payload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan:
    """`fail_at_step` fails the first `fail_attempts` attempts (all, if unset); `block` names what a
    step blocks."""

    steps: int = 1
    seconds_per_step: float = 0.0
    fail_at_step: int | None = None
    fail_attempts: int | None = None
    block: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= index(self.steps) <= MAX_STEPS:
            raise InvalidInput(f"A probe must have 0 to {MAX_STEPS:,} steps.")
        if not 0 <= self.seconds_per_step <= MAX_SECONDS:
            raise InvalidInput(f"A step of a probe must take 0 to {MAX_SECONDS:g} seconds.")
        if self.block not in BLOCKS:
            raise InvalidInput("A probe's block must be thread, loop, process, or null.")

    def fails(self, step: int, attempt_no: int) -> bool:
        return step == self.fail_at_step and (
            self.fail_attempts is None or attempt_no <= self.fail_attempts
        )


def plan(payload: Json) -> ProbePlan:
    try:
        return ProbePlan(**payload)
    except TypeError as e:
        raise InvalidInput(f"Invalid payload of a probe: {e}.") from None


async def probe(job: Job, ctx: JobContext) -> Result:
    todo = plan(job.payload)
    for step in range(1, todo.steps + 1):
        ctx.check()
        if todo.fails(step, job.attempt_no):
            raise ProbeFailed(f"Step {step} failed as requested, in attempt {job.attempt_no}.")
        await _sleep(ctx, todo)
        ctx.progress(rows=step, percent=round(100 * step / todo.steps, 1), steps=todo.steps)
    return Result({"steps": todo.steps, "attempt": job.attempt_no})


async def _sleep(ctx: JobContext, todo: ProbePlan) -> None:
    match todo.block:
        case "thread":
            await ctx.in_thread(time.sleep, todo.seconds_per_step)
        case "process":
            await ctx.in_process(time.sleep, todo.seconds_per_step)
        case "loop":
            time.sleep(todo.seconds_per_step)  # noqa: ASYNC251 - to block is what was asked for
        case _:
            await asyncio.sleep(todo.seconds_per_step)


PROBE: JobKind[None] = JobKind(
    policy=KindPolicy(
        name="probe",
        lease=4,
        heartbeat=1,
        timeout=600,
        max_attempts=5,
        backoff=Backoff(base=0.2, factor=2.0, cap=5.0),
    ),
    handler=lambda _: probe,
)
