"""Tasks that run for as long as their process does.

Whatever such a task fails with, it is logged, counted and begun again, later each time. Until it
works again `BackgroundHealth` has the error, and `/ready` shows it.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter

from penstock.kit import logging
from penstock.kit.backoff import Backoff
from penstock.kit.errors import DatabaseUnavailable, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.get(__name__)
RESTART = Backoff(base=0.5, factor=2.0, cap=15.0, least=0.8, most=1.2)
CANCEL_SECONDS = 0.5


async def cancel_until_done(*tasks: asyncio.Task[None]) -> None:
    """Libraries swallow a cancellation now and then; asked again, every task ends."""
    while pending := {task for task in tasks if not task.done()}:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=CANCEL_SECONDS)


class BackgroundHealth:
    """The background tasks of a process that fail at present, and a count of their errors."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.failing: dict[str, str] = {}
        self._errors = Counter(
            "penstock_background_errors",
            "Errors of background tasks.",
            ["task"],
            registry=registry or CollectorRegistry(),
        )

    def failed(self, name: str, error: Exception) -> None:
        self.failing[name] = f"{type(error).__name__}: {error}"[:500]
        self._errors.labels(name).inc()

    def works(self, name: str) -> None:
        self.failing.pop(name, None)


class BackgroundTask:
    """Calls `work` again and again, whether it returns or raises.

    `work` says `works()` when it does what it is there for; that ends the pauses between its tries.
    """

    def __init__(
        self, name: str, work: Callable[[], Awaitable[None]], health: BackgroundHealth
    ) -> None:
        self.name = name
        self._work = work
        self._health = health
        self._tries = 0
        self._rng = random.Random()  # noqa: S311 - it spreads pauses
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_until_done(self._task)

    def works(self) -> None:
        self._tries = 0
        self._health.works(self.name)

    async def _run(self) -> None:
        while True:
            try:
                await self._work()
            except Exception as e:
                self._health.failed(self.name, e)
                if isinstance(e, DatabaseUnavailable):
                    log.warning("background_task_waits_for_database", task=self.name)
                elif isinstance(e, Unavailable):
                    log.warning("background_task_waits", task=self.name, error=str(e))
                else:
                    log.exception("background_task_failed", task=self.name)
            self._tries += 1
            await asyncio.sleep(RESTART.pause(self._tries, self._rng))
