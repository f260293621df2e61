"""Reads jobs, queues and workers for people, over connections whose plans are not pinned."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import asyncpg
import orjson

from penstock.jobs import row_mapping
from penstock.jobs.model import Json, Status
from penstock.jobs.row_counts import Count, Estimates, QueueView, count_queues
from penstock.kit.errors import Unavailable
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from penstock.kit.db import Db, Tx
    from penstock.kit.sqlfile import Statement

SQL = load("penstock.jobs.sql")
BROWSE_SETTINGS = {
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "enable_seqscan": "off",  # nor a table from end to end, whatever the statistics say
    "max_parallel_workers_per_gather": "0",
    "statement_timeout": "15s",
}
StatusWord = Literal["queued", "running", "parked", "succeeded", "failed", "cancelled"]
StatusFilter = Literal[
    "queued", "running", "parked", "succeeded", "failed", "cancelled", "pending", "completed"
]
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


_FILTERED = ("kind", "queue", "group_id", "created_after", "created_before")
WALKED = 500
"""Jobs that are looked at from the list's end before those that a filter lets through are looked
for by themselves: of a common queue they hold a page, whatever the statistics say."""


@dataclass(frozen=True, slots=True)
class _List:
    """The statements of a page and of its count, and what they ask beside the filter; `find` is
    for a filter that few of the newest jobs pass."""

    page: Statement
    count: Statement
    find: Statement | None
    page_values: dict[str, object] = field(default_factory=dict)
    more_values: dict[str, object] = field(default_factory=dict)
    """Of `count` and `find`."""


def _live(page: Statement, *statuses: Status) -> _List:
    more: dict[str, object] = {"statuses": statuses}
    return _List(page, SQL.count_live, SQL.find_live, {}, more)


def _ended(status: Status) -> _List:
    values: dict[str, object] = {"status": status}
    return _List(SQL.list_ended, SQL.count_ended, SQL.find_ended, values, values)


_ALL = _List(SQL.list_all, SQL.count_all, SQL.find_all)
_LISTS: dict[StatusFilter, _List] = {
    "queued": _live(SQL.list_queued, Status.READY, Status.SCHEDULED),
    "running": _List(SQL.list_running, SQL.count_live, None, {}, {"statuses": [Status.RUNNING]}),
    "parked": _live(SQL.list_parked, Status.PARKED),
    "succeeded": _ended(Status.SUCCEEDED),
    "failed": _ended(Status.FAILED),
    "cancelled": _ended(Status.CANCELLED),
}
_LISTS |= {"pending": _LISTS["queued"], "completed": _LISTS["succeeded"]}


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
        self, filters: Filter, *, offset: int = 0, limit: int = 50, ascending: bool = False
    ) -> tuple[list[Json], Count]:
        """One page as it is sent (without payloads and results), and how many fit in all."""
        jobs = _ALL if filters.status is None else _LISTS[filters.status]
        fields: dict[str, object] = {name: getattr(filters, name) for name in _FILTERED}
        with _in_time():
            async with self._db.statements() as tx:
                page = await _page_of_jobs(tx, jobs, fields, offset, limit, ascending=ascending)
                count_values = fields | jobs.more_values
                total = await self._total(tx, page, jobs.count, count_values, offset, limit)
        return [row_mapping.job_summary(row) for row in page], total

    async def live_with(self, fragment: Json, *, limit: int = 20) -> tuple[list[int], int]:
        """The first jobs that are not over and have this in their payload, and how many there
        are.
        """
        text = orjson.dumps(fragment).decode()
        rows = await self._db.fetch(SQL.live_with, fragment=text, limit=limit)
        return [r["job_id"] for r in rows], rows[0]["total"] if rows else 0

    async def queues(self) -> list[QueueView]:
        with _in_time():
            async with self._db.transaction() as tx:
                return await count_queues(tx)

    async def workers(self, *, seconds: int = 300) -> list[WorkerView]:
        return [WorkerView(**dict(r)) for r in await self._db.fetch(SQL.workers, seconds=seconds)]

    async def audit(
        self,
        subject: str | None = None,
        *,
        offset: int = 0,
        limit: int = 50,
        ascending: bool = False,
    ) -> tuple[list[AuditEntry], Count]:
        """One page, and how many entries there are in all."""
        listing = SQL.audit_list.ascending() if ascending else SQL.audit_list
        fields: dict[str, object] = {"subject": subject}
        with _in_time():
            async with self._db.statements() as tx:
                rows = await tx.fetch(listing, **fields, offset=offset, limit=limit)
                total = await self._total(tx, rows, SQL.audit_count, fields, offset, limit)
        return [
            AuditEntry(**(dict(r) | {"detail": orjson.loads(r["detail"])})) for r in rows
        ], total

    async def _total(
        self,
        tx: Tx,
        page: Sequence[asyncpg.Record],
        counting: Statement,
        values: dict[str, object],
        offset: int,
        limit: int,
    ) -> Count:
        seen = offset + len(page)
        if len(page) < limit and (page or not offset):
            return Count(value=seen, estimated=False)
        total = await self._estimates.count(tx, counting, values)
        return replace(total, value=max(total.value, seen)) if page else total


async def _page_of_jobs(
    tx: Tx, jobs: _List, fields: dict[str, object], offset: int, limit: int, *, ascending: bool
) -> list[asyncpg.Record]:
    page = jobs.page.ascending() if ascending else jobs.page
    values = fields | jobs.page_values
    if jobs.find is None:
        return await tx.fetch(page, **values, offset=offset, limit=limit)
    values |= {"job_ids": None, "walked": None}
    if all(value is None for value in fields.values()):
        return await tx.fetch(page, **values, offset=offset, limit=limit)
    if offset + limit <= WALKED:
        newest = values | {"walked": WALKED}
        rows = await tx.fetch(page, **newest, offset=offset, limit=limit)
        if len(rows) == limit:
            return rows
    in_queue = jobs.page is SQL.list_queued and fields["queue"] is not None
    find = SQL.find_queued_in_queue if in_queue else jobs.find
    more = {} if in_queue else jobs.more_values
    find = find.ascending() if ascending else find
    matches = await tx.fetch(find, **fields, **more, offset=offset, limit=limit)
    if not matches:
        return []
    values |= {"job_ids": [row["job_id"] for row in matches]}
    return await tx.fetch(page, **values, offset=0, limit=limit)


@contextmanager
def _in_time() -> Iterator[None]:
    try:
        yield
    except asyncpg.QueryCanceledError as e:
        raise Unavailable(
            "The list took too long to make.", hint="Narrow the filter, or page less far."
        ) from e
