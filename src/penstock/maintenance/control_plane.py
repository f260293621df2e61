"""What workers ask the control plane for a maintenance job; every call carries the fence.

The handlers use it: the catalog's configuration and credentials, the metadata pointer of a shared
catalog, other tables, and the outcomes of actions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from penstock.jobs.control_plane import ControlPlaneClient
from penstock.maintenance.payloads import OtherTable

if TYPE_CHECKING:
    from penstock.jobs.model import Fence
    from penstock.kit.json_value import JsonObject, JsonValue


class CatalogCredentials(TypedDict):
    """The configuration and credentials of a catalog, and of the remote engine of a job."""

    name: str
    type: str
    uri: str | None
    shared: bool
    properties: dict[str, str]
    engine: dict[str, str] | None


class EndedAction(TypedDict):
    action: str
    status: str
    engine: str
    message: str


class MaintenanceControlPlane(ControlPlaneClient):
    async def catalog(self, fence: Fence) -> CatalogCredentials:
        return cast("CatalogCredentials", await self._fenced(fence, "catalog"))

    async def hold(self, fence: Fence) -> None:
        """Raise StaleAttempt when another attempt holds the job."""
        await self._fenced(fence, "hold")

    async def pointer(self, fence: Fence) -> str:
        return str((await self._fenced(fence, "pointer"))["metadata_location"])

    async def swap(self, fence: Fence, old: str, new: str) -> bool:
        """Move the table's metadata pointer. Idempotent, so it is retried until it is answered."""
        return bool((await self._fenced(fence, "swap", old=old, new=new))["moved"])

    async def other_tables(self, fence: Fence) -> list[OtherTable]:
        """The tables that may share the storage of a job's table."""
        tables = cast("list[dict[str, str]]", (await self._fenced(fence, "neighbours"))["tables"])
        return [OtherTable(**table) for table in tables]

    async def action_ended(self, fence: Fence, outcome: JsonObject) -> None:
        await self._fenced(fence, "actions", outcome=outcome)

    async def ended_actions(self, fence: Fence) -> list[EndedAction]:
        """The outcomes of actions that earlier attempts of this job finished."""
        return cast("list[EndedAction]", (await self._fenced(fence, "ended-actions"))["outcomes"])

    async def _fenced(self, fence: Fence, call: str, **more: JsonValue) -> JsonObject:
        body = {"attempt_id": fence.attempt_id, **more}
        answer: JsonObject = await self._internal(
            "POST", f"maintenance/{fence.job_id}/{call}", body
        )
        return answer
