"""The last will: what happens to the attempts of a worker that must go.

It runs on the sideline, so a handler's thread that is stuck in a driver, or an event loop that is,
cannot keep it from being done. Asked to stop, the worker claims no more and has `grace` seconds to
end what it has begun; a kind that fails when it is interrupted has none, for what it holds must be
free soon. Then the handlers are cancelled and have a moment to tidy up, and whatever is left is
written from here: handed back, or failed where the kind says so, each under its fence, and so are
answers that nobody could deliver. All of it is over within two seconds of the end of the grace.
What could not be written is lost to us, and comes back through the reaper.
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
from penstock.worker.attempt import Attempt, Held, Phase, Writing
from penstock.worker.failure import final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from penstock.jobs.contract import JobStore
    from penstock.worker.delivery import Delivery

log = logging.get(__name__)
TIDY_SECONDS = 0.5
WRITE_SECONDS = 0.9
AGAIN_SECONDS = 0.1
FAREWELL_SECONDS = 0.2
RECEIVED_SIGTERM = "Worker received SIGTERM"


def parting(attempt: Attempt) -> Writing:
    """What an attempt says that is interrupted because its worker must go."""
    if attempt.policy.on_sigterm == "fail":
        return final(WORKER_STOPPED, RECEIVED_SIGTERM)
    return Release(fence=attempt.fence, reason=RECEIVED_SIGTERM)


class ShutdownHandler:
    def __init__(self, held: Held, delivery: Delivery, *, worker: str, session: UUID) -> None:
        self._held = held
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
        """From any thread, any number of times; the earliest end of the grace stands."""
        self._deadline = min(time.monotonic() + grace, self._deadline)
        self._asked = True
        self._notify()

    async def run(self, store: JobStore) -> None:
        self._loop = asyncio.get_running_loop()
        await self._until(lambda: self._asked)
        self._held.on_change = self._notify
        await self._until(lambda: self._held.drained or self._deadline < float("inf"))
        if time.monotonic() < self._deadline:
            hasty = [a for a in self._held.running() if a.policy.on_sigterm == "fail"]
            await self._end(lambda: [a for a in hasty if a.phase is not Phase.GONE], store)
        await self._until(lambda: self._held.drained or time.monotonic() >= self._deadline)
        if not self._held.drained:
            await self._end(self._held.all, store)
        with suppress(Exception):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await store.farewell(self._worker, self._session)
        self.done.set_result(len(self._held))

    async def _end(self, left: Callable[[], Sequence[Attempt]], store: JobStore) -> None:
        """Interrupt those that are left, give them a moment, and write what is left then."""
        for attempt in left():
            if attempt.phase is Phase.RUNNING:
                attempt.stop(Stop.SHUTDOWN)
        until = time.monotonic() + TIDY_SECONDS
        await self._until(lambda: not left() or time.monotonic() >= until, until)
        for attempt in left():
            self._held.end(attempt, parting(attempt))
        await self._write(left, store)

    async def _write(self, left: Callable[[], Sequence[Attempt]], store: JobStore) -> None:
        until = time.monotonic() + WRITE_SECONDS
        while (attempts := left()) and (seconds := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._delivery.write(store, attempts)
            except Exception as e:
                log.warning("last_will_not_written", attempts=len(attempts), error=type(e).__name__)
                await asyncio.sleep(AGAIN_SECONDS)

    async def _until(self, true: Callable[[], bool], deadline: float | None = None) -> None:
        """Looks again at every change, and when the deadline is there; that of the grace unless
        another is given."""
        while not true():
            self._changed.clear()
            left = (self._deadline if deadline is None else deadline) - time.monotonic()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), None if left == float("inf") else left)

    def _notify(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the sideline is closed
                self._loop.call_soon_threadsafe(self._changed.set)
