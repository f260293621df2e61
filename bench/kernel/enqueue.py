"""Jobs that come in: from 16 producers one at a time, by HTTP, and many at once.

The normal case is that every producer is another user and every job has its own trace. That all are
alike, and that each goes in a transaction of its producer's own, is for information.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.kernel.measure import against_best
from bench.kernel.public_api import control_plane
from bench.kernel.systems import OURS, SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bench.figures import Figure
    from bench.kernel.measure import Bench, Run
    from bench.kernel.systems import System

PRODUCERS = 16
BULK = 1000
FEW = ("jobs_per_second", "cpu_per_job", "speed_vs_best", "cpu_vs_best")


async def figures(bench: Bench) -> dict[str, Figure]:
    """Of producers."""
    [penstock] = [system for system in SYSTEMS if system.name == OURS]
    scenarios = {s.name: _producers(bench, s, "singles") for s in bench.systems("singles")}
    extra = {f"{OURS} {action}": _producers(bench, penstock, action) for action in ("alike", "own")}
    extra[f"{OURS} http"] = _http(bench, penstock)
    runs = await bench.in_turns("16 producers", scenarios | extra)
    normal = {name: runs[name] for name in scenarios}
    figures = against_best(normal, "enqueue_16_producers", speed=">= 4", cpu=">= 4")
    for name in extra:
        kind = name.split()[1]
        compared = against_best(normal | {OURS: runs[name]}, f"enqueue_16_{kind}")
        figures |= {f"enqueue_16_{kind}_{few}": compared[f"enqueue_16_{kind}_{few}"] for few in FEW}
    return figures


async def bulk(bench: Bench) -> dict[str, Figure]:
    runs = await bench.in_turns("bulk", {s.name: _bulk(bench, s) for s in bench.systems("bulk")})
    return against_best(runs, "bulk_enqueue", speed=">= 2.5", cpu=">= 2")


def _producers(bench: Bench, system: System, action: str) -> Callable[[], Awaitable[Run]]:
    async def run() -> Run:
        return await bench.run(
            system, action, await bench.fresh(system), bench.jobs(system.jobs[action]), PRODUCERS
        )

    return run


def _bulk(bench: Bench, system: System) -> Callable[[], Awaitable[Run]]:
    async def run() -> Run:
        return await bench.run(
            system, "bulk", await bench.fresh(system), bench.jobs(system.jobs["bulk"]), BULK
        )

    return run


def _http(bench: Bench, system: System) -> Callable[[], Awaitable[Run]]:
    async def run() -> Run:
        dsn = await bench.fresh(system)
        async with control_plane(dsn) as (url, pid):
            jobs = bench.jobs(system.jobs["own"])
            return await bench.run(
                system,
                "singles",
                dsn,
                jobs,
                PRODUCERS,
                module="public_api",
                address=url,
                watched={"plane": pid},
            )

    return run
