"""The one graph that this process serves, from its start to its end: what routes, reports and the
main process share. `Served` is there from the first moment, its `graph` once it is loaded.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

import psutil

from penstock.graph_server.algorithms.write_lock import WriteLock
from penstock.graph_server.http.errors import NotReady
from penstock.kit.memory import held_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.graph_server.control_plane.client import Assignment
    from penstock.graph_server.engine.engine import Engine
    from penstock.graph_server.engine.engine_work import Written
    from penstock.graph_server.isolation.isolation import Isolation
    from penstock.graph_server.settings import InstanceSettings
    from penstock.graphdb.contract import GraphSchema

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

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A query, from its arrival to its answer or error."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.count(time.perf_counter() - began)

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
    """What is there once everything was loaded; `counts` are the engine's own, `written` the
    properties that algorithms gave to each label, with their types."""

    engine: Engine
    schema: GraphSchema
    counts: dict[str, int]
    written: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def node_count(self) -> int:
        return sum(self.counts[table.label] for table in self.schema.nodes)

    @property
    def edge_count(self) -> int:
        return sum(self.counts.values()) - self.node_count

    async def write_back(self, written: Written) -> int:
        answer = await self.engine.write_back(written)
        self.written[written.label] = answer["written"]
        rows: int = answer["rows"]
        return rows


@dataclass(slots=True, kw_only=True)
class Served:
    settings: InstanceSettings
    isolation: Isolation
    engine: Engine
    state: State = "starting"
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)
    assignment: Assignment | None = None
    loaded: Graph | None = None
    lock: WriteLock = field(default_factory=WriteLock)
    tally: Tally = field(default_factory=Tally)

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
        """Of this process and those that hold the graph."""
        own: int = psutil.Process(os.getpid()).memory_info().rss
        return own + sum(map(held_bytes, self.engine.supervisor.pids))

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
