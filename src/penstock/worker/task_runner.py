"""The task runner: one task per attempt, from its claim to its outcome."""

from __future__ import annotations

import asyncio
import time
import traceback
from typing import TYPE_CHECKING

from penstock.jobs.handler import Answer, Handlers, Job, JobContext, Park, Result, Stop, Stopped
from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.model import DEADLINE_EXCEEDED, Parking, Release, Succeeded
from penstock.jobs.row_mapping import dump
from penstock.kit import logging
from penstock.kit.errors import InvalidInput, InvalidState, PenstockError
from penstock.worker.attempt import Attempt, HeldAttempts, Writing
from penstock.worker.context import AttemptContext, WorkerHooks
from penstock.worker.failure import describe, failed, final
from penstock.worker.shutdown import interrupted_outcome

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from penstock.worker.metrics import WorkerMetrics
    from penstock.worker.result_buffer import ResultBuffer

log = logging.get(__name__)
LONGEST_PARK = 86_400.0
MAX_UNHANDLED = 30
UNHANDLED_PAUSE = 10.0
_DONE = Succeeded()
"""The outcome of every job without a result, created once."""


class TaskRunner:
    def __init__(
        self,
        handlers: Handlers,
        kinds: Kinds,
        attempts: HeldAttempts,
        metrics: WorkerMetrics,
        results: ResultBuffer,
        hooks: WorkerHooks,
        *,
        max_result_bytes: int,
        rng: random.Random,
    ) -> None:
        self._handlers = handlers
        self._kinds = kinds
        self._attempts = attempts
        self._metrics = metrics
        self._hooks = hooks
        self._max_bytes = max_result_bytes
        self._results = results
        self._rng = rng
        self._running: set[Attempt] = set()

    @property
    def busy(self) -> int:
        return len(self._running)

    def start(self, claimed: Sequence[Job]) -> list[Attempt]:
        now = time.monotonic()
        attempts = [Attempt(job, self._policy(job.kind), now) for job in claimed]
        self._attempts.add(attempts)
        self._running.update(attempts)
        create_task = asyncio.get_running_loop().create_task
        for attempt in attempts:
            attempt.task = create_task(self._run_attempt(attempt))
            if attempt.stopped is not None:
                attempt.cancel_task()
        return attempts

    def send_back(self, claimed: Sequence[Job]) -> None:
        """Release jobs that arrived while the worker is stopping."""
        now = time.monotonic()
        for job in claimed:
            attempt = Attempt(job, self._policy(job.kind), now)
            self._attempts.add([attempt])
            self._end(attempt, Release(fence=job.fence, reason="Worker is stopping"))

    def give_up(self, attempt: Attempt) -> None:
        """Fail an attempt whose handler does not return after its deadline."""
        self._end(attempt, _overdue())

    async def dismiss(self, seconds: float) -> None:
        """Cancel the remaining handlers; their results are not needed."""
        tasks = [a.task for a in self._running if a.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _policy(self, kind: str) -> KindPolicy:
        policy = self._kinds.get(kind)
        return KindPolicy(name=kind) if policy is None else policy

    async def _run_attempt(self, attempt: Attempt) -> None:
        job = attempt.job
        logging.about(job)
        handler = self._handlers.get(job.kind) or _unhandled
        writing: Writing | None
        try:
            try:
                writing = self._writing(
                    job, await handler(job, AttemptContext(attempt, self._hooks))
                )
            except (Exception, SystemExit, asyncio.CancelledError) as e:
                writing = self._outcome_of_error(attempt, e)
            if writing is not None:
                self._end(attempt, writing)
        finally:
            self._running.discard(attempt)
            self._results.news.set()

    def _writing(self, job: Job, answer: Answer) -> Writing:
        if isinstance(answer, Result):
            if answer.value is None and not answer.spawn:
                return _DONE
            if answer.value is not None:
                dump(answer.value, "result", self._max_bytes)
            return Succeeded(result=answer.value, spawn=answer.spawn)
        if isinstance(answer, Park):
            dump(answer.state, "state", self._max_bytes)
            pause = min(max(0.0, answer.after_seconds), LONGEST_PARK)
            return Parking(
                fence=job.fence, state=answer.state, wake_in=pause, unhandled=answer.unhandled
            )
        raise InvalidInput(f"The handler of {job.kind} returned neither a Result nor a Park.")

    def _outcome_of_error(self, attempt: Attempt, error: BaseException) -> Writing | None:
        """A stopped handler may raise any error, often its driver's; the stop reason decides."""
        match attempt.stopped or (error.why if isinstance(error, Stopped) else None):
            case Stop.DEADLINE:
                return _overdue()
            case Stop.SHUTDOWN:
                return interrupted_outcome(attempt)
            case Stop.LOST | Stop.CANCELLED:
                return None
            case None:
                _report(attempt.job, error)
                return failed(error, attempt.policy, attempt.job.attempt_no, self._rng)

    def _end(self, attempt: Attempt, writing: Writing) -> None:
        if self._attempts.end(attempt, writing):
            self._metrics.lasted(attempt.job.kind, time.monotonic() - attempt.started)
            self._results.put(attempt)


def _report(job: Job, error: BaseException) -> None:
    """Log a failure, with a traceback for foreign errors. No local variables: they may hold
    secrets."""
    described: dict[str, str] = describe(error)
    if not isinstance(error, PenstockError):
        described["exception"] = "".join(traceback.format_exception(error))
    log.warning("handler_failed", kind=job.kind, attempt=job.attempt_no, **described)


def _overdue() -> Writing:
    return final(DEADLINE_EXCEEDED, "The job ran past its deadline.")


async def _unhandled(job: Job, _: JobContext) -> Answer:
    """Park a job of an unknown kind for another worker: during an upgrade there soon is one."""
    log.warning("kind_unknown", times=job.unhandled)
    if job.unhandled >= MAX_UNHANDLED:
        raise InvalidState(f"No worker of queue {job.queue} has a handler for kind {job.kind}.")
    return Park(job.state, UNHANDLED_PAUSE, unhandled=True)
