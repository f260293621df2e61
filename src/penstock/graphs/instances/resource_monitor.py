"""Measures memory and disk of the graph servers of this place, from outside: a hung server cannot
report them itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.instances.model import InstanceStatus
from penstock.kit import logging
from penstock.kit.loop import Loop, LoopMetrics

if TYPE_CHECKING:
    from penstock.graphs.instances.metrics import InstanceMetrics
    from penstock.graphs.instances.model import Instance
    from penstock.graphs.instances.repository import Instances
    from penstock.graphs.instances.telemetry import InstanceTelemetry
    from penstock.kit.db import Db
    from penstock.launchers.contract import Launcher, Usage

log = logging.get(__name__)
HIGH_FRACTION = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """`total` counts the servers near their memory limit."""

    servers: int = 0
    total: int = 0


class ResourceMonitor(Loop[Measured]):
    name = "resource_monitor"

    def __init__(
        self,
        db: Db,
        instances: Instances,
        telemetry: InstanceTelemetry,
        launcher: Launcher,
        *,
        every: float,
        metrics: LoopMetrics,
        counts: InstanceMetrics,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._instances = instances
        self._telemetry = telemetry
        self._launcher = launcher
        self._counts = counts

    async def run_once(self) -> Measured:
        usages: list[tuple[Instance, Usage]] = []
        for instance in await self._instances.pending():
            if instance.status is InstanceStatus.RUNNING and (
                usage := await self._launcher.usage(instance.handle)
            ):
                await self._telemetry.measured(
                    instance.instance_id,
                    memory_usage_bytes=usage.memory_bytes,
                    disk_usage_bytes=usage.disk_bytes,
                )
                usages.append((instance, usage))
        self._counts.running.set(len(usages))
        self._counts.memory.set(sum(usage.memory_bytes for _, usage in usages))
        self._counts.disk.set(sum(usage.disk_bytes or 0 for _, usage in usages))
        high = [
            instance
            for instance, usage in usages
            if usage.memory_bytes > HIGH_FRACTION * instance.memory_bytes
        ]
        for instance in high:
            await self._warn(instance)
        return Measured(servers=len(usages), total=len(high))

    async def _warn(self, instance: Instance) -> None:
        log.warning(
            "instance_memory_high", instance_id=instance.instance_id, memory_gb=instance.memory_gb
        )
        async with self._db.transaction() as tx:
            await self._instances.note(
                tx, instance.instance_id, "memory_high", memory_gb=instance.memory_gb
            )
