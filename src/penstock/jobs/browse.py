"""Looking at jobs, queues and workers. Reads only, over connections whose plans are not pinned."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import asyncpg
import orjson

from penstock.jobs import rows
from penstock.jobs.counting import Count, Estimates, QueueView, count_queues
from penstock.jobs.model import Json, Status
from penstock.kit.errors import Unavailable
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from penstock.kit.db import Db
    from penstock.kit.sqlfile import Statement

SQL = load("penstock.jobs.sql")
BROWSE_SETTINGS = {
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "statement_timeout": "15s",
}
_WORDS = {
    "queued": (Status.READY, Status.SCHEDULED),
    "running": (Status.RUNNING,),
    "parked": (Status.PARKED,),
    "succeeded": (Status.SUCCEEDED,),
    "failed": (Status.FAILED,),
    "cancelled": (Status.CANCELLED,),
}
_WORDS |= {"pending": _WORDS["queued"], "completed": _WORDS["succeeded"]}
StatusWord = Literal["queued", "running", "parked", "succeeded", "failed", "cancelled"]
StatusFilter = Literal["queued", "running", "parked", "succeeded", "failed", "cancelled", "pending", "completed"]
"""Beside our own words those of maintenance clients: `pending` is queued, `completed` is
succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    status: StatusFilter | None = None
    kind: str | None = None
    queue: str | None = None
    group_id: int | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    name: str
    started_at: datetime
    seen_at: datetime
    running: int
    slots: int
    queues: Sequence[str]
    version: str
    seconds_ago: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    at: datetime
    actor: str
    action: str
    subject: str
    detail: Json


class Browser:
    def __init__(self, db: Db) -> None:
        self._db = db
        self._estimates = Estimates()

    async def jobs(
        self, wanted: Filter, *, offset: int = 0, limit: int = 50, ascending: bool = False
    ) -> tuple[list[Json], Count]:
        """One page as it is sent (without payloads and results), and how many fit in all."""
        listing, count, values = _statements(wanted, ascending=ascending)
        page, total = await self._page(listing, count, values, offset, limit)
        return [rows.job_summary(row) for row in page], total

    async def live_with(self, fragment: Json, *, limit: int = 20) -> tuple[list[int], int]:
        """The first jobs that are not over and have this in their payload, and how many there are."""
        text = orjson.dumps(fragment).decode()
        found = await self._db.fetch(SQL.live_with, fragment=text, limit=limit)
        return [r["job_id"] for r in found], found[0]["total"] if found else 0

    async def queues(self) -> list[QueueView]:
        with _in_time():
            async with self._db.transaction() as tx:
                return await count_queues(tx)

    async def workers(self, *, seconds: int = 300) -> list[WorkerView]:
        return [WorkerView(**dict(r)) for r in await self._db.fetch(SQL.workers, seconds=seconds)]

    async def audit(
        self, subject: str | None = None, *, offset: int = 0, limit: int = 50, ascending: bool = False
    ) -> tuple[list[AuditEntry], Count]:
        """One page, and how many entries there are in all."""
        listing = SQL.audit_list.ascending() if ascending else SQL.audit_list
        found, total = await self._page(listing, SQL.audit_count, {"subject": subject}, offset, limit)
        return [AuditEntry(**(dict(r) | {"detail": orjson.loads(r["detail"])})) for r in found], total

    async def _page(
        self, listing: Statement, counting: Statement, values: dict[str, object], offset: int, limit: int
    ) -> tuple[list[asyncpg.Record], Count]:
        with _in_time():
            async with self._db.statements() as tx:
                page = await tx.fetch(listing, **values, offset=offset, limit=limit)
                seen = offset + len(page)
                if len(page) < limit and (page or not offset):
                    return page, Count(value=seen, estimated=False)
                total = await self._estimates.count(tx, counting, values)
                return page, replace(total, value=max(total.value, seen)) if page else total


@contextmanager
def _in_time() -> Iterator[None]:
    try:
        yield
    except asyncpg.QueryCanceledError as e:
        raise Unavailable("The list took too long to make.", hint="Narrow the filter, or page less far.") from e


def _statements(wanted: Filter, *, ascending: bool) -> tuple[Statement, Statement, dict[str, object]]:
    values: dict[str, object] = {
        name: getattr(wanted, name) for name in ("kind", "queue", "group_id", "created_after", "created_before")
    }
    if wanted.status is None:
        listing, count = SQL.list_all, SQL.count_all
    else:
        statuses = _WORDS[wanted.status]
        values["statuses"] = list(statuses)
        over = statuses[0].over
        listing, count = (SQL.list_ended, SQL.count_ended) if over else (SQL.list_live, SQL.count_live)
    return listing.ascending() if ascending else listing, count, values
