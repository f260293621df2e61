"""How long the service is away when a primary dies and its standby is promoted."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from rich.console import Console
from tests.jobs.standby import KINDS, both, execute, primary_and_standby, traffic

from bench.figures import Figure, figure, median
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.postgres import Shutdown

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 5
say = Console(stderr=True).print


async def figures(folder: Path, *, rounds: int = ROUNDS) -> dict[str, Figure]:
    seconds = [await _once(folder / f"failover{number}") for number in range(rounds)]
    say(f"failover {[round(s, 2) for s in seconds]} s")
    return {
        "failover_seconds": figure(median(seconds), "s", "<= 5"),
        "failover_seconds_worst": figure(max(seconds), "s"),
    }


async def _once(folder: Path) -> float:
    """From the promotion until a job has been accepted and one has ended; nothing promised is
    lost.
    """
    async with AsyncExitStack() as stack:
        first, second = await stack.enter_async_context(primary_and_standby(folder))
        db = await stack.enter_async_context(
            Db(both(first, second), size=4, settings=ENGINE_SETTINGS)
        )
        store = await stack.enter_async_context(PgJobStore(db, KINDS))
        async with traffic(store) as running:
            await running.goes_on()
            await first.stop(Shutdown.KILL)
            started = time.perf_counter()
            await execute(second.dsn(), "SELECT pg_promote()")
            await running.goes_on()
            away = time.perf_counter() - started
            await asyncio.wait_for(store.notifier.listening.wait(), 60)
        for job_id in running.enqueued:
            await store.job(job_id)
        return away
