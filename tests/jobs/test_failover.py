"""A primary that dies and one that is demoted: a real standby takes over, and nothing that was
promised is lost."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.model import JobSpec, Status
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.errors import DatabaseUnavailable
from penstock.kit.migrate import find, migrate
from penstock.kit.postgres import Shutdown
from penstock.wiring.migrations import MIGRATION_PACKAGES
from tests.jobs.standby import KINDS, PATIENCE, both, cluster, execute, primary_and_standby, traffic
from tests.kit.conftest import until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, and open to the account that runs the servers."""
    path = Path(tempfile.mkdtemp(prefix="penstock-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


async def test_a_standby_that_is_promoted_has_all_that_was_promised(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        first, second = await stack.enter_async_context(primary_and_standby(folder))
        db = await stack.enter_async_context(
            Db(both(first, second), size=4, settings=ENGINE_SETTINGS)
        )
        store = await stack.enter_async_context(PgJobStore(db, KINDS))
        async with traffic(store) as running:
            await running.goes_on()
            await first.stop(Shutdown.KILL)
            await execute(second.dsn(), "SELECT pg_promote()")
            await running.goes_on()
            await asyncio.wait_for(store.notifier.listening.wait(), PATIENCE)
            assert store.metrics.background.failing == {}

        for job_id in running.enqueued:
            await store.job(job_id)
        for job_id in running.ended:
            assert (await store.job(job_id)).status is Status.SUCCEEDED
        assert len(set(running.ended)) == len(running.ended)


async def test_a_primary_that_is_made_read_only_is_left_and_found_again(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(cluster(folder / "a"))
        await migrate(server.dsn(), find(MIGRATION_PACKAGES))
        db = await stack.enter_async_context(Db(server.dsn(), size=4, settings=ENGINE_SETTINGS))
        store = await stack.enter_async_context(PgJobStore(db, KINDS))
        async with traffic(store) as running:
            await running.goes_on()
            await execute(server.dsn(), "ALTER SYSTEM SET default_transaction_read_only = on")
            await execute(server.dsn(), "SELECT pg_reload_conf()")
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        await store.enqueue([JobSpec(kind="work")])
                    except DatabaseUnavailable:
                        break
            await until(
                lambda: not store.notifier.listening.is_set(), PATIENCE
            )  # nobody notifies it there
            with pytest.raises(DatabaseUnavailable):
                await store.control()
            await execute(server.dsn(), "ALTER SYSTEM RESET ALL")
            await execute(server.dsn(), "SELECT pg_reload_conf()")
            await running.goes_on()
            await asyncio.wait_for(store.notifier.listening.wait(), PATIENCE)
        for job_id in running.ended:
            assert (await store.job(job_id)).status is Status.SUCCEEDED
