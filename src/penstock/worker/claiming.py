"""Claims jobs for the whole process.

The claimer first registers this process under the worker's name; nothing is claimed before.

While there is work, each round is one `exchange`: it writes outcomes and claims new jobs in one
round trip; outcomes that arrive meanwhile wait for the next round. Without work, a long poll waits
for the next job, and outcomes are written at once. At most one claim is in progress, so the number
of slots is never exceeded.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.kit.backoff import ReconnectBackoff
from penstock.kit.errors import InvalidInput, PenstockError
from penstock.worker.delivery import ends
from penstock.worker.heartbeat import OWN_NAME

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from penstock.jobs.contract import JobStore
    from penstock.jobs.model import Claimed, Registered, Registration
    from penstock.worker.attempt import Attempt
    from penstock.worker.delivery import Delivery
    from penstock.worker.result_buffer import ResultBuffer

log = logging.get(__name__)
POLL_SECONDS = 50.0
SHORTEST_POLL = 0.8
"""Fraction of the poll time: spreads the polls of workers that started together."""
OLDER_POLL_SECONDS = 20.0
"""The longest wait that control planes of older releases accept."""
EARLY_SECONDS = 0.2
DOUBT_SECONDS = 2.0
LAST_POLL_SECONDS = 0.25
"""On shutdown, a pending poll may return jobs: wait this long, then cancel it."""


class Claimer:
    def __init__(
        self,
        store: JobStore,
        delivery: Delivery,
        results: ResultBuffer,
        *,
        registration: Registration,
        registered: Callable[[], None],
        room: Callable[[], int],
        take: Callable[[Sequence[Claimed]], None],
        answered: Callable[[], None],
        doubted: Callable[[float], None],
        rng: random.Random,
        once: float | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._store = store
        self._delivery = delivery
        self._results = results
        self._registration = registration
        self._registered = registered
        self._room = room
        self._take = take
        self._answered = answered
        self._doubted = doubted
        self._poll_seconds = poll_seconds
        self._once_until = None if once is None else time.monotonic() + once
        self._poll: asyncio.Task[None] | None = None
        self._rng = rng
        self._backoff = ReconnectBackoff(rng)
        self._reached = False
        self._fatal: Exception | None = None
        self._closing = asyncio.Event()
        self.closed = asyncio.Event()
        self.is_waiting = False
        """Whether a long poll is pending, which tells the control plane that this worker lives."""

    def close(self) -> None:
        """Stop claiming; outcomes are still delivered. `closed` is set when no claim is pending."""
        self._closing.set()
        self._results.news.set()

    async def run(self) -> None:
        """Run until cancelled; raises a fatal error."""
        await self._register()
        self._results.news.set()
        while True:
            await self._results.news.wait()
            self._results.news.clear()
            if self._closing.is_set() and not self.closed.is_set():
                await self._last_poll()
            try:
                await self._deliver_and_claim()
            except Exception as e:
                await self._pause(self._failed("exchange", e))
                self._results.news.set()
            if self._fatal is not None:
                raise self._fatal

    async def _register(self) -> None:
        """Retry until registered or closing."""
        while not self._closing.is_set():
            try:
                before = await self._store.register(self._registration)
            except Exception as e:
                await self._pause(self._failed("register", e))
                if self._fatal is not None:
                    raise self._fatal from None
            else:
                self._reached = True
                self._backoff.succeeded()
                self._report(before)
                self._registered()
                return

    def _report(self, before: Registered) -> None:
        if before.shared:
            log.error("worker_name_shared", worker=self._registration.worker, hint=OWN_NAME)
        elif before.requeued or before.failed:
            log.info("worker_took_over", requeued=before.requeued, failed=before.failed)

    async def _deliver_and_claim(self) -> None:
        batch = self._results.take()
        try:
            await self._deliver(batch)
        except BaseException:
            self._results.put_back(batch)
            raise

    async def _deliver(self, batch: Sequence[Attempt]) -> None:
        endings = [a for a in batch if ends(a)]
        if len(endings) < len(batch):
            await self._delivery.write(self._store, [a for a in batch if not ends(a)])
        room = 0 if self._closing.is_set() or self._poll is not None else self._room()
        if not room:
            await self._delivery.write(self._store, endings)
        elif not endings or not await self._exchange(endings, room):
            self._start_poll()

    async def _exchange(self, endings: Sequence[Attempt], room: int) -> bool:
        claimed = await self._delivery.exchange(self._store, endings, self._registration, room)
        await self._accept(claimed)
        return bool(claimed)

    async def _accept(self, claimed: Sequence[Claimed]) -> None:
        self._reached = True
        self._answered()
        self._backoff.succeeded()
        if not claimed:
            return
        self._take(claimed)
        if self._once_until is not None:
            self._closing.set()
        # One pass of the loop: outcomes of very short jobs go into the next exchange.
        await asyncio.sleep(0)
        self._results.news.set()

    def _start_poll(self) -> None:
        if not self._closing.is_set() and (room := self._room()):
            self._poll = asyncio.create_task(self._poll_once(room), name="poll")

    async def _poll_once(self, room: int) -> None:
        began = time.monotonic()
        wait = self._poll_seconds * self._rng.uniform(SHORTEST_POLL, 1.0)
        if self._once_until is not None:
            wait = max(0.0, min(wait, self._once_until - began))
        try:
            claimed = await self._waiting_claim(room, wait)
            await self._accept(claimed)
            if not claimed:
                await self._on_empty_poll(time.monotonic() - began < wait / 2)
        except Exception as e:
            self._doubted(0.0)
            await self._pause(self._failed("claim", e))
        finally:
            self._poll = None
            self._results.news.set()

    async def _waiting_claim(self, room: int, wait: float) -> Sequence[Claimed]:
        me = self._registration
        self.is_waiting = True
        try:
            return await self._store.claim(
                me.worker, me.queues, room, wait=wait, session=me.session
            )
        except InvalidInput:
            self._poll_seconds = min(self._poll_seconds, OLDER_POLL_SECONDS)
            raise
        finally:
            self.is_waiting = False

    async def _on_empty_poll(self, early: bool) -> None:
        if self._too_late():
            self._closing.set()
        elif early:
            # An early empty answer: the control plane is shutting down (do not flood it), or this
            # session was superseded (the next heartbeat will tell).
            self._doubted(DOUBT_SECONDS * self._rng.random())
            await self._pause(EARLY_SECONDS * self._rng.uniform(0.5, 1.0))

    async def _last_poll(self) -> None:
        if self._poll is not None:
            await asyncio.wait({self._poll}, timeout=LAST_POLL_SECONDS)
        if self._poll is not None:
            self._poll.cancel()
            await asyncio.wait({self._poll})
        self.closed.set()

    def _failed(self, call: str, error: Exception) -> float:
        """A refusal before the first success is a configuration error, hence fatal; so is any
        error after the waiting time of `once`."""
        refused = isinstance(error, PenstockError) and not error.retryable and not self._reached
        if refused or (self._too_late() and not self._closing.is_set()):
            self._fatal = error
        return self._backoff.failed(call, error)

    async def _pause(self, seconds: float) -> None:
        """`close` interrupts the pause, so an idle worker exits at once even during an outage."""
        if self._closing.is_set():
            await asyncio.sleep(seconds)
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)

    def _too_late(self) -> bool:
        return self._once_until is not None and time.monotonic() >= self._once_until
