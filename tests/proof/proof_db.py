"""The stand that the proofs run on: a store on a database of its own, kinds made for trouble, a
clock that obeys.

The kernel asks one SQL function for the time. Here that function reads a row, so a proof moves a
lease past its end without waiting for it.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import asyncpg

from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.model import Beat, Claimed, Fence, JobSpec, Registration
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEPTH = 20 if os.environ.get("PENSTOCK_PROOF") == "deep" else 1
"""How many times more a proof tries when it is asked to go deep."""
EPOCH = datetime(2027, 1, 4, 12, tzinfo=UTC)
LEASE = 60
TIMEOUT = 600
SESSION = UUID(int=7)

POLICIES = (
    KindPolicy(name="plain", lease=LEASE, heartbeat=10, timeout=TIMEOUT, max_attempts=3),
    KindPolicy(name="once", lease=LEASE, heartbeat=10, timeout=TIMEOUT, max_attempts=1),
    KindPolicy(name="brief", lease=LEASE, heartbeat=10, timeout=30, max_attempts=2),
    KindPolicy(
        name="remote",
        lease=LEASE,
        heartbeat=10,
        timeout=TIMEOUT,
        max_attempts=2,
        cleanup_kind="sweep",
    ),
    KindPolicy(name="sweep", lease=LEASE, heartbeat=10, timeout=TIMEOUT, max_attempts=2),
)

KERNEL_TABLES = ("job", "live", "outcome", "attempt", "job_group", "schedule", "control", "audit")
"""Everything but `worker`, which is a list of who is there and decides nothing, and its sessions,
which a heartbeat may change without harm."""

_HOLD_THE_CLOCK = """
CREATE UNLOGGED TABLE penstock.proof_clock (at timestamptz NOT NULL);
INSERT INTO penstock.proof_clock VALUES ('{at}');
CREATE OR REPLACE FUNCTION penstock.now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT at FROM penstock.proof_clock';
"""
_WITHOUT_TIES = """
CREATE UNLOGGED TABLE penstock.proof_first_job (job_id bigint NOT NULL);
INSERT INTO penstock.proof_first_job VALUES (0);
CREATE FUNCTION penstock.proof_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.order_key := NEW.order_key + (NEW.job_id - (SELECT job_id FROM penstock.proof_first_job)) *
    100;
  RETURN NEW;
END $$;
CREATE TRIGGER proof_order BEFORE INSERT ON penstock.live FOR EACH ROW EXECUTE FUNCTION
  penstock.proof_order();
"""
_NAME = "SELECT quote_ident(current_database())"
_LEFT = (
    "SELECT (SELECT count(*) FROM penstock.live) + (SELECT count(*) FROM penstock.job_group WHERE"
    " status < 10)"
)
_EMPTY = "; ".join(
    f"DELETE FROM penstock.{t}"
    for t in (*KERNEL_TABLES, "worker", "worker_session")
    if t != "control"
)
_DUMP = " UNION ALL ".join(
    f"SELECT '{t}' AS name, to_jsonb(t)::text AS line FROM penstock.{t} t" for t in KERNEL_TABLES
)


class ProofDatabase:
    """One database under proof; `eye` is a connection that looks at it and takes part in
    nothing.
    """

    def __init__(self, dsn: str, db: Db, eye: asyncpg.Connection[asyncpg.Record]) -> None:
        self.dsn = dsn
        self.db = db
        self.eye = eye
        self.now = EPOCH
        self.store = PgJobStore(db, Kinds(POLICIES))

    def another_store(self) -> PgJobStore:
        """A second control plane, or the first one after a restart: it shares nothing but the
        database."""
        return PgJobStore(self.db, Kinds(POLICIES))

    async def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        await self.eye.execute("UPDATE penstock.proof_clock SET at = $1", self.now)

    async def empty(self) -> None:
        """As after the migration, at the beginning of time; identifiers go on growing."""
        await self.eye.execute(f"{_EMPTY}; UPDATE penstock.control SET draining = false")
        self.now = EPOCH
        await self.advance(0)

    async def order_without_ties(self) -> None:
        """Add the job's number, times a hundred, to its place in the queue.

        The clock stands still, so two batches can share a place, and PostgreSQL takes equal places
        in any order: the same story could be told in two ways.
        """
        await self.eye.execute(_WITHOUT_TIES)

    async def count_jobs_from_here(self) -> int:
        """The last number given so far: `order_without_ties` counts from it."""
        last: int = await self.eye.fetchval(
            "UPDATE penstock.proof_first_job SET job_id = (SELECT CASE WHEN is_called THEN"
            " last_value ELSE 0 END FROM penstock.job_id) RETURNING job_id"
        )
        return last

    async def read_only(self, on: bool) -> None:
        """A primary that was demoted: it takes no writes on connections that are open, nor on new
        ones."""
        setting = (
            "SET default_transaction_read_only = on"
            if on
            else "RESET default_transaction_read_only"
        )
        async with AsyncExitStack() as stack:
            for _ in range(self.db.connections()["idle"]):
                connection = await stack.enter_async_context(self.db.connection())
                await connection.execute(setting)
        await self.eye.execute(f"ALTER DATABASE {await self.eye.fetchval(_NAME)} {setting}")

    async def dump(self) -> list[str]:
        """Every row of the kernel, as text; equal dumps mean that nothing was changed."""
        return sorted(f"{r['name']} {r['line']}" for r in await self.eye.fetch(_DUMP))

    async def left(self) -> int:
        """How many jobs and groups are not over."""
        left: int = await self.eye.fetchval(_LEFT)
        return left

    async def add(self, *specs: JobSpec) -> list[int]:
        return [e.job_id for e in await self.store.enqueue(specs)]

    async def claim(
        self, worker: str = "w1", *, limit: int = 1, session: UUID | None = None
    ) -> list[Claimed]:
        return await self.store.claim(worker, ["default"], limit, session=session)

    async def claim_one(self, worker: str = "w1") -> Claimed:
        [claimed] = await self.claim(worker)
        return claimed

    async def status(self, job_id: int) -> str:
        return (await self.store.job(job_id)).status.name


@asynccontextmanager
async def proof_db_on(dsn: str, *, size: int = 8) -> AsyncIterator[ProofDatabase]:
    """A stand whose clock stands still until a proof moves it."""
    eye = await asyncpg.connect(dsn)
    try:
        await eye.execute(_HOLD_THE_CLOCK.format(at=EPOCH.isoformat()))
        async with Db(dsn, size=size, settings=ENGINE_SETTINGS) as db:
            yield ProofDatabase(dsn, db, eye)
    finally:
        await eye.close()


def beat(*fences: Fence, worker: str = "w1", session: UUID = SESSION) -> Beat:
    return Beat(
        worker=worker, session=session, queues=["default"], slots=4, version="0", held=fences
    )


def registration(session: UUID, worker: str = "w1") -> Registration:
    return Registration(worker=worker, session=session, queues=["default"], slots=4, version="0")
