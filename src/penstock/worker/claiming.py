"""Claiming: one claimer for the whole process.

It begins with the registration of this process under the worker's name, before which nothing is
claimed.

While there is work, a turn is one `exchange`: what ended goes out and as many new jobs come in, in
one round trip; what ends meanwhile gathers for the next turn. When there is none, a long poll waits
for the next job, and endings do not wait behind it: they are finished at once. There is never more
than one claim under way, so the slots cannot be overdrawn.
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
"""Of a poll's length: workers that started together do not ask together for ever."""
OLDER_POLL_SECONDS = 20.0
"""What a control plane of an older release lets a claim wait."""
EARLY_SECONDS = 0.2
DOUBT_SECONDS = 2.0
LAST_POLL_SECONDS = 0.25
"""A poll that is out when we stop may be bringing jobs: this long it is awaited, then given up."""


class Claimer:
    def __init__(
        self,
        store: JobStore,
        delivery: Delivery,
        outbox: ResultBuffer,
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
        self._outbox = outbox
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
        self._patience = ReconnectBackoff(rng)
        self._reached = False
        self._hopeless: Exception | None = None
        self._closing = asyncio.Event()
        self.closed = asyncio.Event()
        self.is_waiting = False
        """Whether the control plane has a long poll of ours, and so knows that we are here."""

    def close(self) -> None:
        """Claim no more; answers are still delivered. `closed` is set when no claim is under way."""
        self._closing.set()
        self._outbox.news.set()

    async def run(self) -> None:
        """Until cancelled; raises what makes it senseless to go on."""
        await self._register()
        self._outbox.news.set()
        while True:
            await self._outbox.news.wait()
            self._outbox.news.clear()
            if self._closing.is_set() and not self.closed.is_set():
                await self._last_poll()
            try:
                await self._turn()
            except Exception as e:
                await self._pause(self._failed("exchange", e))
                self._outbox.news.set()
            if self._hopeless is not None:
                raise self._hopeless

    async def _register(self) -> None:
        """Until it is done, or nothing will be claimed any more."""
        while not self._closing.is_set():
            try:
                before = await self._store.register(self._registration)
            except Exception as e:
                await self._pause(self._failed("register", e))
                if self._hopeless is not None:
                    raise self._hopeless from None
            else:
                self._reached = True
                self._patience.succeeded()
                self._report(before)
                self._registered()
                return

    def _report(self, before: Registered) -> None:
        if before.shared:
            log.error("worker_name_shared", worker=self._registration.worker, hint=OWN_NAME)
        elif before.requeued or before.failed:
            log.info("worker_took_over", requeued=before.requeued, failed=before.failed)

    async def _turn(self) -> None:
        batch = self._outbox.take()
        try:
            await self._pass_on(batch)
        except BaseException:
            self._outbox.put_back(batch)
            raise

    async def _pass_on(self, batch: Sequence[Attempt]) -> None:
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
        await self._bring(claimed)
        return bool(claimed)

    async def _bring(self, claimed: Sequence[Claimed]) -> None:
        self._reached = True
        self._answered()
        self._patience.succeeded()
        if not claimed:
            return
        self._take(claimed)
        if self._once_until is not None:
            self._closing.set()
        # One pass of the loop: jobs that need no more than that go back with the next exchange.
        await asyncio.sleep(0)
        self._outbox.news.set()

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
            await self._bring(claimed)
            if not claimed:
                await self._nothing(time.monotonic() - began < wait / 2)
        except Exception as e:
            self._doubted(0.0)
            await self._pause(self._failed("claim", e))
        finally:
            self._poll = None
            self._outbox.news.set()

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

    async def _nothing(self, early: bool) -> None:
        if self._too_late():
            self._closing.set()
        elif early:
            # The control plane is on its way out, which a thousand questions a second do not
            # hasten, or this session is over, which the answer to a heartbeat says.
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
        """A refusal before the first success is a wrong setting, and one job awaited in vain is an
        answer too."""
        refused = isinstance(error, PenstockError) and not error.retryable and not self._reached
        if refused or (self._too_late() and not self._closing.is_set()):
            self._hopeless = error
        return self._patience.failed(call, error)

    async def _pause(self, seconds: float) -> None:
        """Being told to close cuts it short, so that an idle worker leaves at once also during an
        outage."""
        if self._closing.is_set():
            await asyncio.sleep(seconds)
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)

    def _too_late(self) -> bool:
        return self._once_until is not None and time.monotonic() >= self._once_until
