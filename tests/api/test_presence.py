"""Waiting workers count as present without sending heartbeats."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg
import pytest

from penstock.jobs import presence
from penstock.jobs.http_store import HttpJobStore
from penstock.jobs.kinds import Kinds
from penstock.jobs.model import Registration
from penstock.worker import Handlers, Worker, heartbeat
from penstock.worker.attempt import HeldAttempts
from penstock.worker.heartbeat import Heartbeat
from penstock.worker.metrics import WorkerMetrics
from tests.api.control_plane import POLICIES, SERVICE
from tests.worker.conftest import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.api.services import Services

SEEN = (
    "SELECT seen_at > statement_timestamp() - interval '1 minute'"
    " FROM penstock.worker WHERE name = $1"
)


def registration(name: str) -> Registration:
    return Registration(worker=name, session=uuid4(), queues=["default"], slots=1, version="1")


@asynccontextmanager
async def waiting(store: HttpJobStore, me: Registration) -> AsyncIterator[asyncio.Task[object]]:
    """A long poll of a worker that sends no heartbeats."""
    poll = asyncio.create_task(
        store.claim(me.worker, me.queues, 1, wait=30, session=me.session), name=me.worker
    )
    try:
        yield poll
    finally:
        poll.cancel()
        await asyncio.wait({poll})


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "NOTE_SECONDS", 0.05)


async def eventually(connection: asyncpg.Connection[asyncpg.Record], name: str) -> None:
    async def it_is() -> bool:
        return bool(await connection.fetchval(SEEN, name))

    await until(it_is)


@pytest.mark.usefixtures("brisk")
async def test_workers_that_wait_are_present_without_heartbeats(url: str, database: str) -> None:
    connection = await asyncpg.connect(database)
    async with HttpJobStore(url, SERVICE) as store:
        first, second, gone = (registration(name) for name in ("first", "second", "gone"))
        for worker in (first, second, gone):
            await store.register(worker)
        await connection.execute("UPDATE penstock.worker SET seen_at = seen_at - interval '1 hour'")
        async with waiting(store, first), waiting(store, second):
            await eventually(connection, "first")
            await eventually(connection, "second")
        assert not await connection.fetchval(SEEN, "gone")
    await connection.close()


@pytest.mark.usefixtures("brisk")
async def test_a_poll_of_a_session_that_is_over_ends_and_proves_nothing(
    url: str, database: str
) -> None:
    """Its machine may be gone; only a heartbeat shows that it lives."""
    connection = await asyncpg.connect(database)
    async with HttpJobStore(url, SERVICE) as store:
        earlier, later = registration("twin"), registration("twin")
        await store.register(earlier)
        async with waiting(store, earlier) as poll:
            await store.register(later)
            async with asyncio.timeout(20):
                assert await poll == []
        alive = "SELECT alive_at FROM penstock.worker_session WHERE session = $1"
        assert await connection.fetchval(alive, earlier.session) is None
    await connection.close()


@pytest.mark.usefixtures("brisk")
async def test_an_idle_worker_whose_name_is_taken_hears_of_it(url: str, services: Services) -> None:
    def worker() -> Worker:
        return Worker(
            lambda: HttpJobStore(url, SERVICE),
            Handlers(),
            Kinds(POLICIES),
            name="twin",
            queues=["default"],
            rng=random.Random(7),
        )

    async def first_waits() -> bool:
        return services.store.notifier.waiting > 0

    async def first_hears() -> bool:
        return first.superseded

    first, second = worker(), worker()
    lives = [asyncio.create_task(first.run())]
    await until(first_waits)
    lives.append(asyncio.create_task(second.run()))
    await until(first_hears)
    first.stop(grace=0)
    second.stop(grace=0)
    await asyncio.wait_for(asyncio.gather(*lives), 20)
    assert not second.superseded


async def test_a_worker_hardly_beats_while_its_long_poll_waits(url: str) -> None:
    me = registration("idle")
    is_waiting = False
    beats = Heartbeat(
        HeldAttempts(),
        WorkerMetrics(),
        registration=me,
        is_waiting=lambda: is_waiting,
        rng=random.Random(7),
    )
    async with HttpJobStore(url, SERVICE) as store:
        await store.register(me)
        is_waiting = True
        assert beats.interval() == heartbeat.IDLE_SECONDS, "that it is idle was not said yet"
        await beats.run_once(store)
        assert beats.interval() == heartbeat.WAITING_SECONDS
        is_waiting = False
        assert beats.interval() == heartbeat.IDLE_SECONDS
