"""Watches the memory of all processes of an instance together, a few times a second.

Each process has a limit of its own; their sum may still be more than the instance has. Whoever
looks after the instance from outside (the launcher, a cgroup) would then end all of it. Before that
happens the process that took the most since the graph was loaded is ended: an algorithm, which
fails alone, or the engine, which is back in a moment.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.kit.memory import exact_bytes, held_bytes

if TYPE_CHECKING:
    from penstock.graph_server.algorithms.executions import Executions
    from penstock.graph_server.engine.engine import Engine

log = logging.get(__name__)
BUSY_SECONDS, IDLE_SECONDS = 0.04, 0.5
SHARE = 0.93
"""Of the instance's memory; past it somebody is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen, and who was ended for it."""

    held_bytes: int
    ended: str | None = None


class Watchdog:
    def __init__(self, engine: Engine, executions: Executions, *, memory_bytes: int) -> None:
        self._engine = engine
        self._executions = executions
        self._most = int(memory_bytes * SHARE)
        self._at_rest = 0

    async def run(self) -> None:
        while True:
            self.run_once()
            busy = self._engine.active or self._executions.running
            await asyncio.sleep(BUSY_SECONDS if busy else IDLE_SECONDS)

    def run_once(self) -> Look:
        engine = self._engine.supervisor.pids
        others = [os.getpid(), *self._engine.supervisor.spare_pids, *self._executions.pids]
        used_bytes = sum(map(held_bytes, [*engine, *others]))
        if not self._engine.active:
            self._at_rest = sum(map(held_bytes, engine))
        if (
            used_bytes <= self._most
            or (used_bytes := sum(map(exact_bytes, [*engine, *others]))) <= self._most
        ):
            return Look(held_bytes=used_bytes)
        ended = self._end_largest(sum(map(held_bytes, engine)) - self._at_rest)
        if ended is not None:
            log.warning(
                "memory_limit_reached", held_bytes=used_bytes, limit_bytes=self._most, ended=ended
            )
        return Look(held_bytes=used_bytes, ended=ended)

    def _end_largest(self, engine_growth: int) -> str | None:
        child = max(self._executions.child_pids, key=held_bytes, default=None)
        if child is not None and held_bytes(child) > engine_growth:
            self._executions.end_child(child)
            return "algorithm"
        life = self._engine.supervisor.current
        if life is not None and self._engine.active:
            self._engine.supervisor.end(life, "memory")
            return "engine"
        return None
