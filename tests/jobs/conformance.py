"""One suite for every job store: the contract, asked of PostgreSQL directly and through HTTP.

`store` is the one under test. `plane` is the control plane's own store on the same database, for
what workers cannot do (groups, reaping, draining) and for looking at what became of it all. The
tests are in `test_conformance_*.py`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from penstock.jobs.model import (
    Beat,
    Claimed,
    Ending,
    Failed,
    Fence,
    JobSpec,
    Status,
    Succeeded,
    Verdict,
)
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    import asyncpg

    from penstock.api.services import Services
    from penstock.jobs.contract import JobStore
    from penstock.jobs.model import Json
    from penstock.jobs.store import PgJobStore

SESSION = UUID(int=7)
SQL = load("penstock.jobs.sql")


class Clock:
    """The database's clock, for the test's own database: it runs on, and it can be moved ahead."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self._connection = connection
        self._ahead = 0.0

    async def advance(self, seconds: float) -> None:
        self._ahead += seconds
        await self._connection.execute(
            "CREATE OR REPLACE FUNCTION penstock.now() RETURNS timestamptz LANGUAGE sql STABLE"
            " PARALLEL SAFE "
            f"AS $$SELECT now() + interval '{self._ahead} seconds'$$"
        )

    async def execute(self, statement: str, *values: object) -> None:
        """Whatever else a test must do to the tables by hand."""
        await self._connection.execute(statement, *values)

    async def fetch(self, statement: str) -> list[asyncpg.Record]:
        return await self._connection.fetch(statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A store under test, and the words that the tests use."""

    store: JobStore
    services: Services
    clock: Clock

    @property
    def plane(self) -> PgJobStore:
        return self.services.store

    async def add(self, **values: Json) -> int:
        [added] = await self.store.enqueue([JobSpec(**({"kind": "work"} | values))])
        return added.job_id

    async def claim(
        self, limit: int = 1, *, queue: str = "default", worker: str = "w1"
    ) -> list[Claimed]:
        return await self.store.claim(worker, [queue], limit)

    async def claim_one(self, *, queue: str = "default", worker: str = "w1") -> Claimed:
        [claimed] = await self.claim(queue=queue, worker=worker)
        return claimed

    async def held(self, **values: Json) -> Claimed:
        """A job that was just added and claimed."""
        await self.add(**values)
        return await self.claim_one(queue=values.get("queue", "default"))

    async def status(self, job_id: int) -> Status:
        return (await self.plane.job(job_id)).status

    async def until(self, job_id: int, status: Status, *, seconds: float = 10) -> None:
        async with asyncio.timeout(seconds):
            while await self.status(job_id) is not status:  # noqa: ASYNC110 - the database has no event for it
                await asyncio.sleep(0.01)

    async def workers(self) -> list[str]:
        return [w.name for w in await self.services.browser.workers()]

    async def sessions(self) -> list[UUID]:
        return [
            r["session"]
            for r in await self.clock.fetch("SELECT session FROM penstock.worker_session")
        ]

    async def forget(self) -> None:
        """What the retention does with workers and their sessions."""
        for statement in (SQL.forget_workers, SQL.forget_sessions):
            await self.clock.execute(statement.text)

    async def lapse(self) -> None:
        """Every lease runs out, and the reaper comes by."""
        await self.clock.advance(61)
        await self.plane.reap()


def done(claimed: Claimed, result: Json = None, *, spawn: list[JobSpec] | None = None) -> Ending:
    return Ending(fence=claimed.fence, outcome=Succeeded(result=result, spawn=spawn or []))


def failed(claimed: Claimed, error: Json = "broken", *, retry_in: float | None = None) -> Ending:
    return Ending(fence=claimed.fence, outcome=Failed(error=error, retry_in=retry_in))


def beat(*fences: Fence, worker: str = "w1") -> Beat:
    return Beat(
        worker=worker, session=SESSION, queues=["default"], slots=4, version="0", held=fences
    )


def nobody(job_id: int = 1) -> Fence:
    """A fence that no claim has made."""
    return Fence(job_id=job_id, attempt_id=uuid4())


DONE, REPEATED, RETRYING, STALE = Verdict.DONE, Verdict.REPEATED, Verdict.RETRYING, Verdict.STALE
