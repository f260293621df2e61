"""Delivers the outcomes of attempts to the store, with retries.

An outcome is kept until the store has given its verdict. A failed call is repeated: writes are
idempotent, so one whose reply was lost comes back as repeated, which is success. A batch that the
store refuses is bisected until the invalid outcome is alone; its job then fails with the store's
message, and the others are written. A stale outcome is logged once and dropped: another worker owns
that job, or it has ended.

Two threads may deliver the same outcome, each with its own store (the shutdown handler does not
rely on the event loop); only the first to remove an attempt counts it.
"""

from __future__ import annotations

import threading
from collections import Counter
from logging import INFO
from typing import TYPE_CHECKING, TypeVar

from penstock.jobs.handler import Stop
from penstock.jobs.model import WORKER_STOPPED, Ending, Failed, Parking, Release, Succeeded, Verdict
from penstock.kit import logging
from penstock.kit.errors import AuthenticationRequired, PenstockError, PermissionDenied
from penstock.worker.failure import describe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from penstock.jobs.contract import JobStore
    from penstock.jobs.model import Claimed, Registration
    from penstock.worker.attempt import Attempt, HeldAttempts
    from penstock.worker.metrics import WorkerMetrics

log = logging.get(__name__)
W = TypeVar("W", Parking, Release)


class Delivery:
    def __init__(self, attempts: HeldAttempts, metrics: WorkerMetrics) -> None:
        self._attempts = attempts
        self._metrics = metrics
        self._counting = threading.Lock()
        self.given_up = 0
        """Attempts that were interrupted because the worker stopped."""

    async def exchange(
        self, store: JobStore, attempts: Sequence[Attempt], claimer: Registration, limit: int
    ) -> Sequence[Claimed]:
        """Write outcomes and claim new jobs in one call; nothing is claimed if an outcome is
        refused."""
        try:
            exchanged = await store.exchange(
                _endings(attempts), claimer.worker, claimer.queues, limit, session=claimer.session
            )
        except PenstockError as e:
            if not _refused(e):
                raise
            await self._finish(store, attempts)
            return ()
        self._settle(attempts, exchanged.verdicts)
        return exchanged.claimed

    async def write(self, store: JobStore, attempts: Iterable[Attempt]) -> None:
        """Write the outcomes, parkings and releases of the attempts."""
        listed = list(attempts)
        if endings := [a for a in listed if ends(a)]:
            await self._finish(store, endings)
        if parkings := [a for a in listed if isinstance(a.writing, Parking)]:
            await self._park(store, parkings)
        if releases := [a for a in listed if isinstance(a.writing, Release)]:
            await self._release(store, releases)

    async def _finish(self, store: JobStore, attempts: Sequence[Attempt]) -> None:
        async def write(batch: Sequence[Attempt]) -> None:
            self._settle(batch, await store.finish(_endings(batch)))

        await self._isolating(store, attempts, write)

    async def _park(self, store: JobStore, attempts: Sequence[Attempt]) -> None:
        async def write(batch: Sequence[Attempt]) -> None:
            self._settle(batch, map(_verdict, await store.park(_only(batch, Parking))))

        await self._isolating(store, attempts, write)

    async def _release(self, store: JobStore, attempts: Sequence[Attempt]) -> None:
        self._settle(attempts, map(_verdict, await store.release(_only(attempts, Release))))

    async def _isolating(
        self,
        store: JobStore,
        attempts: Sequence[Attempt],
        write: Callable[[Sequence[Attempt]], Awaitable[None]],
    ) -> None:
        try:
            await write(attempts)
        except PenstockError as e:
            if not _refused(e):
                raise
            if len(attempts) == 1:
                await self._fail(store, attempts[0], e)
                return
            middle = len(attempts) // 2
            await self._isolating(store, attempts[:middle], write)
            await self._isolating(store, attempts[middle:], write)

    async def _fail(self, store: JobStore, attempt: Attempt, refusal: PenstockError) -> None:
        """The store refused this outcome: fail the job with the store's reason."""
        log.error("answer_refused", **_named(attempt), code=refusal.code, message=refusal.message)
        attempt.writing = Failed(error=describe(refusal) | {"retryable": False})
        verdicts = await store.finish(_endings([attempt]))
        self._settle([attempt], verdicts)

    def _settle(self, attempts: Sequence[Attempt], verdicts: Iterable[Verdict]) -> None:
        counts: Counter[tuple[str, str]] = Counter()
        audible = log.is_enabled_for(INFO)
        verdict_of = dict(zip(attempts, verdicts, strict=True))
        for attempt in self._attempts.remove(attempts):
            status = _status(attempt, verdict_of[attempt])
            counts[attempt.job.kind, status] += 1
            if status == "stale":
                log.warning("stale_attempt", **_named(attempt), verb=_verb(attempt))
            elif audible:
                log.info(
                    "job_ended", status=status, **_named(attempt), attempt=attempt.job.attempt_no
                )
            if status != "succeeded" and _interrupted(attempt):
                with self._counting:
                    self.given_up += 1
        for (kind, status), count in counts.items():
            self._metrics.completed(kind, status, count)


def ends(attempt: Attempt) -> bool:
    """Whether the attempt succeeded or failed, so that an exchange can write it."""
    return isinstance(attempt.writing, (Succeeded, Failed))


def _interrupted(attempt: Attempt) -> bool:
    """Whether the worker stopped before the handler had returned."""
    match attempt.writing:
        case Release():
            return attempt.stopped is Stop.SHUTDOWN
        case Failed(error={"code": code}):
            return bool(code == WORKER_STOPPED)
        case _:
            return False


def _endings(attempts: Iterable[Attempt]) -> list[Ending]:
    return [
        Ending(fence=a.job.fence, outcome=a.writing)
        for a in attempts
        if isinstance(a.writing, (Succeeded, Failed))
    ]


def _only(attempts: Iterable[Attempt], kind: type[W]) -> list[W]:
    return [a.writing for a in attempts if isinstance(a.writing, kind)]


def _verdict(written: bool) -> Verdict:
    return Verdict.DONE if written else Verdict.STALE


def _verb(attempt: Attempt) -> str:
    match attempt.writing:
        case Parking():
            return "park"
        case Release():
            return "release"
        case _:
            return "finish"


def _status(attempt: Attempt, verdict: Verdict) -> str:
    if verdict is Verdict.STALE:
        return "stale"
    if verdict is Verdict.RETRYING:
        return "retrying"
    if isinstance(attempt.writing, Succeeded):
        return "succeeded"
    match attempt.writing:
        case Parking():
            return "parked"
        case Release():
            return "released"
        case _:
            return "failed"


def _named(attempt: Attempt) -> dict[str, object]:
    job = attempt.job
    return {
        "job_id": job.job_id,
        "attempt_id": str(job.fence.attempt_id),
        "kind": job.kind,
        "trace": job.trace,
    }


def _refused(error: PenstockError) -> bool:
    """The store rejected the write; a retry would not help."""
    return 400 <= error.status < 500 and not isinstance(
        error, AuthenticationRequired | PermissionDenied
    )
