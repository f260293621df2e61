"""Retention: partitions are made ahead of time and dropped whole; what else a job left goes in
small batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from penstock.kit import logging
from penstock.kit.loop import Loop, LoopMetrics
from penstock.kit.sqlfile import load, parse

if TYPE_CHECKING:
    from penstock.kit.db import Db
    from penstock.kit.sqlfile import Statement

SQL = load("penstock.jobs.sql")
log = logging.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    jobs: int = 0
    partitions: int = 0

    @property
    def total(self) -> int:
        return self.jobs + self.partitions


class Retention(Loop[Forgotten]):
    name = "retention"

    def __init__(
        self, db: Db, *, every: float, metrics: LoopMetrics, days: int, batch: int = 5000
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._days = days
        self._batch = batch

    async def run_once(self) -> Forgotten:
        await self._briefly(SQL.partitions)
        jobs = 0
        while removed := await self._db.changed(SQL.forget, days=self._days, limit=self._batch):
            jobs += removed
        partitions = await self._drop_partitions()
        await self._db.changed(SQL.forget_groups, days=self._days)
        await self._db.changed(SQL.forget_audit, days=self._days)
        await self._db.changed(SQL.forget_workers)
        await self._db.changed(SQL.forget_sessions)
        return Forgotten(jobs=jobs, partitions=partitions)

    async def _drop_partitions(self) -> int:
        """Only empty ones: a job that outlived its month is still in `job` and keeps its
        outcome.
        """
        dropped = 0
        for row in await self._db.fetch(SQL.old_partitions, days=self._days):
            table = f'penstock."{row["name"]}"'
            if not await self._db.value(parse("any", f"SELECT EXISTS (SELECT FROM {table})")):
                dropped += await self._briefly(parse("drop", f"DROP TABLE {table}"))
        return dropped

    async def _briefly(self, statement: Statement) -> bool:
        """Whether it could be done at once: every end queues up behind whoever waits to change the
        partitions."""
        try:
            async with self._db.transaction() as tx:
                await tx.fetch(parse("patience", "SET LOCAL lock_timeout = '500ms'"))
                await tx.fetch(statement)
        except asyncpg.LockNotAvailableError:
            log.info("partitions_in_use", statement=statement.name)
            return False
        return True
