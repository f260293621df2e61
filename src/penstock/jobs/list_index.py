"""Keeps the index that pages of few jobs are found by, `job_where`, up to date.

It holds a summary for each stretch of the table, made once the stretch is full; one without is
searched row by row. PostgreSQL's own autosummarize forgets what a burst of enqueues asks of it, and
then the whole burst is searched until the table is vacuumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from penstock.kit import logging
from penstock.kit.loop import Loop
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from penstock.kit.db import Db
    from penstock.kit.loop import LoopMetrics

SQL = load("penstock.jobs.sql")
log = logging.get(__name__)
STRETCH_PAGES = 32
"""`pages_per_range` of the index."""
BATCH_PAGES = 500 * STRETCH_PAGES
"""About a million jobs, a fraction of a second."""
LOCK_MS = 100
"""Far less than deadlock_timeout, after which an autovacuum that is waited for is cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarized:
    stretches: int = 0

    @property
    def total(self) -> int:
        return self.stretches


class ListIndex(Loop[Summarized]):
    name = "list_index"

    def __init__(self, db: Db, *, every: float, metrics: LoopMetrics) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._next_page = 0

    async def run_once(self) -> Summarized:
        """Summarize the stretches that are full and were not looked at before."""
        pages: int = await self._db.value(SQL.job_pages)
        full = pages - pages % STRETCH_PAGES
        first = min(self._next_page, full)
        stretches = 0
        try:
            while first < full:
                end = min(first + BATCH_PAGES, full)
                stretches += await self._summarize(first, end)
                self._next_page = first = end
        except asyncpg.LockNotAvailableError:
            log.info("list_index_in_use", page=first)
        return Summarized(stretches=stretches)

    async def _summarize(self, first: int, end: int) -> int:
        async with self._db.transaction() as tx:
            await tx.fetch(SQL.lock_timeout, milliseconds=LOCK_MS)
            count: int = await tx.value(SQL.summarize_jobs, first=first, last=end - 1)
        return count
