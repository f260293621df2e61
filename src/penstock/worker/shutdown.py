"""The shutdown handler: ends the attempts of a worker that stops.

It runs in the background thread, so a handler or an event loop that is stuck in a driver cannot
block it. Once asked to stop, the worker claims no more and has `grace` seconds to finish its jobs;
kinds that fail on SIGTERM get no grace, because their resources must be free soon. Then handlers
are cancelled and get a moment to clean up. The remaining attempts are written from here under their
fences, released or failed as the kind says, together with undelivered outcomes. This ends within
two seconds after the grace. What could not be written is requeued later by the reaper.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.jobs.handler import Stop
from penstock.jobs.model import WORKER_STOPPED, Release
from penstock.kit import logging
from penstock.worker.attempt import Attempt, HeldAttempts, Phase, Writing
from penstock.worker.failure import final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from penstock.jobs.contract import JobStore
    from penstock.worker.delivery import Delivery

log = logging.get(__name__)
TIDY_SECONDS = 0.5
WRITE_SECONDS = 0.9
RETRY_SECONDS = 0.1
FAREWELL_SECONDS = 0.2
RECEIVED_SIGTERM = "Worker received SIGTERM"


def interrupted_outcome(attempt: Attempt) -> Writing:
    """The outcome of an attempt that is interrupted because its worker stops."""
    if attempt.policy.on_sigterm == "fail":
        return final(WORKER_STOPPED, RECEIVED_SIGTERM)
    return Release(fence=attempt.fence, reason=RECEIVED_SIGTERM)


class ShutdownHandler:
    def __init__(
        self, attempts: HeldAttempts, delivery: Delivery, *, worker: str, session: UUID
    ) -> None:
        self._attempts = attempts
        self._delivery = delivery
        self._worker = worker
        self._session = session
        self._asked = False
        self._deadline = float("inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self.done: Future[int] = Future()
        """How many attempts could not be written."""

    def ask(self, grace: float) -> None:
        """From any thread, repeatedly; the earliest deadline is kept."""
        self._deadline = min(time.monotonic() + grace, self._deadline)
        self._asked = True
        self._notify()

    async def run(self, store: JobStore) -> None:
        self._loop = asyncio.get_running_loop()
        await self._until(lambda: self._asked)
        self._attempts.on_change = self._notify
        await self._until(lambda: self._attempts.drained or self._deadline < float("inf"))
        if time.monotonic() < self._deadline:
            fail_fast = [a for a in self._attempts.running() if a.policy.on_sigterm == "fail"]
            await self._end(lambda: [a for a in fail_fast if a.phase is not Phase.GONE], store)
        await self._until(lambda: self._attempts.drained or time.monotonic() >= self._deadline)
        if not self._attempts.drained:
            await self._end(self._attempts.all, store)
        with suppress(Exception):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await store.farewell(self._worker, self._session)
        self.done.set_result(len(self._attempts))

    async def _end(self, left: Callable[[], Sequence[Attempt]], store: JobStore) -> None:
        """Stop the remaining attempts, give them a moment, then write what is left."""
        for attempt in left():
            if attempt.phase is Phase.RUNNING:
                attempt.stop(Stop.SHUTDOWN)
        until = time.monotonic() + TIDY_SECONDS
        await self._until(lambda: not left() or time.monotonic() >= until, until)
        for attempt in left():
            self._attempts.end(attempt, interrupted_outcome(attempt))
        await self._write(left, store)

    async def _write(self, left: Callable[[], Sequence[Attempt]], store: JobStore) -> None:
        until = time.monotonic() + WRITE_SECONDS
        while (attempts := left()) and (seconds := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._delivery.write(store, attempts)
            except Exception as e:
                log.warning("last_will_not_written", attempts=len(attempts), error=type(e).__name__)
                await asyncio.sleep(RETRY_SECONDS)

    async def _until(self, condition: Callable[[], bool], deadline: float | None = None) -> None:
        """Wait for a condition, checked at every change, or the deadline (default: the grace)."""
        while not condition():
            self._changed.clear()
            left = (self._deadline if deadline is None else deadline) - time.monotonic()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), None if left == float("inf") else left)

    def _notify(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the background thread has ended
                self._loop.call_soon_threadsafe(self._changed.set)
