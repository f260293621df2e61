"""Wakes waiting claimers within milliseconds, at no cost to the enqueuing transaction.

A NOTIFY inside a transaction makes commits queue up behind each other, so a queue that got work is
noted after the commit and announced on a side connection, at most once per debounce interval. Each
announcement carries the lowest order key that became ready, which lets claimers keep their
low-water marks. One waiter is woken at a time, and one that finds work wakes the next, so a hundred
idle workers do not stampede over one job. A claimer passes the count of notifications that it had
seen before its look, so one that arrives between the look and the wait is not missed. A lost
notification costs a poll, never a job.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.kit.background import BackgroundHealth, BackgroundTask
from penstock.kit.errors import DatabaseUnavailable
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.kit.db import Db

CHANNEL = "penstock_bell"
SQL = load("penstock.jobs.sql")
log = logging.get(__name__)


class Line:
    """A handle on one waiting claimer. Closing it ends the wait, and no claim begins for it
    afterwards.
    """

    def __init__(self) -> None:
        self.dead = False
        self._waiter: asyncio.Future[None] | None = None

    def hang_up(self) -> None:
        self.dead = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def hold(self, waiter: asyncio.Future[None]) -> None:
        self._waiter = waiter
        if self.dead:
            waiter.set_result(None)


class Notifier:
    def __init__(
        self, db: Db, *, debounce: float = 0.008, health: BackgroundHealth | None = None
    ) -> None:
        self._db = db
        self._debounce = debounce
        self._pending: dict[str, int] = {}
        self._ringing = asyncio.Event()
        self._rings: dict[str, int] = {}
        self._waiters: OrderedDict[asyncio.Future[None], frozenset[str]] = OrderedDict()
        self._hearers: list[Callable[[str, int], None]] = []
        health = health or BackgroundHealth()
        self._announcer = BackgroundTask("notification sender", self._announce, health)
        self._listener = BackgroundTask("notification listener", self._listen, health)
        self.listening = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many claimers of this process wait."""
        return len(self._waiters)

    def on_notification(self, hear: Callable[[str, int], None]) -> None:
        self._hearers.append(hear)

    def start(self) -> None:
        self._announcer.start()
        self._listener.start()

    async def stop(self) -> None:
        await self._announcer.stop()
        await self._listener.stop()
        for waiter in self._waiters:
            waiter.cancel()

    def ring(self, queue: str, order_key: int) -> None:
        """Announce that work became ready; called after its commit."""
        self.wake(queue, order_key)
        self._pending[queue] = min(order_key, self._pending.get(queue, order_key))
        self._ringing.set()

    def heard(self, queues: Iterable[str]) -> int:
        """The number of notifications for these queues; read it before a look, and pass it to
        `wait` after one.
        """
        return sum(self._rings.get(queue, 0) for queue in queues)

    def version(self, name: str) -> int | None:
        """The number of notifications for this name; None while the listener is lost and some
        may be missed.
        """
        return self.heard((name,)) if self.listening.is_set() else None

    async def wait(
        self, queues: Sequence[str], timeout: float, *, heard: int, line: Line | None = None
    ) -> bool:
        """Wait until one of the queues is announced or the handle is closed; False when the time
        is up.
        """
        if self.heard(queues) != heard:
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if line is not None:
            line.hold(waiter)
        self._waiters[waiter] = frozenset(queues)
        try:
            await asyncio.wait_for(waiter, timeout)
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.pass_on(queues)
            raise
        finally:
            self._waiters.pop(waiter, None)
        return True

    def pass_on(self, queues: Iterable[str]) -> None:
        """Wake the next waiter of any of the queues.

        A waiter that is done is removed here: when thousands are closed at once, each wakes the
        next and would otherwise look through all the others.
        """
        rung = frozenset(queues)
        done = []
        for waiter, theirs in self._waiters.items():
            if waiter.done():
                done.append(waiter)
            elif theirs & rung:
                waiter.set_result(None)
                break
        for waiter in done:
            del self._waiters[waiter]

    def wake(self, queue: str, order_key: int) -> None:
        """Wake the waiters of this process: work is ready."""
        self._rings[queue] = self._rings.get(queue, 0) + 1
        for hear in self._hearers:
            hear(queue, order_key)
        self.pass_on((queue,))

    async def _announce(self) -> None:
        """Announce at once after a silence; what follows within the debounce interval goes with
        the next announcement.
        """
        while True:
            await self._ringing.wait()
            self._ringing.clear()
            pending, self._pending = self._pending, {}
            for queue, order_key in pending.items():
                try:
                    await self._db.fetch(SQL.notify, message=f"{order_key}:{queue}")
                except DatabaseUnavailable:
                    log.warning("bell_not_rung", queue=queue)
            self._announcer.works()
            await asyncio.sleep(self._debounce)

    async def _listen(self) -> None:
        """Listen until the connection is lost; while there is no listener, claims poll."""
        async with self._db.lasting_connection() as connection:
            gone = asyncio.Event()
            connection.add_termination_listener(_setter(gone))
            await connection.add_listener(CHANNEL, self._on_notify)
            self.listening.set()
            self._listener.works()
            try:
                await gone.wait()
            finally:
                self.listening.clear()

    def _on_notify(self, _connection: object, _pid: int, _channel: str, message: object) -> None:
        order_key, _, queue = str(message).partition(":")
        if order_key.lstrip("-").isdigit():
            self.wake(queue, int(order_key))


def _setter(event: asyncio.Event) -> Callable[[object], None]:
    return lambda _connection: event.set()
