"""Background loops: one concern each, with a `run_once()` that can be called by a test, a trigger or the clock.

A loop that is `exclusive` runs in one process of the whole deployment at a time: it holds a PostgreSQL advisory lock
while it works and skips its turn when another has it. A loop survives its own errors, and counts itself.
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


class Counted(Protocol):
    """What a pass returns: small, frozen, and false when there was nothing to do."""

    @property
    def total(self) -> int: ...


R = TypeVar("R", bound=Counted)


class LoopMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.runs = Counter(
            "background_job_execution", "Passes of background loops.", ["job_name", "status"], registry=registry
        )
        self.duration = Histogram(
            "background_job_execution_duration_seconds", "Length of a pass.", ["job_name"], registry=registry
        )


class Loop(Generic[R]):
    name: str
    exclusive: bool = True

    def __init__(self, db: Db, *, every: float, metrics: LoopMetrics) -> None:
        self._db = db
        self._every = every
        self._metrics = metrics
        self._trigger = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.last_run: float | None = None
        self.last_status: str | None = None

    async def run_once(self) -> R:
        raise NotImplementedError

    def start(self) -> None:
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
        while True:
            await self.pass_()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._trigger.wait(), self._every * random.uniform(0.9, 1.1))  # noqa: S311
            self._trigger.clear()

    async def pass_(self) -> str:
        """One guarded pass; returns success, skipped (another process has the turn), or failed."""
        started = time.monotonic()
        try:
            async with self._turn() as mine:
                status = await self._work() if mine else "skipped"
        except DatabaseUnavailable:
            status = "failed"
            log.warning("loop_waits_for_database", loop=self.name)
        except Exception:
            status = "failed"
            log.exception("loop_failed", loop=self.name)
        self.last_run, self.last_status = time.time(), status
        self._metrics.runs.labels(self.name, status).inc()
        self._metrics.duration.labels(self.name).observe(time.monotonic() - started)
        return status

    async def _work(self) -> str:
        result = await self.run_once()
        if result.total:
            log.info("loop_passed", loop=self.name, result=str(result))
        return "success"

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[bool]:
        if not self.exclusive:
            yield True
            return
        async with self._db.connection() as connection:
            key = int.from_bytes(hashlib.sha256(f"penstock.loop.{self.name}".encode()).digest()[:8], signed=True)
            mine: bool = await connection.fetchval("SELECT pg_try_advisory_lock($1)", key)
            try:
                yield mine
            finally:
                if mine and not connection.is_closed():
                    await connection.fetchval("SELECT pg_advisory_unlock($1)", key)
