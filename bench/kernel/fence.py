"""What the fence costs: the same statement with and without it, in turns, by the server's CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

from bench.figures import Figure, figure, median
from bench.kernel import ours
from penstock.jobs.exchange import NO_MARK, SQL
from penstock.jobs.store import ENGINE_SETTINGS

if TYPE_CHECKING:
    from bench.server import Measured

ROUNDS = 5
JOBS = 20_000
BATCH = 100
FENCED = SQL.exchange.text
UNFENCED = FENCED.replace(" AND l.attempt_id = r.attempt_id", "").replace(
    "penstock.attempt_id(f.seed, l.job_id)", "'00000000-0000-0000-0000-000000000001'::uuid"
)


async def cost(server: Measured) -> dict[str, Figure]:
    if UNFENCED.count("attempt_id") >= FENCED.count("attempt_id"):
        raise RuntimeError("the unfenced variant still has its fence")
    spent: dict[str, list[float]] = {FENCED: [], UNFENCED: []}
    for _ in range(ROUNDS):
        for text, found in spent.items():
            found.append(await _drain(server, text))
    ratios = [with_fence / without for with_fence, without in zip(spent[FENCED], spent[UNFENCED], strict=True)]
    return {
        "fence_cost": figure((median(ratios) - 1) * 100, "% of server CPU", "<= 10"),
        "server_cpu_per_job_fenced": figure(median(spent[FENCED]) * 1e6, "µs"),
    }


async def _drain(server: Measured, text: str) -> float:
    """Server CPU seconds a job."""
    dsn = await server.fresh("bench_fence")
    await ours.setup(dsn)
    await ours.bulk(dsn, JOBS)
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
        found = await statement.fetch(*values)
        done += sum(len(r["places"]) for r in found if r["places"] is not None)
        ended = [r for r in found if r["places"] is None]
        if not ended:
            break
    spent = await server.cost(dsn) - before
    await connection.close()
    if done != JOBS:
        raise RuntimeError(f"{done} of {JOBS} jobs ended")
    return spent.cpu_seconds / JOBS
