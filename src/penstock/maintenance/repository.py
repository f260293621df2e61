"""The health of tables, maintenance jobs and their outcomes in PostgreSQL, and the pointers of the
shared catalog.

The control plane's: `service`, the planner and the internal API call it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import orjson

from penstock.kit.sqlfile import load
from penstock.maintenance.payloads import OtherTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    import asyncpg

    from penstock.kit.db import Db, Tx
    from penstock.kit.json_value import JsonObject, JsonValue
    from penstock.maintenance.payloads import TableName
    from penstock.maintenance.tables.assessment.facts import Facts, StoredFacts
    from penstock.maintenance.tables.assessment.health import Health, StoredHealth

SQL = load("penstock.maintenance.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTable:
    """A table as of the last refresh."""

    catalog: str
    db: str
    table: str
    enabled: bool | None
    """None if the table could not be read; then `error` is set and `score` is None."""
    score: int | None
    facts: StoredFacts
    health: StoredHealth
    error: str | None
    seen_at: datetime


class EndedAction(TypedDict):
    """An action as an attempt ended it; `result` is its `Outcome`."""

    action: str
    status: str
    attempt_id: UUID
    ended_at: datetime
    result: JsonObject


class MaintenanceStore:
    def __init__(self, db: Db) -> None:
        self._db = db

    # tables

    async def record_table(
        self, name: TableName, facts: Facts, health: Health, *, enabled: bool
    ) -> None:
        await self._db.changed(
            SQL.table_put,
            **name.values(),
            enabled=enabled,
            score=health.score,
            facts=dump(facts.to_json()),
            health=dump(health.to_json()),
            error=None,
        )

    async def record_error(self, name: TableName, error: str) -> None:
        values = {"enabled": None, "score": None, "facts": "{}", "health": "{}", "error": error}
        await self._db.changed(SQL.table_put, **name.values(), **values)

    async def seen(self, name: TableName) -> SeenTable | None:
        row = await self._db.row(SQL.table_get, **name.values())
        return None if row is None else _seen(row)

    async def tables(
        self,
        *,
        catalog: str | None = None,
        db: str | None = None,
        enabled: bool | None = None,
        level: str | None = None,
        limit: int = 10_000,
        offset: int = 0,
    ) -> tuple[list[SeenTable], int]:
        """Unreadable tables (level `unreadable`) first, then by score, lowest first."""
        rows = await self._db.fetch(
            SQL.table_list,
            catalog=catalog,
            db=db,
            enabled=enabled,
            level=level,
            limit=limit,
            offset=offset,
        )
        return [_seen(row) for row in rows], rows[0]["total"] if rows else 0

    async def forget_others(self, catalog: str, names: Sequence[tuple[str, str]]) -> int:
        dbs, tables = [db for db, _ in names], [table for _, table in names]
        return await self._db.changed(SQL.table_forget, catalog=catalog, dbs=dbs, names=tables)

    async def freshness(self) -> list[asyncpg.Record]:
        return await self._db.fetch(SQL.table_status)

    # jobs and their actions

    async def add_job(
        self,
        tx: Tx,
        job_id: int,
        name: TableName,
        *,
        run_id: int | None,
        policy: str | None,
        snapshot_id: int | None,
    ) -> None:
        values = {"run_id": run_id, "policy": policy, "snapshot_id": snapshot_id}
        await tx.changed(SQL.job_add, job_id=job_id, **name.values(), **values)

    async def history(
        self, name: TableName, *, limit: int, offset: int
    ) -> tuple[list[asyncpg.Record], int]:
        rows = await self._db.fetch(SQL.job_history, **name.values(), limit=limit, offset=offset)
        return rows, rows[0]["total"] if rows else 0

    async def last_jobs(self, name: TableName) -> list[asyncpg.Record]:
        return await self._db.fetch(SQL.job_last, **name.values())

    async def action_ended(
        self, tx: Tx, job_id: int, attempt_id: UUID, result: Mapping[str, JsonValue]
    ) -> None:
        await tx.changed(
            SQL.action_put,
            job_id=job_id,
            attempt_id=attempt_id,
            action=result["action"],
            status=result["status"],
            result=dump(result),
        )

    async def actions(self, job_id: int) -> list[EndedAction]:
        rows = await self._db.fetch(SQL.action_list, job_id=job_id)
        return [
            {
                "action": row["action"],
                "status": row["status"],
                "attempt_id": row["attempt_id"],
                "ended_at": row["ended_at"],
                "result": orjson.loads(row["result"]),
            }
            for row in rows
        ]

    # the pointers of a catalog that lives in this database

    async def pointer(self, tx: Tx, name: TableName) -> str | None:
        location: str | None = await tx.value(SQL.pointer_get, **name.values())
        return location

    async def swap(self, tx: Tx, name: TableName, old: str, new: str) -> bool:
        """Whether the pointer is at `new` now; also True if an earlier call moved it there."""
        if await tx.changed(SQL.pointer_swap, **name.values(), old=old, new=new) == 1:
            return True
        return await self.pointer(tx, name) == new

    async def other_tables(
        self,
        tx: Tx,
        name: TableName,
        shared: Sequence[str],
    ) -> list[OtherTable]:
        """All other tables of the `shared` catalogs, which live in this database, and the tables of
        other catalogs except the table's own, as of their last refresh.
        """
        here: list[asyncpg.Record] = []
        if shared and await tx.value(SQL.pointer_any):
            here = await tx.fetch(SQL.pointer_others, **name.values())
        elsewhere = await tx.fetch(SQL.table_locations, catalogs=[*shared, name.catalog])
        pointers = [
            OtherTable(catalog=catalog, db=db, table=table, metadata_location=location)
            for catalog, db, table, location in here
        ]
        return pointers + [
            OtherTable(catalog=catalog, db=db, table=table, location=location)
            for catalog, db, table, location in elsewhere
        ]


def _seen(row: asyncpg.Record) -> SeenTable:
    return SeenTable(
        catalog=row["catalog"],
        db=row["db"],
        table=row["table_name"],
        enabled=row["enabled"],
        score=row["score"],
        facts=orjson.loads(row["facts"]),
        health=orjson.loads(row["health"]),
        error=row["error"],
        seen_at=row["seen_at"],
    )


def dump(value: object) -> str:
    return orjson.dumps(value).decode()
