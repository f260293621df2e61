"""What workers ask the control plane for a run besides the kernel's verbs, under their fence.

The handlers of staging, matching and callbacks use it; workers have no database.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypedDict

from penstock.jobs import wire
from penstock.jobs.control_plane import ControlPlaneClient
from penstock.jobs.model import Status
from penstock.kit.errors import NotFound, PenstockError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.jobs.model import Fence, JobId
    from penstock.kit.json_value import JsonObject

LOOK_SECONDS = 0.5
"""Between two looks at the jobs of a control plane that cannot tell their ends."""


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
        """Those of the chunk jobs that are over; waits up to `wait` seconds for the first.

        A control plane of an earlier release has no such call: its jobs are looked at instead.
        """
        body = {"jobs": list(job_ids), "wait_seconds": wait}
        try:
            ended = await self._internal("POST", "runs/chunks/ended", body, wait=wait)
        except PenstockError as e:
            if e.code != NotFound.code:
                raise
            await asyncio.sleep(min(wait, LOOK_SECONDS))
            views = await self.jobs(job_ids)
            return {view.job_id: view.status for view in views if view.status.over}
        return {job["job_id"]: Status(job["status"]) for job in ended["jobs"]}

    async def run_callback(self, run_id: int) -> Callback:
        callback: Callback = await self._internal("GET", f"runs/{run_id}/callback")
        return callback
