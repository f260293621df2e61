"""However many wait for work, one look at the queues is made for all of them, and none is
missed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.jobs import queue_watch
from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.notifier import Line
from penstock.jobs.store import PgJobStore
from tests.proof.tapped import TappedDb
from tests.worker.conftest import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.proof.tapped import TappedConnection

WAITERS = 60
LOOKS = 5
ADD_SILENTLY = """
WITH added AS (
  INSERT INTO penstock.job (job_id, lease_s, timeout_s, max_attempts, priority, kind, queue,
    payload)
  VALUES (nextval('penstock.job_id'), 60, 600, 3, 5, 'work', 'default', '{}') RETURNING job_id)
INSERT INTO penstock.live (job_id, order_key, status, queue) SELECT job_id, 1, 0, 'default' FROM
  added
"""


class CountedStatements:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.changed = asyncio.Condition()

    async def before(self, _connection: TappedConnection, name: str) -> None:
        async with self.changed:
            self.counts[name] += 1
            self.changed.notify_all()

    async def after(self, _connection: TappedConnection, _name: str) -> None:
        return None

    async def until(self, name: str, count: int) -> None:
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(lambda: self.counts[name] >= count)


@pytest.fixture
async def observer(database: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


@pytest.fixture
def statements() -> CountedStatements:
    return CountedStatements()


@pytest.fixture
async def store(
    database: str, statements: CountedStatements, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[PgJobStore]:
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 0.1)
    db = TappedDb(database, statements)
    async with PgJobStore(db, Kinds([KindPolicy(name="work")])) as opened:
        await opened.notifier.listening.wait()
        yield opened
    await db.close()


def waiting(store: PgJobStore, count: int) -> list[asyncio.Task[list[object]]]:
    async def claim(number: int) -> list[object]:
        return list(await store.claim(f"w{number}", ["default"], 1, wait=30))

    return [asyncio.create_task(claim(number)) for number in range(count)]


async def test_many_who_wait_cost_no_more_than_one(
    store: PgJobStore, statements: CountedStatements
) -> None:
    tasks = waiting(store, WAITERS)
    await statements.until("heads", 2)
    before = statements.counts.copy()
    await statements.until("heads", before["heads"] + LOOKS)
    during = statements.counts - before
    assert set(during) <= {"promote", "heads", "next_due"}, during
    assert max(during.values()) <= LOOKS + 1, during
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_who_comes_to_an_empty_queue_waits_without_a_look(
    store: PgJobStore, statements: CountedStatements
) -> None:
    first = waiting(store, 1)
    await statements.until("next_due", 2)
    before = statements.counts["exchange"]
    more = waiting(store, WAITERS)
    await statements.until("heads", statements.counts["heads"] + 2)
    assert statements.counts["exchange"] == before
    for task in [*first, *more]:
        task.cancel()
    await asyncio.gather(*first, *more, return_exceptions=True)


async def test_work_that_nobody_rang_for_is_brought_to_those_who_wait(
    store: PgJobStore, observer: asyncpg.Connection[asyncpg.Record]
) -> None:
    tasks = waiting(store, 3)
    await observer.execute(ADD_SILENTLY)
    async with asyncio.timeout(30):
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [len(task.result()) for task in done] == [1]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def test_many_who_are_hung_up_on_at_once_are_looked_through_once(store: PgJobStore) -> None:
    looks = 0

    class Counted(frozenset[str]):
        def __and__(self, other: object) -> frozenset[str]:
            nonlocal looks
            looks += 1
            return super().__and__(other)

    lines = [Line() for _ in range(WAITERS)]
    queues = ["default"]
    waits = [
        asyncio.create_task(store.claim(f"w{number}", queues, 1, wait=30, line=line))
        for number, line in enumerate(lines)
    ]

    async def all_wait() -> bool:
        return store.notifier.waiting == WAITERS

    await until(all_wait)
    for waiter in store.notifier._waiters:
        store.notifier._waiters[waiter] = Counted(queues)
    for line in lines:
        line.hang_up()
    assert await asyncio.gather(*waits) == [[]] * WAITERS
    assert store.notifier.waiting == 0
    assert looks <= WAITERS
