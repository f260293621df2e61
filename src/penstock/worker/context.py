"""Implements the handler context for one attempt."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, cast

from penstock.jobs.handler import Stop, Stopped
from penstock.kit import logging
from penstock.worker.child_calls import Child, in_thread

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

    from penstock.jobs.model import Fence, Json
    from penstock.worker.attempt import Attempt

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHooks:
    """Callbacks from handlers into the worker."""

    note: Callable[[Attempt, dict[str, Json]], None]
    count_rows: Callable[[str, int], None]
    prepare_child: Callable[[], None] | None


class AttemptContext:
    """Implements `penstock.jobs.handler.JobContext` for one attempt."""

    __slots__ = ("_attempt", "_hooks", "_progress", "_rows")

    def __init__(self, attempt: Attempt, hooks: WorkerHooks) -> None:
        self._attempt = attempt
        self._hooks = hooks
        self._progress: dict[str, Json] = {}
        self._rows = 0

    @property
    def fence(self) -> Fence:
        return self._attempt.job.fence

    @property
    def deadline(self) -> float:
        """When the attempt must have ended, on the clock of `time.monotonic()`."""
        return self._attempt.deadline

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._attempt.deadline - time.monotonic())

    @property
    def cancelled(self) -> threading.Event:
        """Set when the attempt must stop. Coroutines are cancelled anyway; code in threads must
        watch it."""
        return self._attempt.event()

    @property
    def log(self) -> FilteringBoundLogger:
        job = self._attempt.job
        bound = logging.get(f"job.{job.kind}").bind(
            job_id=job.job_id, attempt_id=str(job.fence.attempt_id), kind=job.kind
        )
        return bound if job.trace is None else bound.bind(trace=job.trace)

    def check(self) -> None:
        """Raise Stopped if the attempt was cancelled or lost, is out of time, or its worker is
        stopping."""
        if self._attempt.stopped is not None:
            raise Stopped(self._attempt.stopped)
        if time.monotonic() >= self._attempt.deadline:
            raise Stopped(Stop.DEADLINE)

    def progress(
        self, *, rows: int | None = None, percent: float | None = None, **more: Json
    ) -> None:
        """Report total progress. Written at most once per second; omitted fields keep their
        values."""
        values = {"rows": rows, "percent": percent}
        self._progress = {
            **self._progress,
            **{k: v for k, v in values.items() if v is not None},
            **more,
        }
        if rows is not None and rows > self._rows:
            self._hooks.count_rows(self._attempt.job.kind, rows - self._rows)
            self._rows = rows
        self._hooks.note(self._attempt, self._progress)

    async def in_thread(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run blocking work in a thread. It cannot be killed; it should call `check()` or watch
        `cancelled`."""
        try:
            return await in_thread(str(self._attempt.job.job_id), work, *args)
        except asyncio.CancelledError:
            self.log.info("handler_thread_left_behind", why=self._attempt.stopped)
            raise

    async def in_process(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run an importable function in a child process, which is killed when the job is stopped
        or the worker dies."""
        child = Child(self._hooks.prepare_child, work, args)
        self._attempt.adopt(child)
        try:
            return cast("T", await in_thread(f"{self._attempt.job.job_id}-child", child.answer))
        finally:
            child.kill()
            self._attempt.disown(child)
