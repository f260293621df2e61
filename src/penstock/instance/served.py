"""The one graph that this process serves, from its start to its end."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

import psutil

from penstock.instance.errors import NotReady
from penstock.instance.lock import WriteLock
from penstock.instance.results import Own
from penstock.instance.room import EngineRoom

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.graphdb.contract import GraphEngine, GraphSchema
    from penstock.instance.isolation import Isolation
    from penstock.instance.plane import Assignment
    from penstock.instance.settings import InstanceSettings

_SPARE_THREADS = 2
"""For loading, counting and write-back, beside the queries."""
State: TypeAlias = Literal["starting", "running", "stopping", "failed"]


@dataclass(slots=True)
class Tally:
    """Queries since the last report, and whether anyone was active since."""

    total: int = 0
    total_seconds: float = 0.0
    last_activity: datetime | None = None
    _reported: tuple[int, float] = (0, 0.0)

    def count(self, seconds: float) -> None:
        self.total += 1
        self.total_seconds += seconds
        self.active()

    def active(self) -> None:
        """Someone is here; algorithms say so as well."""
        self.last_activity = datetime.now(UTC)

    def take(self) -> tuple[int, float]:
        """Queries and their seconds since it was last asked."""
        queries, seconds = self._reported
        self._reported = (self.total, self.total_seconds)
        return self.total - queries, self.total_seconds - seconds


@dataclass(slots=True, kw_only=True)
class Graph:
    """What is there once everything was loaded; `counts` are the engine's own. Who writes an answer has the `turn`."""

    engine: GraphEngine
    room: EngineRoom
    schema: GraphSchema
    counts: dict[str, int]
    turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def node_count(self) -> int:
        return sum(self.counts[table.label] for table in self.schema.nodes)

    @property
    def edge_count(self) -> int:
        return sum(self.counts.values()) - self.node_count

    def own_properties(self) -> Own:
        """Those that algorithms wrote are among them."""
        labels = {
            table.label: {p.name: p.type for p in table.columns} | self.engine.written(table.label)
            for table in self.schema.nodes
        }
        types = {
            name: {p.name: p.type for pair in self.schema.pairs(name) for p in pair.properties}
            for name in self.schema.edge_types
        }
        return Own(labels=labels, types=types)


@dataclass(slots=True, kw_only=True)
class Served:
    settings: InstanceSettings
    isolation: Isolation
    state: State = "starting"
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)
    assignment: Assignment | None = None
    loaded: Graph | None = None
    lock: WriteLock = field(default_factory=WriteLock)
    tally: Tally = field(default_factory=Tally)
    room: EngineRoom = field(init=False)
    _reach: tuple[Path, Sequence[Path]] | None = None

    def __post_init__(self) -> None:
        self.room = EngineRoom(self.settings.queries + _SPARE_THREADS, self._confine_thread)

    def confine(self, own: Path, files: Sequence[Path]) -> None:
        """What the engine's threads may reach; they start after it was said."""
        self._reach = (own, files)

    def _confine_thread(self) -> None:
        if self._reach is None:
            raise NotReady("The engine's threads have no place yet.")
        own, files = self._reach
        self.isolation.engine_thread(own=own, files=files, connect=self.settings.backend == "falkordb")

    @property
    def graph(self) -> Graph:
        if self.loaded is None or self.state not in ("running", "stopping"):
            raise NotReady("The graph is not loaded yet.", hint="GET /ready says when it is.")
        return self.loaded

    @property
    def uptime(self) -> float:
        return time.monotonic() - self.began

    @property
    def memory_bytes(self) -> int:
        used: int = psutil.Process(os.getpid()).memory_info().rss
        return used

    @property
    def disk_bytes(self) -> int:
        return folder_size(self.settings.dir)


def folder_size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
    return total
