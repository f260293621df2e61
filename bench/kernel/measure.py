"""Runs measured work in child processes, round by round, and compares ours with the best of the
others."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench.figures import Figure, figure, median, spread
from bench.kernel.interpreter import ROOT, NotHere, python_with
from bench.kernel.systems import OURS, SYSTEMS, System
from penstock.kit.postgres.password import read_password

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from bench.server import Measured

ROUNDS = 5
say = Console(stderr=True, highlight=False, soft_wrap=True).print


@dataclass(frozen=True, slots=True)
class Run:
    """`cpu` is of the client, PostgreSQL and whatever else was watched, in the timed section; WAL
    and commits are of the whole process."""

    jobs: int
    wall: float
    cpu: float
    client_cpu: float
    wal_bytes: int
    commits: int
    value: Any

    @property
    def per_second(self) -> float:
        return self.jobs / self.wall

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.jobs * 1e6


class Bench:
    """The server, the systems that can run here, and how many rounds and jobs there are to be."""

    def __init__(self, server: Measured, *, rounds: int = ROUNDS, part: float = 1.0) -> None:
        self.server = server
        self.rounds = rounds
        self.part = part
        self.missing: dict[str, str] = {}
        self._pythons: dict[str, str] = {}
        for system in SYSTEMS:
            try:
                self._pythons[system.name] = python_with(system.package)
            except NotHere as e:
                self.missing[system.name] = str(e)
                say(f"{system.name} is left out: {e}")
        self._templates: set[str] = set()

    def systems(self, scenario: str) -> list[System]:
        return [s for s in SYSTEMS if s.name in self._pythons and scenario in s.jobs]

    def jobs(self, number: int) -> int:
        """A part of that many in a trial run."""
        return max(160, int(number * self.part))

    async def fresh(self, system: System, name: str | None = None) -> str:
        """An empty database with the system's schema."""
        template = f"template_{system.name}"
        if template not in self._templates:
            dsn = await self.server.fresh(template)
            await self._child(system, "prepare", dsn, "0", "0")
            self._templates.add(template)
        return await self.server.fresh(name or f"bench_{system.name}", template=template)

    async def run(
        self,
        system: System,
        action: str,
        dsn: str,
        jobs: int,
        size: int,
        *,
        module: str | None = None,
        address: str | None = None,
        watched: Mapping[str, int] | None = None,
    ) -> Run:
        """With an address, the child is told that instead of the database's; with a module, the
        action is that one's."""
        before = await self.server.cost(dsn)
        trees = {"postgres": self.server.cluster.pid, **(watched or {})}
        pids = [f"{name}={pid}" for name, pid in trees.items()]
        run_by = system if module is None else replace(system, module=module)
        output = await self._child(run_by, action, address or dsn, str(jobs), str(size), *pids)
        answer: dict[str, Any] = json.loads(output.splitlines()[-1])
        spent = await self.server.cost(dsn) - before
        client = answer.get("client", 0.0)
        return Run(
            jobs=jobs,
            wall=answer.get("wall", 0.0),
            cpu=client + sum(answer.get("others", {}).values()),
            client_cpu=client,
            wal_bytes=spent.wal_bytes,
            commits=spent.commits,
            value=answer["value"],
        )

    async def _child(self, system: System, action: str, dsn: str, *arguments: str) -> bytes:
        command = [
            self._pythons[system.name],
            "-m",
            "bench.kernel.child",
            system.module,
            action,
            dsn,
            *arguments,
        ]
        # Not every peer's driver reads the file of the password that the address names.
        environment = os.environ | {"PGPASSWORD": read_password(self.server.cluster.places)}
        process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"{system.name} {action} failed")
        return output

    async def in_turns(
        self, title: str, scenarios: Mapping[str, Callable[[], Awaitable[Run]]]
    ) -> dict[str, list[Run]]:
        """All scenarios of a title in turns, as often as there are rounds."""
        runs: dict[str, list[Run]] = {name: [] for name in scenarios}
        for number in range(self.rounds):
            for name, scenario in scenarios.items():
                run = await scenario()
                runs[name].append(run)
                server = run.cpu - run.client_cpu
                say(
                    f"{title} {number + 1} {name}: {run.per_second:,.0f} jobs/s,"
                    f" {run.cpu_us:.1f} µs CPU a job ({run.client_cpu / run.jobs * 1e6:.1f} client,"
                    f" {server / run.jobs * 1e6:.1f} server)"
                )
        return runs


def against_best(
    runs: Mapping[str, Sequence[Run]],
    name: str,
    *,
    speed: str | None = None,
    cpu: str | None = None,
    ours: str = OURS,
) -> dict[str, Figure]:
    """Ours beside the best other of each figure, by the median of the rounds' ratios; `speed` and
    `cpu` are goals."""
    peers = {peer: results for peer, results in runs.items() if peer != ours}
    per_second = {peer: [run.per_second for run in results] for peer, results in runs.items()}
    cpu_us = {peer: [run.cpu_us for run in results] for peer, results in runs.items()}
    fastest = max(peers, key=lambda peer: median(per_second[peer]))
    thriftiest = min(peers, key=lambda peer: median(cpu_us[peer]))
    figures = {
        f"{name}_jobs_per_second": _of(per_second[ours], "jobs/s"),
        f"{name}_cpu_per_job": _of(cpu_us[ours], "µs"),
        f"{name}_speed_vs_best": _of(
            _ratios(per_second[ours], per_second[fastest]), f"x {fastest}", speed
        ),
        f"{name}_cpu_vs_best": _of(
            _ratios(cpu_us[thriftiest], cpu_us[ours]), f"x less than {thriftiest}", cpu
        ),
    }
    for peer in peers:
        figures[f"{name}_jobs_per_second_of_{peer}"] = _of(per_second[peer], "jobs/s")
        figures[f"{name}_cpu_per_job_of_{peer}"] = _of(cpu_us[peer], "µs")
    return figures


def _of(values: Sequence[float], unit: str, goal: str | None = None) -> Figure:
    return figure(median(values), unit, goal, spread=spread(values))


def _ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(above, below, strict=True)]
