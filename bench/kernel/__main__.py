"""`make bench NAME=kernel`: our kernel, PgQueuer and procrastinate on one durable PostgreSQL, rounds interleaved.

Ratios are of the same round and their median is reported: the machine may be busy, but it is busy for all. CPU is of
client and server together, read from the kernel's accounts, so it hardly depends on the load.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass

import asyncpg
from rich.console import Console

from bench.figures import Figure, figure, median, publish, quantile
from bench.kernel import fence, ours, peers
from bench.server import Cost, Measured, measured
from penstock.kit import logging

ROUNDS = 3
DRAIN = {"ours": 20_000, "pgqueuer": 20_000, "procrastinate": 300}
SINGLES = {"ours": 4_000, "pgqueuer": 1_600, "procrastinate": 800}
BULK = {"ours": 50_000, "pgqueuer": 50_000}
PRODUCERS = 16
BATCH = 100
SETUP = {"ours": ours.setup, "pgqueuer": peers.pgqueuer_setup, "procrastinate": peers.procrastinate_setup}
say = Console(stderr=True).print


@dataclass(frozen=True, slots=True)
class Run:
    jobs: int
    wall: float
    client_cpu: float
    server: Cost
    value: object

    @property
    def per_second(self) -> float:
        return self.jobs / self.wall

    @property
    def cpu_us(self) -> float:
        return (self.client_cpu + self.server.cpu_seconds) / self.jobs * 1e6


async def main() -> int:
    logging.configure(level="ERROR")
    async with measured() as server:
        figures: dict[str, Figure] = {}
        figures |= await _drain(server)
        figures |= await _singles(server)
        figures |= await _bulk(server)
        figures |= await _depth(server)
        figures |= await _pickup(server)
        figures |= await fence.cost(server)
    return publish("kernel", figures)


async def _drain(server: Measured) -> dict[str, Figure]:
    runs: dict[str, list[Run]] = {system: [] for system in DRAIN}
    for number in range(ROUNDS):
        for system, jobs in DRAIN.items():
            dsn = await _ready(server, system)
            await _child(server, dsn, system, "bulk", jobs, 1000)
            run = await _child(server, dsn, system, "drain", jobs, BATCH)
            say(f"drain {number + 1} {system}: {run.per_second:,.0f} jobs/s, {run.cpu_us:.1f} µs CPU")
            runs[system].append(run)
    speed = {system: [r.per_second for r in found] for system, found in runs.items()}
    cpu = {system: [r.cpu_us for r in found] for system, found in runs.items()}
    mine = runs["ours"]
    return {
        "drain_jobs_per_second": figure(median(speed["ours"]), "jobs/s"),
        "drain_cpu_per_job": figure(median(cpu["ours"]), "µs"),
        "drain_speed_vs_pgqueuer": figure(_ratio(speed["ours"], speed["pgqueuer"]), "x", ">= 2.5"),
        "drain_cpu_vs_pgqueuer": figure(_ratio(cpu["pgqueuer"], cpu["ours"]), "x less", ">= 3"),
        "drain_speed_vs_procrastinate": figure(_ratio(speed["ours"], speed["procrastinate"]), "x", ">= 50"),
        "commits_per_job": figure(median([r.server.commits / r.jobs for r in mine]), "commits", "<= 0.02"),
        "wal_per_job": figure(median([r.server.wal_bytes / r.jobs for r in mine]), "B", "<= 750"),
    }


async def _singles(server: Measured) -> dict[str, Figure]:
    """Our producers' calls share commits where they can; in transactions of their own they cannot."""
    speed: dict[str, list[float]] = {system: [] for system in SINGLES}
    own: list[float] = []
    for number in range(ROUNDS):
        for system, jobs in SINGLES.items():
            dsn = await _ready(server, system)
            run = await _child(server, dsn, system, "singles", jobs, PRODUCERS)
            say(f"singles {number + 1} {system}: {run.per_second:,.0f} jobs/s")
            speed[system].append(run.per_second)
        dsn = await _ready(server, "ours")
        own.append((await _child(server, dsn, "ours", "own", SINGLES["ours"], PRODUCERS)).per_second)
    return {
        "enqueue_16_own_transactions_vs_pgqueuer": figure(_ratio(own, speed["pgqueuer"]), "x"),
        "enqueue_16_producers_per_second": figure(median(speed["ours"]), "jobs/s"),
        "enqueue_16_producers_vs_pgqueuer": figure(_ratio(speed["ours"], speed["pgqueuer"]), "x", ">= 10"),
        "enqueue_16_producers_vs_procrastinate": figure(_ratio(speed["ours"], speed["procrastinate"]), "x"),
    }


async def _bulk(server: Measured) -> dict[str, Figure]:
    speed: dict[str, list[float]] = {system: [] for system in BULK}
    for _ in range(ROUNDS):
        for system, jobs in BULK.items():
            dsn = await _ready(server, system)
            speed[system].append((await _child(server, dsn, system, "bulk", jobs, 1000)).per_second)
    return {
        "bulk_enqueue_per_second": figure(median(speed["ours"]), "jobs/s"),
        "bulk_enqueue_vs_pgqueuer": figure(_ratio(speed["ours"], speed["pgqueuer"]), "x", ">= 2"),
    }


async def _depth(server: Measured) -> dict[str, Figure]:
    """Claims of 100: on a nearly empty queue, over a million ready rows, beside a million future ones, and at the end
    of 30,000 jobs while a transaction holds the horizon."""
    empty = await _claims(server, ready=10_000)
    deep = await _claims(server, ready=1_000_000)
    future = await _claims(server, ready=10_000, future=1_000_000)
    held = await _claims(server, ready=10_000, churn=30_000)
    say(f"claims of 100, median ms: {empty * 1e3:.2f} empty, {deep * 1e3:.2f} deep, {future * 1e3:.2f} future")
    return {
        "claim_of_100": figure(empty * 1e3, "ms"),
        "claim_at_1m_ready": figure(deep / empty, "x empty", "<= 1.5"),
        "claim_at_1m_future": figure(future / empty, "x empty", "<= 1.5"),
        "claim_with_xmin_held": figure(held / empty, "x empty", "<= 1.5"),
    }


async def _claims(server: Measured, *, ready: int, future: int = 0, churn: int = 0) -> float:
    dsn = await _ready(server, "ours")
    connection = await asyncpg.connect(dsn)
    await _child(server, dsn, "ours", "bulk", ready, 10_000)
    if future:
        await ours.later(dsn, future)
    await connection.execute("VACUUM ANALYZE penstock.live")
    reader = await asyncpg.connect(dsn)
    held = reader.transaction(isolation="repeatable_read")
    if churn:
        await held.start()
        await reader.fetchval("SELECT count(*) FROM penstock.live")
        await ours.churn(dsn, churn, BATCH)
    times = (await _child(server, dsn, "ours", "claims", 60, BATCH)).value
    if churn:
        await held.rollback()
    await reader.close()
    await connection.close()
    if not isinstance(times, list):
        raise TypeError("claims must give a list of seconds")
    return median(times[10:])


async def _pickup(server: Measured) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for action, name in (("pickup", "pickup_idle"), ("pickup-http", "pickup_idle_http")):
        dsn = await _ready(server, "ours")
        times = (await _child(server, dsn, "ours", action, 300, 1)).value
        if not isinstance(times, list):
            raise TypeError("pickup must give a list of seconds")
        figures[f"{name}_p50"] = figure(quantile(times, 0.5) * 1e3, "ms", "< 10")
        figures[f"{name}_p99"] = figure(quantile(times, 0.99) * 1e3, "ms", "< 50")
    return figures


async def _ready(server: Measured, system: str) -> str:
    dsn = await server.fresh(f"bench_{system}")
    await SETUP[system](dsn)
    return dsn


async def _child(server: Measured, dsn: str, system: str, action: str, jobs: int, size: int) -> Run:
    before = await server.cost(dsn)
    command = [sys.executable, "-m", "bench.kernel.child", system, action, dsn, str(jobs), str(size)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{system} {action} failed")
    found = json.loads(said)
    spent = await server.cost(dsn) - before
    return Run(jobs, found["wall"], found["cpu"], spent, found["value"])


def _ratio(above: list[float], below: list[float]) -> float:
    return median([a / b for a, b in zip(above, below, strict=True)])


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
