"""What the fence costs: the same statement with and without it, in turns, by the server's CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

from bench.figures import Figure, figure, median, spread
from bench.kernel import ours
from bench.kernel.section import WARM_UP, Section
from penstock.jobs.exchange import NO_MARK, SQL
from penstock.jobs.store import ENGINE_SETTINGS

if TYPE_CHECKING:
    from bench.kernel.measure import Bench
    from bench.server import Measured

JOBS = 20_000
BATCH = 100
FENCED = SQL.exchange.text
UNFENCED = FENCED.replace(" AND l.attempt_id = r.attempt_id", "").replace(
    "penstock.attempt_id(f.seed, l.job_id)", "'00000000-0000-0000-0000-000000000001'::uuid"
)


async def figures(bench: Bench) -> dict[str, Figure]:
    if UNFENCED.count("attempt_id") >= FENCED.count("attempt_id"):
        raise RuntimeError("the unfenced variant still has its fence")
    spent: dict[str, list[float]] = {FENCED: [], UNFENCED: []}
    jobs = max(10 * BATCH, bench.jobs(JOBS))
    for _ in range(bench.rounds):
        for text, seconds in spent.items():
            seconds.append(await _drain(bench.server, text, jobs))
    ratios = [
        (fenced / bare - 1) * 100
        for fenced, bare in zip(spent[FENCED], spent[UNFENCED], strict=True)
    ]
    per_job = [seconds * 1e6 for seconds in spent[FENCED]]
    return {
        "fence_cost": figure(median(ratios), "% of server CPU", "<= 10", spread=spread(ratios)),
        "server_cpu_per_job_fenced": figure(median(per_job), "µs", spread=spread(per_job)),
    }


async def _drain(server: Measured, text: str, jobs: int) -> float:
    """Server CPU seconds a job."""
    dsn = await server.fresh("bench_fence")
    await ours.setup(dsn)
    await ours.bulk(Section({}), dsn, jobs, 1000)
    total = jobs + WARM_UP
    connection = await asyncpg.connect(dsn, server_settings=ENGINE_SETTINGS)
    statement = await connection.prepare(text)
    before = await server.cost(dsn)
    ended: list[asyncpg.Record] = []
    done = 0
    while True:
        values = SQL.exchange.bind(
            {
                "job_ids": [r["job_id"] for r in ended],
                "attempt_ids": [r["attempt_id"] for r in ended],
                "results": None,
                "errors": None,
                "worker": "bench",
                "queue": "default",
                "limit": BATCH,
                "mark": NO_MARK,
                "polled": None,
                "session": None,
                "alone": True,
            }
        )
        records = await statement.fetch(*values)
        done += sum(len(r["places"]) for r in records if r["places"] is not None)
        ended = [r for r in records if r["places"] is None]
        if not ended:
            break
    spent = await server.cost(dsn) - before
    await connection.close()
    if done != total:
        raise RuntimeError(f"{done} of {total} jobs ended")
    return spent.cpu_seconds / total
