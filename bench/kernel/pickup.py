"""How soon a job begins on a worker that waits: on the store, and through a control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figures import Figure, figure, quantile
from bench.kernel.systems import OURS, SYSTEMS

if TYPE_CHECKING:
    from bench.kernel.measure import Bench

JOBS = 60
"""A round; the quantiles are of all rounds."""
WAYS = {"pickup": "pickup_idle", "pickup_http": "pickup_idle_http"}


async def figures(bench: Bench) -> dict[str, Figure]:
    [penstock] = [system for system in SYSTEMS if system.name == OURS]
    times: dict[str, list[float]] = {action: [] for action in WAYS}
    for _ in range(bench.rounds):
        for action in WAYS:
            run = await bench.run(penstock, action, await bench.fresh(penstock), JOBS, 1)
            times[action].extend(run.value)
    return {
        f"{name}_{quantity}": figure(quantile(times[action], part) * 1e3, "ms", goal)
        for action, name in WAYS.items()
        for quantity, part, goal in (("p50", 0.5, "< 10"), ("p99", 0.99, "< 50"))
    }
