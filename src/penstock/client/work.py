"""Long-running work that graph servers do, and how far any work is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - the decoder reads the fields' types

from penstock.client.json_value import JsonObject  # noqa: TC001 - the decoder reads the fields' types


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that `events()` tells: where the work is now."""

    status: str
    percent: float = 0.0
    step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionInfo:
    """One run of an algorithm."""

    execution_id: str
    algorithm_name: str = ""
    algorithm_type: str = ""
    status: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    node_label: str | None = None
    result_property: str | None = None
    nodes_updated: int | None = None
    duration_ms: int | None = None
    elapsed_ms: int | None = None
    progress_percent: float | None = None
    error_message: str | None = None
    result: JsonObject = field(default_factory=dict)
    raw: JsonObject = field(default_factory=dict, repr=False)
