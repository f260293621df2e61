"""Heartbeats of waiting workers: one statement for all of a process, a few times a minute.

A worker that runs nothing has no lease to renew, and its long poll says as much as a heartbeat
would. So it hardly beats while it waits, and thousands of idle workers cost a control plane next to
nothing.

A waiting worker whose session is over (another process registered its name) gets an empty answer.
If its process is alive it sends a heartbeat, which alone proves that it is.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from penstock.kit.background import BackgroundTask
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from penstock.jobs.notifier import Line
    from penstock.kit.background import BackgroundHealth
    from penstock.kit.db import Db

SQL = load("penstock.jobs.sql")
NOTE_SECONDS = 15.0
"""Well within the grace of the reaper, which asks whether any worker could be heard lately."""


@dataclass(frozen=True, slots=True)
class Waiting:
    worker: str
    session: UUID


class Presence:
    """`async with Presence(db, health) as presence:`; a long poll waits inside `presence.of(…)`."""

    def __init__(self, db: Db, health: BackgroundHealth) -> None:
        self._db = db
        self._waiting: dict[Line, Waiting] = {}
        self._task = BackgroundTask("presence of workers", self._run, health)

    async def __aenter__(self) -> Self:
        self._task.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._task.stop()

    @contextmanager
    def of(self, worker: str, session: UUID, line: Line) -> Iterator[None]:
        self._waiting[line] = Waiting(worker, session)
        try:
            yield
        finally:
            del self._waiting[line]

    async def run_once(self) -> int:
        """Write the heartbeats; returns how many waiting workers were woken because their
        session is over.
        """
        waiting = dict(self._waiting)
        if not waiting:
            return 0
        rows = await self._db.fetch(
            SQL.workers_waiting,
            names=[worker.worker for worker in waiting.values()],
            sessions=[worker.session for worker in waiting.values()],
        )
        over = {row["session"] for row in rows}
        lines = [line for line, worker in waiting.items() if worker.session in over]
        for line in lines:
            line.hang_up()
        return len(lines)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            await self.run_once()
            self._task.works()
