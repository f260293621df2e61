"""Heartbeats: one call renews every lease of this worker and returns the attempts that must stop.

The interval is the shortest heartbeat of the held job kinds. Without jobs it is long, and very long
while a long poll is pending, which proves the same. Attempts younger than half an interval are left
out: their lease is fresh, and most end before the call arrives. Ended attempts are left out unless
their outcome could not be delivered: then the lease must not expire before the control plane is
back.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.jobs.handler import Stop
from penstock.jobs.model import Beat, Renewal
from penstock.kit import logging
from penstock.kit.backoff import ReconnectBackoff
from penstock.worker.attempt import Attempt, HeldAttempts, Phase

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from penstock.jobs.contract import JobStore
    from penstock.jobs.model import Registration
    from penstock.worker.metrics import WorkerMetrics

log = logging.get(__name__)
OWN_NAME = (
    "Two live processes use the same name. Give each its own --name, or omit it for a unique one."
)
IDLE_SECONDS = 15.0
WAITING_SECONDS = 240.0
"""Heartbeat interval without jobs, while a long poll is pending."""
SHORTEST = 0.2
CALL_SECONDS = 10.0
HURRY_MARGIN = 0.05


class Heartbeat:
    def __init__(
        self,
        attempts: HeldAttempts,
        metrics: WorkerMetrics,
        *,
        registration: Registration,
        is_waiting: Callable[[], bool],
        rng: random.Random,
    ) -> None:
        self._attempts = attempts
        self._metrics = metrics
        self._registration = registration
        self._is_waiting = is_waiting
        self._reported_idle = False
        self.superseded = False
        self.answered = False
        self.answered_at = time.monotonic()
        self._next_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sooner = asyncio.Event()
        self._begun = threading.Event()
        self._may_begin = asyncio.Event()
        self._backoff = ReconnectBackoff(rng)

    @property
    def silent_for(self) -> float:
        return time.monotonic() - self.answered_at

    def within(self, seconds: float) -> None:
        """From any thread: send the next heartbeat within this time."""
        at = time.monotonic() + seconds
        if at < self._next_at - HURRY_MARGIN and self._loop is not None:
            self._next_at = at
            self._loop.call_soon_threadsafe(self._sooner.set)

    def heard(self) -> None:
        """From any thread: the control plane answered another call."""
        self.answered_at = time.monotonic()

    def begin(self) -> None:
        """From any thread: this process is registered; before, there is nothing to renew."""
        self._begun.set()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._may_begin.set)

    async def run(self, store: JobStore) -> None:
        self._loop = asyncio.get_running_loop()
        if not self._begun.is_set():
            await self._may_begin.wait()
        while True:
            started = time.monotonic()
            try:
                await self.run_once(store)
            except Exception as e:
                self._next_at = time.monotonic() + min(
                    self._backoff.failed("heartbeat", e), self.interval()
                )
            else:
                self._backoff.succeeded()
                self._next_at = started + self.interval()
            await self._pause()

    async def run_once(self, store: JobStore) -> Renewal:
        interval = self.interval()
        me = self._registration
        beat = Beat(
            worker=me.worker,
            session=me.session,
            queues=me.queues,
            slots=me.slots,
            version=me.version,
            held=[
                a.fence
                for a in self._attempts.all()
                if _needs_renewal(a, time.monotonic() - interval / 2)
            ],
        )
        async with asyncio.timeout(min(CALL_SECONDS, max(1.0, interval))):
            renewal = await store.renew(beat)
        self.answered, self.answered_at = True, time.monotonic()
        self._reported_idle = not beat.held
        self._apply(renewal)
        return renewal

    def interval(self) -> float:
        soonest = min((a.policy.heartbeat for a in self._attempts.all()), default=None)
        if soonest is not None:
            return max(SHORTEST, min(IDLE_SECONDS, soonest))
        return WAITING_SECONDS if self._reported_idle and self._is_waiting() else IDLE_SECONDS

    def _apply(self, renewal: Renewal) -> None:
        if renewal.superseded and not self.superseded:
            self._report_superseded(len(renewal.lost))
        reasons = dict.fromkeys(renewal.lost, Stop.LOST) | dict.fromkeys(
            renewal.cancelled, Stop.CANCELLED
        )
        if not reasons:
            return
        for attempt in self._attempts.running():
            if (why := reasons.get(attempt.fence)) is not None and self._attempts.remove([attempt]):
                self._stop(attempt, why)

    def _report_superseded(self, lost: int) -> None:
        self.superseded = True
        log.error(
            "worker_superseded",
            worker=self._registration.worker,
            lost=lost,
            message="Another process started under this worker's name and took over its jobs.",
            hint=OWN_NAME,
        )

    def _stop(self, attempt: Attempt, why: Stop) -> None:
        job = attempt.job
        event = "job_cancelled" if why is Stop.CANCELLED else "stale_attempt"
        log.warning(
            event,
            job_id=job.job_id,
            attempt_id=str(job.fence.attempt_id),
            kind=job.kind,
            verb="renew",
        )
        self._metrics.completed(job.kind, "cancelled" if why is Stop.CANCELLED else "stale")
        attempt.stop(why)

    async def _pause(self) -> None:
        while (left := self._next_at - time.monotonic()) > 0:
            self._sooner.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._sooner.wait(), left)


def _needs_renewal(attempt: Attempt, born_before: float) -> bool:
    match attempt.phase:
        case Phase.RUNNING:
            return attempt.started <= born_before
        case Phase.ENDED:
            return attempt.undelivered
        case Phase.GONE:
            return False
