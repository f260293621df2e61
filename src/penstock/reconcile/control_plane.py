"""What workers ask the control plane for a run besides the kernel's verbs, under their fence.

The handlers of staging, matching and callbacks use it; workers have no database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from penstock.jobs import wire
from penstock.jobs.control_plane import ControlPlaneClient
from penstock.jobs.model import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.jobs.model import Fence, JobId
    from penstock.kit.json_value import JsonObject


class Callback(TypedDict):
    """What the webhook of a finished run sends, where to, and what an address may be."""

    url: str
    body: str
    signature: str
    outbound: JsonObject


class ReconcileControlPlane(ControlPlaneClient):
    async def start_run(self, fence: Fence, recipe_id: str, parameters: JsonObject) -> int:
        """Start the run of a scheduled job; a second call returns the same run."""
        body = {**wire.dump_fence(fence), "recipe_id": recipe_id, "parameters": parameters}
        return int((await self._internal("POST", "runs/start", body))["run_id"])

    async def chunks_ended(self, job_ids: Sequence[JobId], *, wait: float) -> dict[JobId, Status]:
        """Those of the chunk jobs that are over; waits up to `wait` seconds for the first."""
        body = {"jobs": list(job_ids), "wait_seconds": wait}
        ended = await self._internal("POST", "runs/chunks/ended", body, wait=wait)
        return {job["job_id"]: Status(job["status"]) for job in ended["jobs"]}

    async def run_callback(self, run_id: int) -> Callback:
        callback: Callback = await self._internal("GET", f"runs/{run_id}/callback")
        return callback
