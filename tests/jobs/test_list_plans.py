"""A page of jobs and its count read about a page, however many jobs there are and however old the
statistics are: right after installation, after a burst of enqueues, and after a drain.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.jobs import row_counts
from penstock.jobs.browser import BROWSE_SETTINGS, Browser, Filter
from penstock.kit.db import Db
from penstock.kit.errors import Unavailable
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.jobs.browser import StatusFilter

    Connection = asyncpg.Connection[asyncpg.Record]

SQL = load("penstock.jobs.sql")
ROWS = 50_000
PAGE = 50
MOST_PAGES_READ = 1_000
"""A page of 50 jobs looks up to five indexes for each; reading a table of 50,000 takes more."""
FILTERS = ("kind", "queue", "group_id", "created_after", "created_before")
LISTS: dict[str, dict[str, object]] = {
    "list_all": {},
    "list_queued": {},
    "list_running": {},
    "list_parked": {},
    "list_ended": {"status": 11},
    "list_ended_well": {"status": 10},
}
ENQUEUE = """
WITH added AS (
  INSERT INTO penstock.job (job_id, lease_s, timeout_s, max_attempts, priority, kind, queue,
    payload)
  SELECT nextval('penstock.job_id'), 60, 600, 3, 5, 'work', 'default', '{"n": 1}'
  FROM generate_series(1, $1::int) RETURNING job_id
)
INSERT INTO penstock.live (job_id, order_key, status, queue)
SELECT job_id, job_id, 0, 'default' FROM added
"""
START_AND_PARK_OLD_ONES = """
UPDATE penstock.live SET status = 1, attempt_id = gen_random_uuid(), lease_until = now() + interval
  '1 hour'
WHERE job_id <= 30;
UPDATE penstock.live SET status = 2, wake_at = now() + interval '1 hour' WHERE job_id BETWEEN 31
  AND 60
"""
END_ALL_BUT_THE_FIRST = """
WITH ended AS (DELETE FROM penstock.live WHERE job_id > 60 RETURNING job_id)
INSERT INTO penstock.outcome (job_id, attempt_no, status)
SELECT job_id, 1, CASE WHEN job_id % 1000 = 0 THEN 11 ELSE 10 END FROM ended
"""


@pytest.fixture
async def table(database: str) -> AsyncIterator[Connection]:
    """Nothing refreshes statistics by itself here."""
    connection = await asyncpg.connect(database)
    await connection.execute("""
        ALTER TABLE penstock.job SET (autovacuum_enabled = off);
        ALTER TABLE penstock.live SET (autovacuum_enabled = off)
    """)
    yield connection
    await connection.close()


@pytest.fixture
async def browse(database: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(database, server_settings=BROWSE_SETTINGS)
    yield connection
    await connection.close()


async def pages_read(
    browse: Connection, name: str, filtered: dict[str, object] | None = None
) -> int:
    statement = getattr(SQL, name.removesuffix("_well"))
    page: dict[str, object] = {"offset": 0, "limit": PAGE}
    if name != "list_running":
        page |= {"job_ids": None, "walked": None}
    values = dict.fromkeys(FILTERS) | (filtered or {}) | LISTS[name] | page
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}"
    plan = json.loads(await browse.fetchval(explain, *statement.bind(values)))[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


async def pages_of_all_lists(browse: Connection) -> dict[str, int]:
    return {name: await pages_read(browse, name) for name in LISTS}


async def test_a_page_reads_a_page_after_a_burst_that_no_statistics_know(
    table: Connection, browse: Connection
) -> None:
    await table.execute(ENQUEUE, 100)
    await table.execute("ANALYZE")
    await table.execute(ENQUEUE, ROWS)
    await table.execute(START_AND_PARK_OLD_ONES)
    pages = await pages_of_all_lists(browse)
    assert max(pages.values()) <= MOST_PAGES_READ, pages


async def test_a_page_reads_a_page_with_fresh_statistics(
    table: Connection, browse: Connection
) -> None:
    await table.execute(ENQUEUE, ROWS)
    await table.execute(START_AND_PARK_OLD_ONES)
    await table.execute("ANALYZE")
    pages = await pages_of_all_lists(browse)
    assert max(pages.values()) <= MOST_PAGES_READ, pages


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
async def test_a_page_reads_a_page_after_all_jobs_ended_and_were_vacuumed(
    table: Connection, browse: Connection, statistics: str
) -> None:
    await table.execute(ENQUEUE, ROWS)
    await table.execute("ANALYZE")
    await table.execute(START_AND_PARK_OLD_ONES)
    await table.execute(END_ALL_BUT_THE_FIRST)
    await table.execute("VACUUM penstock.live")
    if statistics == "fresh":
        await table.execute("ANALYZE")
    pages = await pages_of_all_lists(browse)
    assert max(pages.values()) <= MOST_PAGES_READ, pages


@pytest.mark.parametrize(
    ("status", "newest", "oldest"),
    [
        (None, [3003, 3002], [1, 2]),
        ("queued", [3003, 3002], [3001, 3002]),
        ("running", [30, 29], [1, 2]),
        ("parked", [60, 59], [31, 32]),
        ("succeeded", [2999, 2998], [61, 62]),
        ("failed", [3000, 2000], [1000, 2000]),
        ("cancelled", [], []),
    ],
)
async def test_a_list_has_the_jobs_of_its_status_from_either_end(
    table: Connection,
    database: str,
    status: StatusFilter | None,
    newest: list[int],
    oldest: list[int],
) -> None:
    await table.execute(ENQUEUE, 3_000)
    await table.execute(START_AND_PARK_OLD_ONES)
    await table.execute(END_ALL_BUT_THE_FIRST)
    await table.execute(ENQUEUE, 3)
    async with Db(database, settings=BROWSE_SETTINGS) as db:
        browser = Browser(db)
        descending, _ = await browser.jobs(Filter(status=status), limit=2)
        ascending, _ = await browser.jobs(Filter(status=status), limit=2, ascending=True)
    assert [job["id"] for job in descending] == newest
    assert [job["id"] for job in ascending] == oldest


@pytest.mark.parametrize(("more", "estimated"), [(0, False), (1, True)])
async def test_a_count_is_exact_up_to_its_bound_although_the_statistics_are_old(
    table: Connection,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    more: int,
    estimated: bool,
) -> None:
    monkeypatch.setattr(row_counts, "MOST_COUNTED", 500)
    await table.execute("ANALYZE")
    await table.execute(ENQUEUE, 500 + more)
    async with Db(database, settings=BROWSE_SETTINGS) as db:
        _, total = await Browser(db).jobs(Filter(status="queued"), limit=PAGE)
    assert total.estimated == estimated
    assert total.value >= 500 + more


async def test_a_list_that_takes_too_long_is_no_database_that_is_away(
    table: Connection, database: str
) -> None:
    impatient = BROWSE_SETTINGS | {"statement_timeout": "50ms"}
    async with Db(database, settings=impatient) as db, table.transaction():
        await table.execute("LOCK TABLE penstock.job IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable, match="took too long") as caught:
            await Browser(db).jobs(Filter())
    assert caught.value.code == "UNAVAILABLE"
