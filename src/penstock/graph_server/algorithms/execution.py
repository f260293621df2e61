"""One run of an algorithm: its request and its progress. `executions.py` alone changes it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.graph_server.algorithms.write_lock import Holding

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.graphdb.algorithms.selection import Selection
    from penstock.kit.errors import PenstockError
    from penstock.kit.json_value import JsonValue

Status: TypeAlias = Literal["running", "completed", "failed", "cancelled"]
Kind: TypeAlias = Literal["native", "networkx"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A validated request: the algorithm, its part of the graph, and the user."""

    kind: Kind
    name: str
    selection: Selection
    parameters: dict[str, JsonValue]
    directed: bool | None
    result_property: str | None
    timeout: float
    username: str


@dataclass(slots=True, kw_only=True, eq=False)
class Execution:
    id: str
    request: Request
    started_at: datetime
    begun: float
    status: Status = "running"
    completed_at: datetime | None = None
    duration: float | None = None
    progress: float = 0.0
    nodes_updated: int = 0
    error: PenstockError | None = None
    result: dict[str, JsonValue] = field(default_factory=dict)
    writing: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


def holding(execution: Execution) -> Holding:
    request = execution.request
    return Holding(
        holder_id=request.username,
        holder_username=request.username,
        algorithm_name=request.name,
        algorithm_type=request.kind,
        execution_id=execution.id,
        acquired_at=execution.started_at,
    )


def brief(result: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Without lists and what is deeper."""
    return {name: value for name, value in result.items() if not isinstance(value, list | dict)}
