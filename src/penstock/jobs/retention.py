"""Retention: partitions are made ahead of time and dropped whole; what else a job left goes in small batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit.loop import Loop, LoopMetrics
from penstock.kit.sqlfile import load, parse

if TYPE_CHECKING:
    from penstock.kit.db import Db

SQL = load("penstock.jobs.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    jobs: int = 0
    partitions: int = 0

    @property
    def total(self) -> int:
        return self.jobs + self.partitions


class Retention(Loop[Forgotten]):
    name = "retention"

    def __init__(self, db: Db, *, every: float, metrics: LoopMetrics, days: int, batch: int = 5000) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._days = days
        self._batch = batch

    async def run_once(self) -> Forgotten:
        await self._db.fetch(SQL.partitions)
        jobs = 0
        while removed := await self._db.changed(SQL.forget, days=self._days, limit=self._batch):
            jobs += removed
        partitions = await self._drop_partitions()
        await self._db.changed(SQL.forget_groups, days=self._days)
        await self._db.changed(SQL.forget_audit, days=self._days)
        await self._db.changed(SQL.forget_workers)
        return Forgotten(jobs=jobs, partitions=partitions)

    async def _drop_partitions(self) -> int:
        """Only empty ones: a job that outlived its month is still in `job` and keeps its outcome."""
        dropped = 0
        for row in await self._db.fetch(SQL.old_partitions, days=self._days):
            table = f'penstock."{row["name"]}"'
            async with self._db.transaction() as tx:
                if not await tx.value(parse("any", f"SELECT EXISTS (SELECT FROM {table})")):
                    await tx.fetch(parse("drop", f"DROP TABLE {table}"))
                    dropped += 1
        return dropped
