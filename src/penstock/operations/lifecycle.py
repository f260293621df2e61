"""Lifecycle loop: ends expired instances, then snapshots without instances, then mappings without
snapshots. In this order one pass can delete all three; resources in use wait for a later pass.

Every resource is ended by its own rules, in its own transaction: a failure does not stop the
others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.graphs.snapshots.repository import SQL
from penstock.kit import logging
from penstock.kit.errors import Conflict, DatabaseUnavailable, NotFound
from penstock.kit.loop import Loop, LoopMetrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.graphs.snapshots.metrics import LifecycleMetrics
    from penstock.kit.db import Db
    from penstock.operations.deletion import DeletionHooks, End

log = logging.get(__name__)
BATCH = 500
MAX_CONCURRENT = 5
"""Stopping an instance is slow."""
ACTOR = "lifecycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    instances: int = 0
    snapshots: int = 0
    mappings: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.instances + self.snapshots + self.mappings + self.failed


class Lifecycle(Loop[Ended]):
    name = "lifecycle"

    def __init__(
        self,
        db: Db,
        hooks: DeletionHooks,
        *,
        every: float,
        metrics: LoopMetrics,
        counts: LifecycleMetrics,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._hooks = hooks
        self._counts = counts

    async def run_once(self) -> Ended:
        with self._counts.duration.time():
            instances, left = await self._instances()
            snapshots, snapshots_failed = await self._end_all(
                await self._ids("snapshot"), "snapshot", self._hooks.snapshot
            )
            mappings, mappings_failed = await self._end_all(
                await self._ids("mapping"), "mapping", self._hooks.mapping
            )
        self._counts.passes.inc()
        self._counts.instances.inc(instances)
        self._counts.snapshots.inc(snapshots)
        self._counts.mappings.inc(mappings)
        return Ended(
            instances=instances,
            snapshots=snapshots,
            mappings=mappings,
            failed=left + snapshots_failed + mappings_failed,
        )

    async def _instances(self) -> tuple[int, int]:
        rows = await self._db.fetch(SQL.lifecycle_instances, limit=BATCH)
        old = await self._end_all(
            (r["instance_id"] for r in rows if r["expired"]), "instance", self._hooks.old_instance
        )
        idle = await self._end_all(
            (r["instance_id"] for r in rows if not r["expired"]),
            "instance",
            self._hooks.idle_instance,
        )
        return old[0] + idle[0], old[1] + idle[1]

    async def _ids(self, what: str) -> list[int]:
        statement = SQL.lifecycle_snapshots if what == "snapshot" else SQL.lifecycle_mappings
        return [row[f"{what}_id"] for row in await self._db.fetch(statement, limit=BATCH)]

    async def _end_all(self, ids: Iterable[int], what: str, end: End) -> tuple[int, int]:
        """How many were ended, and how many failed."""
        left, ends = list(ids), Counter[str]()
        while left:
            few, left = left[:MAX_CONCURRENT], left[MAX_CONCURRENT:]
            ends.update(
                await asyncio.gather(
                    *(self._end_one(resource_id, what, end) for resource_id in few)
                )
            )
        return ends["ended"], ends["failed"]

    async def _end_one(
        self, resource_id: int, what: str, end: End
    ) -> Literal["ended", "waits", "failed"]:
        try:
            await end(resource_id, ACTOR)
        except DatabaseUnavailable:
            raise
        except (NotFound, Conflict) as e:  # deleted meanwhile, or in use again
            log.debug("lifecycle_waits", what=what, id=resource_id, reason=e.message)
            return "waits"
        except Exception:
            log.exception("lifecycle_failed", what=what, id=resource_id)
            return "failed"
        return "ended"
