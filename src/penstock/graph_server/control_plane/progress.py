"""Progress of the start, step by step, reported to the control plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.graph_server.control_plane.client import InstanceControlPlane

Phase: TypeAlias = Literal[
    "pod_scheduled", "downloading", "loading_schema", "loading_data", "ready", "failed"
]
Status: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]


@dataclass(slots=True, kw_only=True)
class Step:
    name: str
    type: Literal["node", "edge"] | None = None
    status: Status = "pending"
    row_count: int | None = None

    def document(self) -> dict[str, object]:
        kind = {} if self.type is None else {"type": self.type}
        return {"name": self.name, **kind, "status": self.status, "row_count": self.row_count}


class Progress:
    """The steps in their order; each change is reported at once."""

    def __init__(self, plane: InstanceControlPlane) -> None:
        self._plane = plane
        self.phase: Phase = "pod_scheduled"
        self.steps = [Step(name="pod_scheduled", status="completed")]

    def plan(self, steps: Sequence[Step]) -> None:
        self.steps += steps

    async def enter(self, phase: Phase) -> None:
        self.phase = phase
        await self._tell()

    async def begin(self, step: Step) -> None:
        step.status = "in_progress"
        await self._tell()

    async def end(self, step: Step, *, rows: int | None = None) -> None:
        step.status, step.row_count = "completed", rows
        await self._tell()

    async def fail(self) -> None:
        """`phase` stays what it was: that is where it failed."""
        for step in self.steps:
            if step.status == "in_progress":
                step.status = "failed"
        await self._report("failed")

    async def _tell(self) -> None:
        await self._report(self.phase)

    async def _report(self, phase: Phase) -> None:
        current = next((step.name for step in self.steps if step.status == "in_progress"), None)
        await self._plane.progress(
            phase=phase, current_step=current, steps=[step.document() for step in self.steps]
        )
