"""Heartbeats: one call renews every lease that this worker holds, and brings word of the attempts that must stop.

It beats as often as the most impatient kind among the held ones wants, and slowly when nothing is held. Attempts that
are younger than half a beat are left out: their lease is fresh, and most of them are over before the call arrives.
An attempt that ended is left out as well unless its answer could not be delivered: then the lease must not lapse
before the control plane is back.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from penstock.jobs.model import Beat, Renewal
from penstock.kit import logging
from penstock.worker.attempt import Attempt, Held, Phase, Stop
from penstock.worker.patience import Patience

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from penstock.jobs.contract import JobStore
    from penstock.worker.metrics import WorkerMetrics

log = logging.get(__name__)
IDLE_SECONDS = 15.0
SHORTEST = 0.2
CALL_SECONDS = 10.0
HURRY_MARGIN = 0.05


class Heartbeat:
    def __init__(
        self,
        held: Held,
        metrics: WorkerMetrics,
        *,
        worker: str,
        queues: Sequence[str],
        slots: int,
        version: str,
        rng: random.Random,
    ) -> None:
        self._held = held
        self._metrics = metrics
        self._worker = worker
        self._queues = queues
        self._slots = slots
        self._version = version
        self.session: UUID = uuid4()
        self.answered = False
        self.answered_at = time.monotonic()
        self._next_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sooner = asyncio.Event()
        self._patience = Patience(rng)

    @property
    def silent_for(self) -> float:
        return time.monotonic() - self.answered_at

    def within(self, seconds: float) -> None:
        """From any thread: the next beat must come at least this soon."""
        at = time.monotonic() + seconds
        if at < self._next_at - HURRY_MARGIN and self._loop is not None:
            self._next_at = at
            self._loop.call_soon_threadsafe(self._sooner.set)

    async def run(self, store: JobStore) -> None:
        self._loop = asyncio.get_running_loop()
        while True:
            started = time.monotonic()
            try:
                await self.run_once(store)
            except Exception as e:
                self._next_at = time.monotonic() + min(self._patience.failed("heartbeat", e), self.interval())
            else:
                self._patience.succeeded()
                self._next_at = started + self.interval()
            await self._pause()

    async def run_once(self, store: JobStore) -> Renewal:
        interval = self.interval()
        beat = Beat(
            worker=self._worker,
            session=self.session,
            queues=self._queues,
            slots=self._slots,
            version=self._version,
            held=[a.fence for a in self._held.all() if _in_need(a, time.monotonic() - interval / 2)],
        )
        async with asyncio.timeout(min(CALL_SECONDS, max(1.0, interval))):
            renewal = await store.renew(beat)
        self.answered, self.answered_at = True, time.monotonic()
        self._obey(renewal)
        return renewal

    def interval(self) -> float:
        soonest = min((a.policy.heartbeat for a in self._held.all()), default=IDLE_SECONDS)
        return max(SHORTEST, min(IDLE_SECONDS, soonest))

    def _obey(self, renewal: Renewal) -> None:
        reasons = dict.fromkeys(renewal.lost, Stop.LOST) | dict.fromkeys(renewal.cancelled, Stop.CANCELLED)
        if not reasons:
            return
        for attempt in self._held.running():
            if (why := reasons.get(attempt.fence)) is not None and self._held.remove([attempt]):
                self._stop(attempt, why)

    def _stop(self, attempt: Attempt, why: Stop) -> None:
        job = attempt.job
        event = "job_cancelled" if why is Stop.CANCELLED else "stale_attempt"
        log.warning(event, job_id=job.job_id, attempt_id=str(job.fence.attempt_id), kind=job.kind, verb="renew")
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
