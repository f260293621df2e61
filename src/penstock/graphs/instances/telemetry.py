"""Telemetry of running instances: load progress, memory and disk use, activity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from penstock.graphs.snapshots.repository import SQL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from penstock.kit.db import Db


class InstanceTelemetry:
    """Every method returns False, and stores nothing, if the instance does not exist or run."""

    def __init__(self, db: Db) -> None:
        self._db = db

    async def progressed(self, instance_id: int, progress: Mapping[str, object]) -> bool:
        text = orjson.dumps(progress).decode()
        return bool(
            await self._db.changed(SQL.instance_progress, instance_id=instance_id, progress=text)
        )

    async def measured(
        self,
        instance_id: int,
        *,
        memory_usage_bytes: int | None = None,
        disk_usage_bytes: int | None = None,
        queries: int = 0,
        last_activity_at: datetime | None = None,
    ) -> bool:
        return bool(
            await self._db.changed(
                SQL.instance_metrics,
                instance_id=instance_id,
                memory_usage_bytes=memory_usage_bytes,
                disk_usage_bytes=disk_usage_bytes,
                queries=queries,
                last_activity_at=last_activity_at,
            )
        )

    async def active(self, instance_id: int) -> bool:
        return bool(await self._db.changed(SQL.instance_active, instance_id=instance_id))
