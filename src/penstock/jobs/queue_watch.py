"""One poll of the queues on behalf of every claimer of this process that waits.

Claimers are woken by notifications. What sends none (a job that comes due, a lost notification, a
claimer that died between its look and its commit) is seen here: every two seconds, or when the next
job is due, one query covers all queues that are waited for. So a thousand waiting claimers cost no
more than one. A queue that was seen empty, and has not been announced since, needs no first look
either.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.kit.background import BackgroundTask
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.jobs.announcer import Announcer
    from penstock.jobs.notifier import Notifier
    from penstock.kit.background import BackgroundHealth
    from penstock.kit.db import Db

SQL = load("penstock.jobs.sql")
LOOK_SECONDS = 2.0
SHORTEST_PAUSE = 0.02
PROMOTE_BATCH = 1000


class QueueWatch:
    def __init__(
        self, db: Db, notifier: Notifier, announcer: Announcer, health: BackgroundHealth
    ) -> None:
        self._db = db
        self._notifier = notifier
        self._announcer = announcer
        self._awaited: Counter[str] = Counter()
        self._somebody_waits = asyncio.Event()
        self._empty: dict[str, int] = {}
        self._looked_at = -LOOK_SECONDS
        self._task = BackgroundTask("queue watch", self._run, health)

    def start(self) -> None:
        self._task.start()

    async def stop(self) -> None:
        await self._task.stop()

    @contextmanager
    def awaiting(self, queues: Sequence[str]) -> Iterator[None]:
        self._awaited.update(queues)
        self._somebody_waits.set()
        try:
            yield
        finally:
            self._awaited.subtract(queues)
            self._awaited += Counter()

    def all_empty(self, queues: Sequence[str]) -> bool:
        """Whether a look at these queues would find nothing, as far as this process has heard."""
        fresh = time.monotonic() - self._looked_at < 2 * LOOK_SECONDS
        return (
            fresh
            and self._notifier.listening.is_set()
            and all(self._empty.get(queue) == self._notifier.heard((queue,)) for queue in queues)
        )

    async def promote(self) -> bool:
        """Make due jobs ready, and announce them."""
        ready = await self._db.fetch(
            SQL.promote, limit=PROMOTE_BATCH, announce=self._announcer.uses_outbox
        )
        for row in ready:
            self._announcer.ready(row["queue"], row["order_key"])
        return bool(ready)

    async def _run(self) -> None:
        while True:
            if not self._awaited:
                self._somebody_waits.clear()
                await self._somebody_waits.wait()
            due_in = await self._look()
            self._task.works()
            await asyncio.sleep(max(SHORTEST_PAUSE, min(LOOK_SECONDS, due_in)))

    async def _look(self) -> float:
        """In how many seconds the next job is due."""
        await self.promote()
        queues = list(self._awaited)
        heard = {queue: self._notifier.heard((queue,)) for queue in queues}
        heads = {
            row["queue"]: row["order_key"] for row in await self._db.fetch(SQL.heads, queues=queues)
        }
        self._empty = {queue: heard[queue] for queue in queues if queue not in heads}
        self._looked_at = time.monotonic()
        for queue, order_key in heads.items():
            self._notifier.wake(queue, order_key)
        due_in = await self._db.value(SQL.next_due)
        return LOOK_SECONDS if due_in is None else float(due_in)
