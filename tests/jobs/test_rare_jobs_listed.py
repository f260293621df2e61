"""A page of what few jobs among many have: of a queue, a kind, a group, of any status, from either
end. It is found by indexes, right after a burst of enqueues and whatever the statistics say.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from prometheus_client import CollectorRegistry

from penstock.jobs.browser import BROWSE_SETTINGS, Browser, Filter
from penstock.jobs.list_index import STRETCH_PAGES, ListIndex
from penstock.kit.db import Db, Tx
from penstock.kit.loop import LoopMetrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.jobs.browser import StatusFilter
    from penstock.kit.sqlfile import Statement

ROWS = 300_000
PAGE = 50
MOST_PAGES_READ = 3_200
"""The newest 500 jobs with their lookups, the stretches of ten rare ones, and some. Both tables
have more pages than that."""
GROUP = 7
RARE_STATUSES = {
    1: "queued", 2: "queued", 3: "queued", 4: "running", 5: "parked", 6: "parked",
    7: "failed", 8: "failed", 9: "succeeded", 10: "succeeded",
}  # fmt: skip
"""Job 30,000 is the first rare one."""
FEW = ("ready", "ready", "scheduled", "running", "parked", "parked", "failed", "failed", "ok", "ok")
_FILL = f"""
INSERT INTO penstock.job (job_id, lease_s, timeout_s, max_attempts, priority, group_id, kind,
  queue, payload)
SELECT n, 60, 600, 3, 5, CASE WHEN n % 30000 = 0 THEN {GROUP} END,
       CASE WHEN n % 30000 = 0 THEN 'rare' ELSE 'common' END,
       CASE WHEN n % 30000 = 0 THEN 'rare' ELSE 'large' END, '{{}}'
FROM generate_series(FIRST, LAST) n;
CREATE TEMP TABLE state AS
SELECT n AS job_id, CASE WHEN n % 30000 = 0 THEN (ARRAY{list(FEW)})[n / 30000]
                         WHEN n % 3 = 0 THEN 'ok' WHEN n % 100 = 1 THEN 'failed'
                         WHEN n % 100 = 2 THEN 'parked' WHEN n % 3 = 1 THEN 'scheduled'
                         WHEN n % 10000 = 5 THEN 'running' ELSE 'ready' END AS state
FROM generate_series(FIRST, LAST) n;
INSERT INTO penstock.live (job_id, order_key, queue, group_id, status, attempt_id, lease_until,
  wake_at)
SELECT job_id, job_id, queue, group_id,
       CASE state WHEN 'ready' THEN 0 WHEN 'running' THEN 1 WHEN 'parked' THEN 2 ELSE 3 END,
       CASE WHEN state = 'running' THEN gen_random_uuid() END,
       CASE WHEN state = 'running' THEN now() + interval '1 hour' END,
       CASE WHEN state IN ('parked', 'scheduled') THEN now() + interval '1 hour' END
FROM state JOIN penstock.job USING (job_id) WHERE state NOT IN ('ok', 'failed')
ORDER BY job_id;
INSERT INTO penstock.outcome (job_id, attempt_no, status)
SELECT job_id, 1, CASE WHEN state = 'ok' THEN 10 ELSE 11 END
FROM state WHERE state IN ('ok', 'failed');
DROP TABLE state
"""


def rows(first: int, last: int) -> str:
    return _FILL.replace("FIRST", str(first)).replace("LAST", str(last))


BY_ITSELF = """
ALTER TABLE penstock.job SET (autovacuum_enabled = off);
ALTER TABLE penstock.live SET (autovacuum_enabled = off);
ALTER INDEX penstock.job_where SET (autosummarize = off)
"""
FILTERS: dict[str, dict[str, Any]] = {
    "queue": {"queue": "rare"},
    "kind": {"kind": "rare"},
    "group": {"group_id": GROUP},
    "queue and kind": {"queue": "rare", "kind": "rare"},
    "queue and group": {"queue": "rare", "group_id": GROUP},
    "queue of none": {"queue": "none"},
    "kind that the queue has not": {"queue": "large", "kind": "rare"},
}


@pytest.fixture(scope="module", params=["stale", "fresh"])
async def table(lasting_database: str, request: pytest.FixtureRequest) -> str:
    """Nothing but us refreshes statistics or summaries."""
    connection = await asyncpg.connect(lasting_database)
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM penstock.job)"):
        await connection.execute(BY_ITSELF)
        await connection.execute(rows(1, 3_000))
        await connection.execute("ANALYZE")
        await connection.execute(rows(3_001, ROWS), timeout=120)
    if request.param == "fresh":
        await connection.execute("ANALYZE")
    await connection.close()
    return lasting_database


@pytest.fixture
async def pages_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each statement that was sent, in their order."""
    pages: list[int] = []
    fetch = Tx.fetch

    async def counting(tx: Tx, statement: Statement, **values: Any) -> list[asyncpg.Record]:
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}"
        text = await tx.connection.fetchval(explain, *statement.bind(values))
        plan = json.loads(text)[0]["Plan"]
        pages.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        return await fetch(tx, statement, **values)

    monkeypatch.setattr(Tx, "fetch", counting)
    return pages


@pytest.fixture
async def db(table: str) -> AsyncIterator[Db]:
    async with Db(table, settings=BROWSE_SETTINGS) as db:
        await list_index(db).run_once()
        yield db


def list_index(db: Db) -> ListIndex:
    return ListIndex(db, every=10, metrics=LoopMetrics(CollectorRegistry()))


def expected(filters: dict[str, Any], status: StatusFilter | None) -> list[int]:
    if "none" in filters.values() or "large" in filters.values():
        return []
    return [30_000 * n for n, word in RARE_STATUSES.items() if status in (None, word)]


@pytest.mark.parametrize("ascending", [False, True], ids=["newest", "oldest"])
@pytest.mark.parametrize("filtered", FILTERS)
@pytest.mark.parametrize("status", [None, "queued", "running", "parked", "failed", "succeeded"])
async def test_a_page_of_few_jobs_is_found_by_an_index(
    db: Db, pages_read: list[int], status: StatusFilter | None, filtered: str, ascending: bool
) -> None:
    filters = FILTERS[filtered]
    page, total = await Browser(db).jobs(
        Filter(status=status, **filters), limit=PAGE, ascending=ascending
    )
    ids = expected(filters, status)
    assert [job["id"] for job in page] == (ids if ascending else ids[::-1])
    assert total.value == len(ids)
    assert sum(pages_read) <= MOST_PAGES_READ, pages_read


@pytest.mark.parametrize("filters", [{"queue": "large"}, {"kind": "common"}])
@pytest.mark.parametrize("status", [None, "queued", "parked", "failed", "succeeded"])
async def test_a_page_of_what_most_jobs_have_is_read_from_the_end(
    db: Db, pages_read: list[int], status: StatusFilter | None, filters: dict[str, Any]
) -> None:
    page, _ = await Browser(db).jobs(Filter(status=status, **filters), limit=PAGE)
    assert len(page) == PAGE
    assert sum(pages_read) <= MOST_PAGES_READ, pages_read


async def test_pages_of_few_jobs_follow_each_other(db: Db) -> None:
    browser = Browser(db)
    pages = [
        await browser.jobs(Filter(queue="rare", status="queued"), offset=offset, limit=1)
        for offset in range(4)
    ]
    ids = [job["id"] for page, _ in pages for job in page]
    assert ids == [90_000, 60_000, 30_000]


@pytest.fixture
async def connection(database: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(database)
    await connection.execute(BY_ITSELF)
    yield connection
    await connection.close()


async def test_a_stretch_is_summarized_once_it_is_full(
    database: str, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    async with Db(database) as db:
        loop = list_index(db)
        assert (await loop.run_once()).total == 0
        await connection.execute(rows(1, 20_000))
        pages = await connection.fetchval("SELECT pg_relation_size('penstock.job') / 8192")
        stretches = pages // STRETCH_PAGES
        # PostgreSQL makes the first one with the index.
        assert (await loop.run_once()).total == stretches - 1
        assert (await loop.run_once()).total == 0
        await connection.execute(rows(20_001, 40_000))
        assert (await loop.run_once()).total > 0


async def test_a_vacuum_that_is_under_way_is_left_alone(
    database: str, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    await connection.execute(rows(1, 20_000))
    async with Db(database) as db:
        loop = list_index(db)
        async with connection.transaction():
            await connection.execute("LOCK TABLE penstock.job IN SHARE UPDATE EXCLUSIVE MODE")
            assert (await loop.run_once()).total == 0
        assert (await loop.run_once()).total > 0
