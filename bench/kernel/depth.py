"""Claims of 100 on a nearly empty queue, over a million ready rows, beside a million future ones,
and at the end of 30,000 jobs while a transaction holds the horizon; five times each, in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

from bench.figures import Figure, figure, median, spread
from bench.kernel.measure import say
from bench.kernel.systems import OURS, SYSTEMS

if TYPE_CHECKING:
    from bench.kernel.measure import Bench
    from bench.kernel.systems import System

BATCH = 100
FEW = 20_000
MANY = 1_000_000
CHURN = 30_000
FILL = 10_000
SKIPPED = 10
"""The first claims of a connection prepare their statements."""


async def figures(bench: Bench) -> dict[str, Figure]:
    [penstock] = [system for system in SYSTEMS if system.name == OURS]
    databases = {
        "empty": await _database(bench, penstock, "empty"),
        "1m_ready": await _database(bench, penstock, "ready", ready=MANY),
        "1m_future": await _database(bench, penstock, "future", future=MANY),
        "xmin_held": await _database(bench, penstock, "held"),
    }
    patient = {"idle_in_transaction_session_timeout": "0"}
    reader = await asyncpg.connect(databases["xmin_held"], server_settings=patient)
    horizon = reader.transaction(isolation="repeatable_read")
    await horizon.start()
    await reader.fetchval("SELECT count(*) FROM penstock.live")
    await bench.run(penstock, "churn", databases["xmin_held"], bench.jobs(CHURN), BATCH)
    times: dict[str, list[float]] = {name: [] for name in databases}
    for _ in range(bench.rounds):
        for name, dsn in databases.items():
            seconds = (await bench.run(penstock, "claims", dsn, 0, BATCH)).value
            times[name].append(median(seconds[SKIPPED:]) * 1e3)
    await horizon.rollback()
    await reader.close()
    rounded = {name: [round(t, 2) for t in seconds] for name, seconds in times.items()}
    say("claims of 100, ms:", rounded)
    return {
        "claim_of_100": figure(median(times["empty"]), "ms", spread=spread(times["empty"])),
        "claim_at_1m_ready": _beside(times, "1m_ready"),
        "claim_at_1m_future": _beside(times, "1m_future"),
        "claim_with_xmin_held": _beside(times, "xmin_held"),
    }


async def _database(
    bench: Bench, system: System, name: str, *, ready: int = FEW, future: int = 0
) -> str:
    dsn = await bench.fresh(system, f"bench_depth_{name}")
    await bench.run(system, "bulk", dsn, max(FEW, bench.jobs(ready)), FILL)
    if future:
        await bench.run(system, "later", dsn, bench.jobs(future), FILL)
    connection = await asyncpg.connect(dsn)
    await connection.execute("VACUUM ANALYZE penstock.live")
    await connection.close()
    return dsn


def _beside(times: dict[str, list[float]], name: str) -> Figure:
    ratios = [t / empty for t, empty in zip(times[name], times["empty"], strict=True)]
    return figure(median(ratios), "x empty", "<= 1.5", spread=spread(ratios))
