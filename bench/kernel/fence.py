"""What the fence costs: a drain through the store with it and without, by the CPU of the server.

Without it, the statements of the store draw no attempt id and ask for none.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from bench.figures import Figure, figure, median, spread
from bench.kernel import ours
from bench.kernel.section import WARM_UP, Section
from bench.kernel.systems import OURS, SYSTEMS
from penstock.jobs.model import Ending, Succeeded
from penstock.kit.sqlfile import Library

if TYPE_CHECKING:
    from bench.kernel.measure import Bench, Run

JOBS = 20_000
BATCH = 100
FILL = 1000
CHECKED = re.compile(r"\s+AND\s+\w+\.attempt_id = \w+\.attempt_id")
DRAWN = re.compile(r"penstock\.attempt_id\([^()]*\)")
NOBODYS = "'00000000-0000-0000-0000-000000000001'::uuid"


async def figures(bench: Bench) -> dict[str, Figure]:
    runs: dict[str, list[float]] = {"fenced": [], "unfenced": []}
    for _ in range(bench.rounds):
        for action, costs in runs.items():
            costs.append(await _server_us(bench, action))
    ratios = [
        (fenced / bare - 1) * 100
        for fenced, bare in zip(runs["fenced"], runs["unfenced"], strict=True)
    ]
    return {
        "fence_cost": figure(median(ratios), "% of server CPU", "<= 10", spread=spread(ratios)),
        "server_cpu_per_job_fenced": figure(
            median(runs["fenced"]), "µs", spread=spread(runs["fenced"])
        ),
    }


async def _server_us(bench: Bench, action: str) -> float:
    [system] = [system for system in SYSTEMS if system.name == OURS]
    dsn, jobs = await bench.fresh(system), bench.jobs(JOBS)
    await bench.run(system, "bulk", dsn, jobs, FILL)
    run: Run = await bench.run(system, action, dsn, jobs + WARM_UP, BATCH, module="fence")
    if run.value != run.jobs:
        raise RuntimeError(f"{run.value} of {run.jobs} jobs ended")
    return (run.cpu - run.client_cpu) / run.jobs * 1e6


async def fenced(section: Section, dsn: str, _jobs: int, batch: int) -> int:
    """The number of jobs that ended."""
    endings: list[Ending] = []
    ended = 0
    async with ours.store(dsn) as store:
        with section:
            while True:
                done = await store.exchange(endings, "bench", ["default"], batch)
                ended += sum(verdict.accepted for verdict in done.verdicts)
                endings = [Ending(fence=job.fence, outcome=Succeeded()) for job in done.claimed]
                if not endings:
                    return ended


async def unfenced(section: Section, dsn: str, jobs: int, batch: int) -> int:
    changed = 0
    libraries = {id(sql): sql for sql in map(_library, list(sys.modules)) if sql is not None}
    for statement in (statement for sql in libraries.values() for statement in sql):
        text = DRAWN.sub(NOBODYS, CHECKED.sub("", statement.text))
        if DRAWN.search(statement.text):
            changed += text.count("attempt_id =") < statement.text.count("attempt_id =")
            object.__setattr__(statement, "text", text)
    if not changed:
        raise RuntimeError("the unfenced variant still has its fence")
    return await fenced(section, dsn, jobs, batch)


def _library(module: str) -> Library | None:
    """The statements of a module of the kernel."""
    sql = getattr(sys.modules[module], "SQL", None) if module.startswith("penstock.jobs") else None
    return sql if isinstance(sql, Library) else None
