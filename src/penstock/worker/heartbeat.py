"""Heartbeats: one call renews every lease that this worker holds, and brings word of the attempts
that must stop.

It beats as often as the most impatient kind among the held ones wants, and slowly when nothing is
held; while a long poll waits, which says as much, it hardly beats at all. Attempts that are younger
than half a beat are left out: their lease is fresh, and most of them are over before the call
arrives. An attempt that ended is left out as well unless its answer could not be delivered: then
the lease must not lapse before the control plane is back.
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
from penstock.worker.attempt import Attempt, Held, Phase

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from penstock.jobs.contract import JobStore
    from penstock.jobs.model import Registration
    from penstock.worker.metrics import WorkerMetrics

log = logging.get(__name__)
OWN_NAME = (
    "Two live processes use one name. Give each its own with --name, or none: then it draws one."
)
IDLE_SECONDS = 15.0
WAITING_SECONDS = 240.0
"""Between two beats that hold nothing, while a long poll waits."""
SHORTEST = 0.2
CALL_SECONDS = 10.0
HURRY_MARGIN = 0.05


class Heartbeat:
    def __init__(
        self,
        held: Held,
        metrics: WorkerMetrics,
        *,
        registration: Registration,
        is_waiting: Callable[[], bool],
        rng: random.Random,
    ) -> None:
        self._held = held
        self._metrics = metrics
        self._registration = registration
        self._is_waiting = is_waiting
        self._told_idle = False
        self.superseded = False
        self.answered = False
        self.answered_at = time.monotonic()
        self._next_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sooner = asyncio.Event()
        self._begun = threading.Event()
        self._may_begin = asyncio.Event()
        self._patience = ReconnectBackoff(rng)

    @property
    def silent_for(self) -> float:
        return time.monotonic() - self.answered_at

    def within(self, seconds: float) -> None:
        """From any thread: the next beat must come at least this soon."""
        at = time.monotonic() + seconds
        if at < self._next_at - HURRY_MARGIN and self._loop is not None:
            self._next_at = at
            self._loop.call_soon_threadsafe(self._sooner.set)

    def heard(self) -> None:
        """From any thread: the control plane answered something else."""
        self.answered_at = time.monotonic()

    def begin(self) -> None:
        """From any thread: this process is registered. Before that there is nothing to renew."""
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
                    self._patience.failed("heartbeat", e), self.interval()
                )
            else:
                self._patience.succeeded()
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
                a.fence for a in self._held.all() if _in_need(a, time.monotonic() - interval / 2)
            ],
        )
        async with asyncio.timeout(min(CALL_SECONDS, max(1.0, interval))):
            renewal = await store.renew(beat)
        self.answered, self.answered_at = True, time.monotonic()
        self._told_idle = not beat.held
        self._obey(renewal)
        return renewal

    def interval(self) -> float:
        soonest = min((a.policy.heartbeat for a in self._held.all()), default=None)
        if soonest is not None:
            return max(SHORTEST, min(IDLE_SECONDS, soonest))
        return WAITING_SECONDS if self._told_idle and self._is_waiting() else IDLE_SECONDS

    def _obey(self, renewal: Renewal) -> None:
        if renewal.superseded and not self.superseded:
            self._report_superseded(len(renewal.lost))
        reasons = dict.fromkeys(renewal.lost, Stop.LOST) | dict.fromkeys(
            renewal.cancelled, Stop.CANCELLED
        )
        if not reasons:
            return
        for attempt in self._held.running():
            if (why := reasons.get(attempt.fence)) is not None and self._held.remove([attempt]):
                self._stop(attempt, why)

    def _report_superseded(self, lost: int) -> None:
        self.superseded = True
        log.error(
            "worker_superseded",
            worker=self._registration.worker,
            lost=lost,
            message="Another process started under this worker's name and has taken over what ran here.",
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


def _in_need(attempt: Attempt, born_before: float) -> bool:
    match attempt.phase:
        case Phase.RUNNING:
            return attempt.started <= born_before
        case Phase.ENDED:
            return attempt.undelivered
        case Phase.GONE:
            return False
