"""Makes it known that a job became ready: by NOTIFY, or through the outbox of a message transport.

With the outbox, each statement that makes jobs ready writes a row for each of them, so an
announcement commits with what it announces. What happens here after the commit only saves time: the
waiters of this process are woken and the relay is told to look.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from penstock.jobs.model import JobId
    from penstock.jobs.notifier import Notifier


class Outbox:
    """What the store tells the transport that empties the outbox."""

    def __init__(self) -> None:
        self._written: list[asyncio.Event] = []
        self._watchers: list[Callable[[Collection[JobId]], None]] = []

    def listen(self) -> asyncio.Event:
        """An event that is set whenever rows may have been written."""
        event = asyncio.Event()
        self._written.append(event)
        return event

    def on_left(self, watch: Callable[[Collection[JobId]], None]) -> None:
        """Call `watch` with jobs that may no longer be ready or running."""
        self._watchers.append(watch)

    def written(self) -> None:
        for event in self._written:
            event.set()

    def left(self, job_ids: Collection[JobId]) -> None:
        for watch in self._watchers:
            watch(job_ids)


class Announcer:
    def __init__(self, notifier: Notifier, outbox: Outbox | None = None) -> None:
        self._notifier = notifier
        self._outbox = outbox

    @property
    def uses_outbox(self) -> bool:
        """Whether statements write what they make ready into the outbox."""
        return self._outbox is not None

    def ready(self, queue: str, order_key: int) -> None:
        """Announce that a queue got work; called after its commit."""
        if self._outbox is None:
            self._notifier.ring(queue, order_key)
        else:
            self._notifier.wake(queue, order_key)
            self._outbox.written()

    def left(self, job_ids: Collection[JobId]) -> None:
        """Tell that these jobs were ended, parked or handed back; called after the commit."""
        if self._outbox is not None:
            self._outbox.left(job_ids)
