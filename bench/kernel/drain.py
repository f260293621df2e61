"""A backlog of jobs that do nothing, drained by one worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

from bench.figures import Figure, figure, median
from bench.kernel.measure import against_best
from bench.kernel.section import WARM_UP
from bench.kernel.systems import OURS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bench.kernel.measure import Bench, Run
    from bench.kernel.systems import System

BATCH = 100
FILL = 1000


async def figures(bench: Bench) -> dict[str, Figure]:
    runs = await bench.in_turns("drain", {s.name: _drain(bench, s) for s in bench.systems("drain")})
    return against_best(runs, "drain", speed=">= 3", cpu=">= 3") | {
        "commits_per_job": figure(
            median([r.commits / r.jobs for r in runs[OURS]]), "commits", "<= 0.02"
        ),
        "wal_per_job": figure(median([r.wal_bytes / r.jobs for r in runs[OURS]]), "B", "<= 750"),
    }


def _drain(bench: Bench, system: System) -> Callable[[], Awaitable[Run]]:
    async def run() -> Run:
        jobs = bench.jobs(system.jobs["drain"])
        dsn = await bench.fresh(system)
        await bench.run(system, "bulk", dsn, jobs, FILL)
        connection = await asyncpg.connect(dsn)
        await connection.execute("ANALYZE")
        await connection.close()
        return await bench.run(system, "drain", dsn, jobs + WARM_UP, BATCH)

    return run
