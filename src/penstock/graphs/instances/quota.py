"""Limits on the number and the memory of instances, per user and for the platform.

Check and insert are atomic: `check` takes a lock that is held until the caller's transaction ends,
so two requests cannot both take the last slot. The lock is taken last, after those of snapshots
and instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.instances.model import MOST_MEMORY
from penstock.graphs.snapshots.repository import SQL
from penstock.kit.errors import ConcurrencyLimit

if TYPE_CHECKING:
    from penstock.graphs.runtime_config import PlatformConfig
    from penstock.kit.db import Db, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    per_user_gb: int
    total_gb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Current usage; suspended and failed instances do not count."""

    user_count: int
    cluster_count: int
    user_memory: int
    cluster_memory: int


class Quota:
    def __init__(self, db: Db, config: PlatformConfig, memory: MemoryLimits) -> None:
        self._db = db
        self._config = config
        self.memory = memory

    async def check(
        self, tx: Tx, owner: str, memory_gb: int, *, instance_id: int | None = None
    ) -> None:
        """Raise ConcurrencyLimit if one more instance of this size exceeds a limit.

        `instance_id` names an existing instance, which is then not counted itself."""
        _refuse_alone(memory_gb)
        await tx.fetch(SQL.instance_limits_turn)
        load, most = await self.load(owner, tx, instance_id), await self._config.concurrency(tx)
        _refuse("per_analyst", load.user_count, 1, most.per_analyst, f"{owner} has")
        _refuse("cluster_total", load.cluster_count, 1, most.cluster_total, "The platform has")
        _refuse(
            "user_memory_gb", load.user_memory, memory_gb, self.memory.per_user_gb, f"{owner} uses"
        )
        _refuse(
            "cluster_memory_gb",
            load.cluster_memory,
            memory_gb,
            self.memory.total_gb,
            "The platform uses",
        )

    async def load(self, owner: str, tx: Tx | None = None, instance_id: int | None = None) -> Load:
        async with self._db.transaction(tx) as inner:
            row = await inner.row(SQL.instance_load, owner=owner, except_id=instance_id)
        assert row is not None
        return Load(**dict(row))


def _refuse_alone(memory_gb: int) -> None:
    if memory_gb > MOST_MEMORY:
        raise ConcurrencyLimit(
            f"An instance of this snapshot needs {memory_gb} GB of memory;"
            f" the maximum is {MOST_MEMORY} GB.",
            hint="Export fewer rows or properties, or choose an engine that uses less memory.",
            limit_type="instance_memory_gb",
            current_count=memory_gb,
            max_allowed=MOST_MEMORY,
        )


def _refuse(limit_type: str, current: int, more: int, most: int, who: str) -> None:
    if current + more <= most:
        return
    what = "GB of memory" if limit_type.endswith("_gb") else "instances"
    raise ConcurrencyLimit(
        f"{who} {current} of {most} {what}; {more} more would exceed the limit.",
        hint="Terminate or suspend an instance, or ask an operator for a higher limit.",
        limit_type=limit_type,
        current_count=current,
        max_allowed=most,
    )
