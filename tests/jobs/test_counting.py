"""Counts are exact where they are cheap; beyond, they are estimates that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.jobs import row_counts
from penstock.jobs.browser import BROWSE_SETTINGS, Browser, Filter
from penstock.kit.db import Db

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.jobs.row_counts import QueueView

    Connection = asyncpg.Connection[asyncpg.Record]

READY, RUNNING, PARKED, SCHEDULED = range(4)
ADD = """
WITH added AS (
  INSERT INTO penstock.job (job_id, lease_s, timeout_s, max_attempts, priority, kind, queue,
    payload)
  SELECT nextval('penstock.job_id'), 60, 600, 3, 5, 'work', $1, '{}' FROM generate_series(1, $3)
    RETURNING job_id)
INSERT INTO penstock.live (job_id, order_key, status, queue, wake_at, lease_until, attempt_id)
SELECT job_id, job_id, $2::smallint, $1, CASE WHEN $2::smallint IN (2, 3) THEN now() + interval
  '1 hour' END,
       CASE WHEN $2::smallint = 1 THEN now() + interval '1 hour' END,
       CASE WHEN $2::smallint = 1 THEN gen_random_uuid() END
FROM added
"""


@pytest.fixture
async def table(database: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


@pytest.fixture
async def browser(database: str) -> AsyncIterator[Browser]:
    async with Db(database, settings=BROWSE_SETTINGS) as db:
        yield Browser(db)


async def add(table: Connection, queue: str, status: int, rows: int) -> None:
    await table.execute(ADD, queue, status, rows)


def view(
    queue: str, ready: int = 0, running: int = 0, parked: int = 0, scheduled: int = 0
) -> tuple[object, ...]:
    return queue, ready, running, parked, scheduled


def counts(views: list[QueueView]) -> list[tuple[object, ...]]:
    return [view(v.queue, v.ready, v.running, v.parked, v.scheduled) for v in views]


async def test_small_tables_are_counted(table: Connection, browser: Browser) -> None:
    await add(table, "a", READY, 3)
    await add(table, "b", PARKED, 2)
    views = await browser.queues()
    assert counts(views) == [view("a", ready=3), view("b", parked=2)]
    assert not any(v.estimated for v in views)
    assert views[0].oldest_wait is not None
    assert views[1].oldest_wait is None


async def test_queues_of_a_large_table_are_counted_by_their_indexes_up_to_the_bound(
    table: Connection, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_counts, "SMALL_TABLE_PAGES", -1)
    monkeypatch.setattr(row_counts, "QUEUE_BOUND", 10)
    monkeypatch.setattr(row_counts, "OTHERS_BOUND", 10)
    await add(table, "a", READY, 9)
    await add(table, "b", RUNNING, 5)
    await add(table, "b", READY, 1)
    await add(table, "c", RUNNING, 4)
    await add(table, "d", PARKED, 4)
    await add(table, "d", SCHEDULED, 5)
    exact = [
        view("a", ready=9),
        view("b", ready=1, running=5),
        view("c", running=4),
        view("d", parked=4, scheduled=5),
    ]
    views = await browser.queues()
    assert counts(views) == exact
    assert not any(v.estimated for v in views)


async def test_only_what_passes_the_bound_is_estimated(
    table: Connection, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample is the whole table here, so that the estimates can be told."""
    monkeypatch.setattr(row_counts, "SMALL_TABLE_PAGES", -1)
    monkeypatch.setattr(row_counts, "QUEUE_BOUND", 10)
    monkeypatch.setattr(row_counts, "OTHERS_BOUND", 10)
    await add(table, "large", READY, 200)
    await add(table, "small", READY, 9)
    await add(table, "waiting", SCHEDULED, 30)
    await add(table, "waiting", RUNNING, 3)
    views = {v.queue: v for v in await browser.queues()}
    assert counts(list(views.values())) == [
        view("large", ready=200),
        view("small", ready=9),
        view("waiting", running=3, scheduled=30),
    ]
    assert views["large"].estimated
    assert views["waiting"].estimated
    assert views["small"].ready == 9


async def test_an_estimate_is_near_and_never_below_what_was_counted(
    table: Connection, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_counts, "SMALL_TABLE_PAGES", 0)
    monkeypatch.setattr(row_counts, "QUEUE_BOUND", 100)
    await add(table, "large", READY, 20_000)
    pages = await table.fetchval("SELECT pg_relation_size('penstock.live') / 8192")
    monkeypatch.setattr(row_counts, "SAMPLED_PAGES", pages // 2)
    [queue] = await browser.queues()
    assert queue.estimated
    assert 10_000 < queue.ready < 30_000


async def test_a_list_is_counted_if_that_is_cheap_and_estimated_otherwise(
    table: Connection, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(table, "a", READY, 2_000)
    await table.execute("ANALYZE penstock.live; ANALYZE penstock.job")
    for filters in (Filter(), Filter(status="queued"), Filter(queue="a")):
        _, exact = await browser.jobs(filters, limit=50)
        assert (exact.value, exact.estimated) == (2_000, False), filters
    monkeypatch.setattr(row_counts, "CHEAP_COST", 0)
    for filters in (Filter(), Filter(status="queued"), Filter(queue="a")):
        _, estimate = await browser.jobs(filters, limit=50)
        assert estimate.estimated, filters
        assert 1_000 < estimate.value < 4_000, filters


async def test_the_last_page_tells_the_total(
    table: Connection, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_counts, "CHEAP_COST", 0)
    await add(table, "a", READY, 60)
    page, total = await browser.jobs(Filter(), offset=50, limit=50)
    assert (len(page), total.value, total.estimated) == (10, 60, False)
    page, total = await browser.jobs(Filter(), offset=100, limit=50)
    assert not page
    assert total.estimated
    page, total = await browser.jobs(Filter(kind="none"))
    assert (page, total.value, total.estimated) == ([], 0, False)
