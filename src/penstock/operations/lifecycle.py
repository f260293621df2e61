"""The end of what has lived its time: instances, then the snapshots that no instance needs, then
the mappings without snapshots. In this order one pass can take all three; what something still
stands on waits for a later pass.

Each thing is ended by its own rules, in a transaction of its own: one that cannot be ended keeps no
other one.
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
AT_ONCE = 5
"""An instance takes its time to end."""
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
        endings: DeletionHooks,
        *,
        every: float,
        metrics: LoopMetrics,
        counts: LifecycleMetrics,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._endings = endings
        self._counts = counts

    async def run_once(self) -> Ended:
        with self._counts.duration.time():
            instances, left = await self._instances()
            snapshots, kept = await self._each(
                await self._ids("snapshot"), "snapshot", self._endings.snapshot
            )
            mappings, held = await self._each(
                await self._ids("mapping"), "mapping", self._endings.mapping
            )
        self._counts.passes.inc()
        self._counts.instances.inc(instances)
        self._counts.snapshots.inc(snapshots)
        self._counts.mappings.inc(mappings)
        return Ended(
            instances=instances, snapshots=snapshots, mappings=mappings, failed=left + kept + held
        )

    async def _instances(self) -> tuple[int, int]:
        rows = await self._db.fetch(SQL.lifecycle_instances, limit=BATCH)
        old = await self._each(
            (r["instance_id"] for r in rows if r["expired"]), "instance", self._endings.old_instance
        )
        idle = await self._each(
            (r["instance_id"] for r in rows if not r["expired"]),
            "instance",
            self._endings.idle_instance,
        )
        return old[0] + idle[0], old[1] + idle[1]

    async def _ids(self, what: str) -> list[int]:
        statement = SQL.lifecycle_snapshots if what == "snapshot" else SQL.lifecycle_mappings
        return [row[f"{what}_id"] for row in await self._db.fetch(statement, limit=BATCH)]

    async def _each(self, ids: Iterable[int], what: str, end: End) -> tuple[int, int]:
        """How many ended, and how many should have and could not."""
        left, ends = list(ids), Counter[str]()
        while left:
            few, left = left[:AT_ONCE], left[AT_ONCE:]
            ends.update(await asyncio.gather(*(self._one(each, what, end) for each in few)))
        return ends["ended"], ends["failed"]

    async def _one(self, each: int, what: str, end: End) -> Literal["ended", "waits", "failed"]:
        try:
            await end(each, ACTOR)
        except DatabaseUnavailable:
            raise
        except (NotFound, Conflict) as e:  # somebody was quicker, or needs it since
            log.debug("lifecycle_waits", what=what, id=each, reason=e.message)
            return "waits"
        except Exception:
            log.exception("lifecycle_failed", what=what, id=each)
            return "failed"
        return "ended"
