"""Background loops: one concern each, with a `run_once()` that can be called by a test, a trigger
or the clock.

A loop that is `exclusive` runs in one process of the whole deployment at a time: it holds a
PostgreSQL advisory lock while it works and skips its turn when another has it. A loop survives its
own errors, and counts itself.

Every process has the loop, so that any can take over. A `Board` that all of them share tells when
the last pass was, whoever made it: a process whose turn comes too early waits for the rest of the
time. At its start, and when it is triggered, a loop runs whatever the board says.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

from penstock.kit import logging
from penstock.kit.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.kit.db import Db

log = logging.get(__name__)
SHORTEST_NOTED = 5.0
"""A loop that is brisker than this is not written on the board at each pass, and runs wherever it
stands."""
TURN_SECONDS = 1.0
"""How soon a triggered loop looks again whether the process that has the turn is done."""


class Counted(Protocol):
    """What a pass returns: small, frozen, and false when there was nothing to do."""

    @property
    def total(self) -> int: ...


R = TypeVar("R", bound=Counted)


class Board(Protocol):
    """The passes of all processes."""

    async def due_in(self, name: str) -> float:
        """Seconds until the next pass is due; nothing or less when it is."""
        ...

    async def ran(self, name: str, status: str, *, every: float) -> None: ...


class LoopMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.runs = Counter(
            "background_job_execution",
            "Passes of background loops.",
            ["job_name", "status"],
            registry=registry,
        )
        self.duration = Histogram(
            "background_job_execution_duration_seconds",
            "Length of a pass.",
            ["job_name"],
            registry=registry,
        )


class Loop(Generic[R]):
    name: str
    exclusive: bool = True

    def __init__(self, db: Db, *, every: float, metrics: LoopMetrics) -> None:
        self._db = db
        self._every = every
        self._metrics = metrics
        self._board: Board | None = None
        self._noted = (float("-inf"), "")
        self._early = 0.0
        self._trigger = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.last_run: float | None = None
        self.last_status: str | None = None

    @property
    def every(self) -> float:
        return self._every

    async def run_once(self) -> R:
        raise NotImplementedError

    def start(self, board: Board | None = None) -> None:
        self._board = board
        self._task = asyncio.create_task(self._run(), name=f"loop-{self.name}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def trigger(self) -> None:
        """Run the next pass now."""
        self._trigger.set()

    async def _run(self) -> None:
        await self.pass_()
        while True:
            asked = await self._asked_within(self._early or self._every * random.uniform(0.9, 1.1))  # noqa: S311
            status = await self.pass_(if_due=not asked)
            if asked and status == "skipped":
                self._trigger.set()
                await asyncio.sleep(TURN_SECONDS)

    async def _asked_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._trigger.wait(), seconds)
        asked = self._trigger.is_set()
        self._trigger.clear()
        return asked

    async def pass_(self, *, if_due: bool = False) -> str:
        """One guarded pass; returns success, skipped (another process has the turn, or had it
        lately), or failed."""
        started = time.monotonic()
        try:
            async with self._turn() as mine:
                status = (
                    await self._work()
                    if mine and (not if_due or await self._is_due())
                    else "skipped"
                )
        except DatabaseUnavailable:
            status = "failed"
            log.warning("loop_waits_for_database", loop=self.name)
        except Exception:
            status = "failed"
            log.exception("loop_failed", loop=self.name)
        if status != "skipped":
            self.last_run, self.last_status = time.time(), status
        self._metrics.runs.labels(self.name, status).inc()
        self._metrics.duration.labels(self.name).observe(time.monotonic() - started)
        return status

    async def _work(self) -> str:
        """The pass and the note of it, both while the turn is ours."""
        self._early = 0.0
        try:
            result = await self.run_once()
        except DatabaseUnavailable:
            raise
        except Exception:
            log.exception("loop_failed", loop=self.name)
            status = "failed"
        else:
            status = "success"
            if result.total:
                log.info("loop_passed", loop=self.name, result=str(result))
        await self._note(status)
        return status

    async def _note(self, status: str) -> None:
        """A brisk loop's pass is news when it ends otherwise than the last, or when that is some
        time ago."""
        if self._board is None:
            return
        at, message = self._noted
        if (
            self._every >= SHORTEST_NOTED
            or status != message
            or time.monotonic() - at >= SHORTEST_NOTED
        ):
            await self._board.ran(self.name, status, every=self._every)
            self._noted = (time.monotonic(), status)

    async def _is_due(self) -> bool:
        if self._board is None or not self.exclusive or self._every < SHORTEST_NOTED:
            return True
        self._early = max(0.0, await self._board.due_in(self.name))
        return not self._early

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[bool]:
        if not self.exclusive:
            yield True
            return
        key = int.from_bytes(
            hashlib.sha256(f"penstock.loop.{self.name}".encode()).digest()[:8], signed=True
        )
        async with self._db.turn(key) as mine:
            yield mine
