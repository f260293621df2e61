"""Reports memory, disk and query statistics every minute, and user activity soon after a query."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.kit.background import BackgroundHealth, BackgroundTask

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.graph_server.control_plane.client import InstanceControlPlane
    from penstock.graph_server.served_graph import Served

ACTIVITY_SECONDS = 5.0


class Reports:
    def __init__(self, served: Served, plane: InstanceControlPlane) -> None:
        self._served = served
        self._plane = plane
        self._last_reported: datetime | None = None

    async def run(self) -> None:
        health = BackgroundHealth()
        tasks = (
            BackgroundTask("metrics report", self._metrics, health),
            BackgroundTask("activity report", self._activity, health),
        )
        for task in tasks:
            task.start()
        try:
            await asyncio.Event().wait()
        finally:
            for task in tasks:
                await task.stop()

    async def metrics_once(self) -> bool:
        tally = self._served.tally
        queries, seconds = tally.take()
        body = {
            "memory_usage_bytes": self._served.memory_bytes,
            "disk_usage_bytes": await asyncio.to_thread(lambda: self._served.disk_bytes),
            "query_count_since_last": queries,
            "avg_query_time_ms": round(seconds * 1000 / queries, 3) if queries else 0,
            "last_activity_at": _iso(tally.last_activity),
        }
        return await self._plane.metrics(
            {name: value for name, value in body.items() if value is not None}
        )

    async def activity_once(self) -> None:
        seen = self._served.tally.last_activity
        if seen != self._last_reported and await self._plane.activity():
            self._last_reported = seen

    async def _metrics(self) -> None:
        while True:
            await asyncio.sleep(self._served.settings.report_seconds)
            await self.metrics_once()

    async def _activity(self) -> None:
        while True:
            await self.activity_once()
            await asyncio.sleep(ACTIVITY_SECONDS)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
