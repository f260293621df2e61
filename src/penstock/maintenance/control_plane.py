"""Client for the control plane's maintenance API; every call carries the fence of the attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.jobs.control_plane import ControlPlaneClient

if TYPE_CHECKING:
    from penstock.jobs.model import Fence


class MaintenanceControlPlane(ControlPlaneClient):
    async def catalog(self, fence: Fence) -> dict[str, Any]:
        """The configuration and credentials of the catalog."""
        return await self._fenced(fence, "catalog")

    async def hold(self, fence: Fence) -> None:
        """Raise StaleAttempt when another attempt holds the job."""
        await self._fenced(fence, "hold")

    async def pointer(self, fence: Fence) -> str:
        return str((await self._fenced(fence, "pointer"))["metadata_location"])

    async def swap(self, fence: Fence, old: str, new: str) -> bool:
        """Move the table's metadata pointer. Idempotent, so it is retried until it is answered."""
        return bool((await self._fenced(fence, "swap", old=old, new=new))["moved"])

    async def other_tables(self, fence: Fence) -> list[dict[str, Any]]:
        """The tables that may share the storage of a job's table."""
        tables: list[dict[str, Any]] = (await self._fenced(fence, "neighbours"))["tables"]
        return tables

    async def action_ended(self, fence: Fence, outcome: dict[str, Any]) -> None:
        await self._fenced(fence, "actions", outcome=outcome)

    async def ended_actions(self, fence: Fence) -> list[dict[str, Any]]:
        """The outcomes of actions that earlier attempts of this job finished."""
        outcomes: list[dict[str, Any]] = (await self._fenced(fence, "ended-actions"))["outcomes"]
        return outcomes

    async def _fenced(self, fence: Fence, call: str, **more: Any) -> dict[str, Any]:
        body = {"attempt_id": fence.attempt_id, **more}
        answer: dict[str, Any] = await self._internal(
            "POST", f"maintenance/{fence.job_id}/{call}", body
        )
        return answer
