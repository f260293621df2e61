"""Each statement is prepared against the real schema, and each hot one keeps its index at 50,000
rows.

The kernel's connections pin their plans, so what is explained here is what runs in production: the
generic plan under `ENGINE_SETTINGS`. Budgets are counted, not timed: commits, bytes of write-ahead
log, and pages touched.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from penstock.jobs.browser import BROWSE_SETTINGS
from penstock.jobs.finish_and_claim import NO_MARK
from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.model import Claimed, Ending, JobSpec, Succeeded
from penstock.jobs.row_mapping import CLAIM_COLUMNS
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.sqlfile import load
from tests.conftest import prepare_template
from tests.proof.servers import oldest_server
from tests.proof.tapped import TappedDb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from penstock.kit.postgres import Cluster
    from tests.proof.tapped import TappedConnection

SQL = load("penstock.jobs.sql")
ROWS = 50_000
BATCH = 100
KINDS = Kinds([KindPolicy(name="work")])
HOT = {
    "attempts": {"attempt_job", "live_pkey"},
    "beat": {"worker_session_pkey", "worker_pkey"},
    "by_unique_key": {"job_unique_key"},
    "cancel": {"live_pkey", "job_pkey"},
    "cancel_members": {"live_group", "live_pkey", "job_pkey"},
    "enqueue": set(),
    "enqueue_keyed": set(),
    "exchange": {"live_ready", "live_pkey", "job_pkey", "worker_session_pkey"},
    "expire": {"live_deadline", "live_pkey", "job_pkey"},
    "fence": {"live_pkey"},
    "forget": {"job_pkey", "live_pkey", "attempt_job"},
    "group_fire": {"job_group_pkey", "live_group"},
    "group_join": {"job_group_pkey"},
    "group_lock": {"job_group_pkey"},
    "group_stuck": {"job_group_look"},
    "heads": {"live_ready"},
    "hold": {"live_pkey", "live_lock"},
    "lock_holders": {"live_lock", "job_pkey"},
    "next_due": {"live_due"},
    "park": {"live_pkey"},
    "progress": {"live_pkey"},
    "promote": {"live_due", "live_pkey"},
    "reap": {"live_running", "live_pkey", "job_pkey"},
    "release": {"live_pkey", "job_pkey"},
    "renew": {"live_pkey", "job_pkey", "attempt_job"},
    "repeated": {"attempt_job"},
    "retry": {"live_pkey", "job_pkey"},
    "session_get": {"worker_session_pkey"},
    "session_shared": {"worker_session_worker"},
    "session_supersede": {"worker_session_current"},
    "session_vanished": {"worker_session_worker"},
    "take_over": {"live_running", "live_pkey", "job_pkey"},
    "view": {"job_pkey", "live_pkey"},
}
IN_LOCK_ORDER = {
    "exchange": "result",
    "park": "input",
    "progress": "input",
    "release": "input",
    "retry": "input",
}
"""Statements that wait for several live rows take them in the order of their input, which their
callers sort."""

_FILL = """
INSERT INTO penstock.job_group (group_id, name, payload, opens, deadline)
  SELECT g, 'g', '{}', '{}', now() + interval '1 hour' FROM generate_series(1, 500) g;
INSERT INTO penstock.job (job_id, group_id, lease_s, timeout_s, max_attempts, priority, kind,
  queue, payload, lock_key,
                          unique_key)
  SELECT nextval('penstock.job_id'), CASE WHEN i % 100 = 0 THEN i / 100 % 500 + 1 END, 60, 600, 3,
    5, 'work',
         CASE WHEN i % 10 = 0 THEN 'other' ELSE 'default' END, '{"n": 1}',
         CASE WHEN i % 50 = 0 THEN 'lock ' || i END, CASE WHEN i % 50 = 0 THEN 'key ' || i END
  FROM generate_series(1, 3 * ROWS) i;
INSERT INTO penstock.live (job_id, order_key, group_id, status, queue, wake_at, lock_key, deadline)
  SELECT job_id, job_id, group_id, CASE WHEN job_id % 2 = 0 THEN 0 ELSE 3 END, queue,
         CASE WHEN job_id % 2 = 1 THEN now() + interval '1 day' END, lock_key, now() + interval
           '2 days'
  FROM penstock.job WHERE job_id <= 2 * ROWS;
UPDATE penstock.live SET status = 1, attempt_id = gen_random_uuid(), worker = 'w', claimed_at =
  now(),
  session = gen_random_uuid(), lease_until = now() + interval '1 minute', attempt_no = 1
  WHERE status = 0 AND job_id <= 1000;
INSERT INTO penstock.worker_session (session, worker, ended_at)
  SELECT gen_random_uuid(), 'w' || i % 100, CASE WHEN i >= 100 THEN now() END FROM
    generate_series(0, 4999) i;
INSERT INTO penstock.outcome (job_id, attempt_id, attempt_no, status, claimed_at)
  SELECT job_id, gen_random_uuid(), 1, CASE WHEN job_id % 20 = 0 THEN 11 ELSE 10 END, now()
  FROM penstock.job WHERE job_id > 2 * ROWS;
INSERT INTO penstock.attempt (job_id, attempt_id, attempt_no, how)
  SELECT job_id, gen_random_uuid(), 1, 'lapsed' FROM penstock.job WHERE job_id % 10 = 0;
""".replace("ROWS", str(ROWS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of a plan."""

    kind: str
    role: str
    table: str
    index: str
    children: tuple[Node, ...]

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def reads_first(self) -> Node:
        """The leaf that drives the node's joins."""
        joined = [child for child in self.children if child.role != "InitPlan"]
        return joined[0].reads_first() if joined else self

    def scanned(self) -> set[str]:
        return {n.table for n in self.walk() if n.kind == "Seq Scan"}


def node(plan: dict[str, Any]) -> Node:
    return Node(
        kind=plan["Node Type"],
        role=plan.get("Parent Relationship", ""),
        table=plan.get("Relation Name") or plan.get("CTE Name") or "",
        index=plan.get("Index Name", ""),
        children=tuple(map(node, plan.get("Plans", ()))),
    )


def _plan_of(explained: str) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(explained)[0]["Plan"]
    return plan


@dataclass(frozen=True, slots=True)
class Filled:
    dsn: str
    engine: asyncpg.Connection[asyncpg.Record]
    browser: asyncpg.Connection[asyncpg.Record]
    big: frozenset[str]
    """Tables and partitions that nobody may read from end to end."""

    async def generic(self, name: str) -> Node:
        """The plan that every call on an engine connection gets; a generic plan does not look at
        its values."""
        statement = getattr(SQL, name)
        nulls = ", ".join(["NULL"] * len(statement.parameters))
        await self.engine.execute(f"PREPARE guarded AS {statement.text}")
        explained = await self.engine.fetchval(
            f"EXPLAIN (FORMAT JSON) EXECUTE guarded{f'({nulls})' if nulls else ''}"
        )
        await self.engine.execute("DEALLOCATE guarded")
        return node(_plan_of(explained))

    async def custom(self, name: str, **values: object) -> Node:
        statement = getattr(SQL, name)
        explained = await self.browser.fetchval(
            f"EXPLAIN (FORMAT JSON) {statement.text}", *statement.bind(values)
        )
        return node(_plan_of(explained))


@asynccontextmanager
async def filled(cluster: Cluster) -> AsyncIterator[Filled]:
    admin = await asyncpg.connect(cluster.dsn("postgres"))
    await admin.execute("CREATE DATABASE plans")
    dsn = cluster.dsn("plans")
    await prepare_template(dsn)
    engine = await asyncpg.connect(dsn, server_settings=ENGINE_SETTINGS)
    browser = await asyncpg.connect(dsn, server_settings=BROWSE_SETTINGS)
    await browser.execute("SET statement_timeout = 0")
    await browser.execute(_FILL)
    await browser.execute("VACUUM ANALYZE")
    big = await browser.fetch(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples > 1000"
    )
    yield Filled(dsn, engine, browser, frozenset(r["relname"] for r in big))
    await engine.close()
    await browser.close()
    await admin.execute("DROP DATABASE plans WITH (FORCE)")
    await admin.close()


@pytest.fixture(scope="module", params=["ours", "oldest"])
async def tables(
    request: pytest.FixtureRequest, pg: Cluster, short_dir: Path
) -> AsyncIterator[Filled]:
    """The full tables, on the server of this run and on the oldest that we support."""
    if request.param == "ours":
        async with filled(pg) as filled_tables:
            yield filled_tables
        return
    async with oldest_server(short_dir / "plans") as cluster, filled(cluster) as filled_tables:
        yield filled_tables


async def test_every_statement_fits_the_schema(tables: Filled) -> None:
    for statement in SQL:
        await tables.engine.prepare(statement.text)


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_keeps_its_indexes(tables: Filled, name: str) -> None:
    plan = await tables.generic(name)
    assert tables.big.isdisjoint(plan.scanned())
    assert {n.index for n in plan.walk()} >= HOT[name]


@pytest.mark.parametrize("name", IN_LOCK_ORDER)
async def test_a_statement_takes_its_rows_in_the_order_of_its_input(
    tables: Filled, name: str
) -> None:
    plan = await tables.generic(name)
    writes = [n for n in plan.walk() if n.kind == "ModifyTable" and n.table == "live"]
    assert writes[0].reads_first().table == IN_LOCK_ORDER[name]


async def test_the_guards_see_a_plan_without_an_index(tables: Filled) -> None:
    """A guard that cannot fail guards nothing."""
    await tables.engine.execute("BEGIN; DROP INDEX penstock.live_ready")
    plan = await tables.generic("exchange")
    await tables.engine.execute("ROLLBACK")
    assert "live_ready" not in {n.index for n in plan.walk()}
    assert "live_ready" in {n.index for n in (await tables.generic("exchange")).walk()}


# budgets


async def pages(
    connection: asyncpg.Connection[asyncpg.Record], *, queue: str = "default", mark: int = NO_MARK
) -> int:
    """How many pages one claim of a batch touches; it is undone."""
    values = {
        "job_ids": [],
        "attempt_ids": [],
        "results": None,
        "errors": None,
        "alone": False,
        "worker": "w",
        "session": None,
        "queue": queue,
        "limit": BATCH,
        "mark": mark,
        "polled": None,
    }
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {SQL.exchange.text}"
    await connection.execute("BEGIN")
    plan = _plan_of(await connection.fetchval(explain, *SQL.exchange.bind(values)))
    await connection.execute("ROLLBACK")
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


async def add(
    connection: asyncpg.Connection[asyncpg.Record],
    jobs: int,
    *,
    queue: str,
    run_in: timedelta | None,
) -> None:
    values = dict.fromkeys(SQL.enqueue.parameters) | {
        "payloads": ["{}"] * jobs,
        "force": True,
        "lease_s": 60,
        "timeout_s": 600,
        "max_attempts": 3,
        "priority": 5,
        "kind": "work",
        "queue": queue,
        "ageing_us": 0,
        "run_in": run_in,
    }
    await connection.fetch(SQL.enqueue.text, *SQL.enqueue.bind(values))


async def test_a_claim_touches_as_many_pages_at_any_depth(database: str) -> None:
    engine = await asyncpg.connect(database, server_settings=ENGINE_SETTINGS)
    await add(engine, BATCH, queue="default", run_in=None)
    few = await pages(engine)
    await add(engine, ROWS, queue="default", run_in=None)
    many = await pages(engine)
    await add(engine, ROWS, queue="default", run_in=timedelta(days=1))
    future = await pages(engine)
    await engine.close()
    assert max(many, future) <= 1.5 * few, (
        f"{few} pages at {BATCH} rows, {many} at {ROWS:,}, {future} with as many later"
    )


async def test_a_claim_touches_as_many_pages_while_an_old_transaction_holds_every_dead_row(
    database: str,
) -> None:
    engine = await asyncpg.connect(database, server_settings=ENGINE_SETTINGS)
    await add(engine, ROWS, queue="default", run_in=None)
    fresh = await pages(engine)
    old = await asyncpg.connect(database)
    await old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM penstock.live")
    async with Db(database, size=1, settings=ENGINE_SETTINGS) as db:
        store = PgJobStore(db, KINDS)
        ending: list[Ending] = []
        for _ in range(10):
            done = await store.exchange(ending, "w", ["default"], 1000)
            ending = [Ending(fence=c.fence, outcome=Succeeded()) for c in done.claimed]
        mark = await engine.fetchval("SELECT max(order_key) FROM penstock.live WHERE status = 1")
        pages_while_held, blind = await pages(engine, mark=mark), await pages(engine)
    await old.close()
    await engine.close()
    assert pages_while_held <= 1.5 * fresh, (
        f"{fresh} pages when fresh, {pages_while_held} with the mark, {blind} without"
    )
    assert blind > 1.1 * pages_while_held, "nothing was held, so this shows nothing"


class Ledger:
    """Counts what reaches the disk: a COMMIT, or a statement that is a transaction of its own."""

    def __init__(self) -> None:
        self.commits = 0

    async def before(self, connection: TappedConnection, name: str) -> None: ...

    async def after(self, connection: TappedConnection, name: str) -> None:
        self.commits += not connection.is_in_transaction()


async def test_a_job_costs_little_of_a_commit_and_few_bytes_of_log(database: str) -> None:
    """Batches of 100, after a round that warms up; the better of two rounds, as a checkpoint may
    fall into one.

    So what is counted is what the rows themselves cost; after a checkpoint a server adds images of
    touched pages.
    """
    jobs, ledger = 3000, Ledger()
    added, drained = [], []
    async with TappedDb(database, ledger) as db, log_position(database) as position:
        store = PgJobStore(db, KINDS)
        await _enqueue(store, 1000)
        await _drain(store)
        for _ in range(2):
            begin = await position()
            await _enqueue(store, jobs)
            ledger.commits, full = 0, await position()
            await _drain(store)
            added.append((full - begin) / jobs)
            drained.append((await position() - full) / jobs)
    assert ledger.commits / jobs <= 0.02
    assert min(drained) <= 750, f"{min(drained):.0f} bytes to claim and end a job"
    assert min(added) <= 500, f"{min(added):.0f} bytes to enqueue a job"


@asynccontextmanager
async def log_position(dsn: str) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    eye = await asyncpg.connect(dsn)

    async def position() -> int:
        return int(await eye.fetchval("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    yield position
    await eye.close()


async def _enqueue(store: PgJobStore, jobs: int) -> None:
    spec = JobSpec(kind="work", payload={"table": "orders", "part": 1234567})
    for _ in range(jobs // BATCH):
        await store.enqueue([spec] * BATCH)


async def _drain(store: PgJobStore) -> None:
    endings: list[Ending] = []
    while (done := await store.exchange(endings, "w", ["default"], BATCH)).claimed:
        endings = [Ending(fence=c.fence, outcome=Succeeded()) for c in done.claimed]


async def test_the_columns_of_a_claim_are_the_fields_of_a_claimed_job(database: str) -> None:
    names = {"raw_payload": "payload", "lease_seconds": "lease_s", "raw_state": "state"}
    engine = await asyncpg.connect(database, server_settings=ENGINE_SETTINGS)
    statement = await engine.prepare(SQL.exchange.text)
    columns = [attribute.name for attribute in statement.get_attributes()]
    await engine.close()
    fields = [names.get(name, name) for name in Claimed._fields if name not in ("fence", "queue")]
    assert columns[CLAIM_COLUMNS:] == fields
