"""Read-only overview of exports, snapshots and instances, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from penstock.graphs.snapshots.export_job import Word, message
from penstock.graphs.snapshots.repository import SQL
from penstock.kit.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    import asyncpg

    from penstock.graphs.snapshots.payloads import JobType
    from penstock.kit.db import Db


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSummary:
    job_id: int
    snapshot_id: int
    owner_username: str
    entity_type: JobType
    entity_name: str
    status: Word
    claimed_at: datetime | None
    claimed_by: str | None
    attempts: int
    error_message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    by_status: dict[str, int]
    by_owner: dict[str, int]
    used: int
    """Instances that count against the limits."""
    without_pod_name: int

    @property
    def total(self) -> int:
        return sum(self.by_status.values())


class Overview:
    def __init__(self, db: Db, pools: Sequence[Db] = ()) -> None:
        self._db = db
        self._pools = pools

    def connections(self) -> dict[str, int]:
        """Database connections of this process, by state."""
        counts = [pool.connections() for pool in self._pools]
        return {
            state: sum(pool_counts[state] for pool_counts in counts) for state in ("active", "idle")
        }

    async def use(self) -> dict[str, int]:
        """Bytes and counts of the cluster, by name."""
        [row] = await self._db.fetch(SQL.cluster_use)
        return dict(row)

    async def export_jobs(
        self,
        *,
        status: Word | None = None,
        snapshot_id: int | None = None,
        offset: int = 0,
        limit: int = 50,
        ascending: bool = False,
    ) -> tuple[list[ExportSummary], int]:
        """One page of the export jobs of all snapshots, and the total."""
        statement = SQL.export_list.ascending() if ascending else SQL.export_list
        filters = {"status": status, "snapshot_id": snapshot_id, "job_id": None}
        rows = await self._db.fetch(statement, **filters, offset=offset, limit=limit)
        if not rows and offset:
            beyond = await self._db.fetch(statement, **filters, offset=0, limit=1)
            return [], beyond[0]["total"] if beyond else 0
        return [_summary(row) for row in rows], rows[0]["total"] if rows else 0

    async def export_job(self, job_id: int) -> ExportSummary:
        rows = await self._db.fetch(
            SQL.export_list, status=None, snapshot_id=None, job_id=job_id, offset=0, limit=1
        )
        if not rows:
            raise NotFound(f"There is no export job {job_id}.")
        return _summary(rows[0])

    async def exports_by_status(self) -> dict[str, int]:
        return _counts(await self._db.fetch(SQL.export_states))

    async def snapshots_by_status(self) -> dict[str, int]:
        return _counts(await self._db.fetch(SQL.snapshot_states))

    async def instances(self) -> Instances:
        rows = await self._db.fetch(SQL.instance_states)
        by_status: dict[str, int] = {}
        by_owner: dict[str, int] = {}
        for row in rows:
            by_status[row["status"]] = by_status.get(row["status"], 0) + row["count"]
            by_owner[row["owner_username"]] = by_owner.get(row["owner_username"], 0) + row["count"]
        return Instances(
            by_status=by_status,
            by_owner=by_owner,
            used=sum(row["used"] for row in rows),
            without_pod_name=sum(row["without_pod_name"] for row in rows),
        )


def _counts(rows: Iterable[asyncpg.Record]) -> dict[str, int]:
    return {row["status"]: row["count"] for row in rows}


def _summary(row: asyncpg.Record) -> ExportSummary:
    error = None if row["error"] is None else orjson.loads(row["error"])
    return ExportSummary(
        job_id=row["job_id"],
        snapshot_id=row["snapshot_id"],
        owner_username=row["owner_username"],
        entity_type=row["entity_type"],
        entity_name=row["entity_name"],
        status=row["status"],
        claimed_at=row["claimed_at"],
        claimed_by=row["claimed_by"],
        attempts=row["attempts"],
        error_message=message(error),
    )
