"""Control plane client for snapshot jobs."""

from __future__ import annotations

from penstock.jobs.control_plane import ControlPlaneClient


class SnapshotControlPlane(ControlPlaneClient):
    async def live_attempts(self) -> list[str]:
        """Attempts whose files may still become part of a result."""
        answer = await self._internal("GET", "export-jobs/attempts")
        return [str(attempt) for attempt in answer["attempts"]]
