"""Background tasks of the kernel outlive every error, and say while they fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from penstock.jobs.metrics import KernelMetrics
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.background import BackgroundHealth, BackgroundTask
from penstock.kit.db import Db
from penstock.wiring.job_kinds import default_kinds
from tests.kit.conftest import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.kit.postgres import Cluster

PATIENCE = 60.0


@pytest.fixture
async def admin(pg: Cluster) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(pg.dsn("postgres"))
    yield connection
    await connection.close()


async def test_a_listener_comes_back_from_an_error_that_nobody_foresaw(
    database: str, pg: Cluster, admin: asyncpg.Connection[asyncpg.Record]
) -> None:
    """Its database is renamed: to PostgreSQL that is a mistake of ours, not an outage."""
    name = database.split("///")[1].split("?")[0]
    registry = CollectorRegistry()
    async with Db(database, size=3, settings=ENGINE_SETTINGS) as db:
        store = PgJobStore(db, default_kinds(), metrics=KernelMetrics(registry))
        async with store:
            await asyncio.wait_for(store.notifier.listening.wait(), PATIENCE)
            assert store.metrics.background.failing == {}

            await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name
            )
            await admin.execute(f"ALTER DATABASE {name} RENAME TO {name}_away")
            await until(
                lambda: (
                    "does not exist"
                    in store.metrics.background.failing.get("notification listener", "")
                )
            )
            assert (
                b'penstock_background_errors_total{task="notification listener"}'
                in generate_latest(registry)
            )

            await admin.execute(f"ALTER DATABASE {name}_away RENAME TO {name}")
            await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            await asyncio.wait_for(store.notifier.listening.wait(), PATIENCE)
            assert store.metrics.background.failing == {}
            heard = store.notifier.heard(["default"])
            other = await asyncpg.connect(database)
            await other.execute("SELECT pg_notify('penstock_bell', '1:default')")
            await other.close()
            await until(lambda: store.notifier.heard(["default"]) == heard + 1)


async def test_a_task_is_begun_again_after_any_error_and_whenever_it_returns() -> None:
    health, calls, rests = BackgroundHealth(), 0, asyncio.Event()

    async def work() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyError("a bug")
        if calls == 2:
            return
        task.works()
        rests.set()
        await asyncio.Event().wait()

    task = BackgroundTask("example", work, health)
    task.start()
    await until(lambda: calls == 1)
    await until(lambda: health.failing == {"example": "KeyError: 'a bug'"})
    await asyncio.wait_for(rests.wait(), PATIENCE)
    assert health.failing == {}
    await task.stop()


async def test_a_task_whose_library_swallows_a_cancellation_is_stopped_all_the_same() -> None:
    swallowed = asyncio.Event()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()
        await asyncio.Event().wait()

    task = BackgroundTask("stubborn", work, BackgroundHealth())
    task.start()
    await begun.wait()
    await asyncio.wait_for(task.stop(), PATIENCE)
    assert swallowed.is_set()
