"""Waiting for the ends of chunk jobs.

The gate of staging announces every end in its group (`CHUNKS_ENDED`), whichever process wrote it.
Called by the internal API, for plan jobs that keep a snapshot open until their chunks are over.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.jobs.model import Status
from penstock.jobs.waiters import Waiters
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.jobs.model import JobId
    from penstock.jobs.notifier import Line, Notifier
    from penstock.kit.db import Db

SQL = load("penstock.reconcile.sql")
CHUNKS_ENDED = "chunks"
"""The name of the notification."""


class ChunkEnds:
    def __init__(self, db: Db, notifier: Notifier) -> None:
        self._db = db
        self._notifier = notifier
        self._waiters = Waiters(notifier)

    async def ended(
        self, job_ids: Sequence[JobId], *, wait: float = 0, line: Line | None = None
    ) -> Mapping[JobId, Status]:
        """Those of the jobs that are over; waits up to `wait` seconds for the first of them."""
        until = time.monotonic() + wait
        while True:
            heard = self._notifier.heard((CHUNKS_ENDED,))
            rows = await self._db.fetch(SQL.chunks_ended, job_ids=list(job_ids))
            left = until - time.monotonic()
            if rows or left <= 0 or (line is not None and line.dead):
                return {row["job_id"]: Status(row["status"]) for row in rows}
            await self._waiters.wait((CHUNKS_ENDED,), left, heard=heard, line=line)
