"""How the graphs stand as a whole, for operators: reads only, a fixed number of queries each."""

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
    """Those that the limits count."""
    without_pod_name: int

    @property
    def total(self) -> int:
        return sum(self.by_status.values())


class Overview:
    def __init__(self, db: Db, pools: Sequence[Db] = ()) -> None:
        self._db = db
        self._pools = pools

    def connections(self) -> dict[str, int]:
        """Those of this process."""
        found = [pool.connections() for pool in self._pools]
        return {state: sum(each[state] for each in found) for state in ("active", "idle")}

    async def use(self) -> dict[str, int]:
        """Bytes and counts of everything, by the names of the figures."""
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
        """One page of the export jobs of all snapshots, and how many there are."""
        statement = SQL.export_list.ascending() if ascending else SQL.export_list
        wanted = {"status": status, "snapshot_id": snapshot_id, "job_id": None}
        found = await self._db.fetch(statement, **wanted, offset=offset, limit=limit)
        if not found and offset:
            beyond = await self._db.fetch(statement, **wanted, offset=0, limit=1)
            return [], beyond[0]["total"] if beyond else 0
        return [_summary(row) for row in found], found[0]["total"] if found else 0

    async def export_job(self, job_id: int) -> ExportSummary:
        found = await self._db.fetch(
            SQL.export_list, status=None, snapshot_id=None, job_id=job_id, offset=0, limit=1
        )
        if not found:
            raise NotFound(f"There is no export job {job_id}.")
        return _summary(found[0])

    async def exports_by_status(self) -> dict[str, int]:
        return _counts(await self._db.fetch(SQL.export_states))

    async def snapshots_by_status(self) -> dict[str, int]:
        return _counts(await self._db.fetch(SQL.snapshot_states))

    async def instances(self) -> Instances:
        found = await self._db.fetch(SQL.instance_states)
        by_status: dict[str, int] = {}
        by_owner: dict[str, int] = {}
        for row in found:
            by_status[row["status"]] = by_status.get(row["status"], 0) + row["count"]
            by_owner[row["owner_username"]] = by_owner.get(row["owner_username"], 0) + row["count"]
        return Instances(
            by_status=by_status,
            by_owner=by_owner,
            used=sum(row["used"] for row in found),
            without_pod_name=sum(row["without_pod_name"] for row in found),
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
