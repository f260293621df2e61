"""Sends progress to the store: the latest of every job, in at most one call per second."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from penstock.jobs.model import ProgressUpdate
from penstock.jobs.row_mapping import dump
from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.worker.attempt import Phase

if TYPE_CHECKING:
    from penstock.jobs.contract import JobStore
    from penstock.jobs.model import Json
    from penstock.worker.attempt import Attempt

log = logging.get(__name__)
PACE = 1.0
MAX_BYTES = 64 * 1024


class Progress:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[Attempt, dict[str, Json]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()

    def note(self, attempt: Attempt, progress: dict[str, Json]) -> None:
        """From any thread."""
        with self._lock:
            first = not self._latest
            self._latest[attempt] = progress
        if first and self._loop is not None:
            self._loop.call_soon_threadsafe(self._news.set)

    async def run(self, store: JobStore) -> None:
        self._loop = asyncio.get_running_loop()
        self._news.set()
        while True:
            await self._news.wait()
            self._news.clear()
            await self.run_once(store)
            await asyncio.sleep(PACE)

    async def run_once(self, store: JobStore) -> int:
        """Write new progress, and return the number of jobs."""
        with self._lock:
            latest, self._latest = self._latest, {}
        updates = [
            u
            for attempt, progress in latest.items()
            if (u := _update(attempt, progress)) is not None
        ]
        if not updates:
            return 0
        try:
            await store.progress(updates)
        except Exception as e:
            log.warning("progress_not_written", jobs=len(updates), error=type(e).__name__)
            self._keep(latest)
        return len(updates)

    def _keep(self, latest: dict[Attempt, dict[str, Json]]) -> None:
        with self._lock:
            self._latest = latest | self._latest
        self._news.set()


def _update(attempt: Attempt, progress: dict[str, Json]) -> ProgressUpdate | None:
    if attempt.phase is not Phase.RUNNING or attempt.stopped is not None:
        return None
    try:
        dump(progress, "progress", MAX_BYTES)
    except PenstockError as e:
        log.warning(
            "progress_refused", job_id=attempt.job.job_id, kind=attempt.job.kind, error=e.message
        )
        return None
    return ProgressUpdate(fence=attempt.fence, progress=progress)
