"""The steps of an instance that people and graph servers ask for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.graphs.instances.model import ErrorCode, Failure, Instance, InstanceStatus
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.kit.errors import InvalidInput, InvalidState, NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from penstock.graphs.instances.graph_servers import GraphServers
    from penstock.graphs.instances.quota import Quota
    from penstock.graphs.instances.repository import Instances
    from penstock.graphs.runtime_config import PlatformConfig
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.kit.db import Db, Tx
    from penstock.launchers.contract import Launcher

PATIENCE_SECONDS = 15.0
LOOK_SECONDS = 0.05
SHUTDOWN_SECONDS = 5.0


class InstanceService:
    def __init__(
        self,
        db: Db,
        instances: Instances,
        launcher: Launcher,
        servers: GraphServers,
        *,
        quota: Quota,
        config: PlatformConfig,
        snapshots: Snapshots,
    ) -> None:
        self._db = db
        self._instances = instances
        self._launcher = launcher
        self._servers = servers
        self._quota = quota
        self._config = config
        self._snapshots = snapshots

    @property
    def can_resume(self) -> bool:
        return self._launcher.capabilities.resume

    def pod_name(self, instance: Instance) -> str | None:
        return self._launcher.pod_name(instance.handle) if instance.placed else None

    async def terminate(
        self, instance_id: int, *, actor: str, reason: str = "", force: bool = False
    ) -> bool:
        """End and delete it; ShutdownBlocked while an algorithm runs, unless forced. False: it is
        not gone yet."""
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            if instance.status is not InstanceStatus.STOPPING:
                wanted = InstanceStatus.STOPPING
                await self._instances.move(
                    tx, instance, wanted, actor=actor, force_stop=force, reason=reason
                )
            if instance.status is InstanceStatus.RUNNING and not force:
                await self._ask_to_end(instance, reason or "user_terminated")
        return await _until(lambda: self._is_gone(instance_id))

    async def suspend(
        self, instance_id: int, *, actor: str, reason: str = "", force: bool = False
    ) -> Instance:
        """End its process and keep the rest; ShutdownBlocked while an algorithm runs, unless
        forced."""
        if not self.can_resume:
            raise InvalidState(
                "Instances here cannot be resumed, so they are not suspended.", hint="Terminate it."
            )
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            await self._instances.move(
                tx, instance, InstanceStatus.SUSPENDED, actor=actor, reason=reason
            )
            if not force:
                await self._ask_to_end(instance, reason or "suspended")
        await _until(lambda: self._is_unplaced(instance_id))
        return await self._instances.get(instance_id)

    async def resume(self, instance_id: int, *, actor: str) -> Instance:
        """A new process that loads the same snapshot, of one that was suspended or has failed; it
        counts against the limits again."""
        await _until(lambda: self._is_unplaced(instance_id))
        async with self._db.transaction() as tx:
            await self._config.refuse_in_maintenance(tx)
            before = await self._instances.get(instance_id, tx=tx)
            before.check(InstanceStatus.RESUMING)
            await self._hold_snapshot(tx, before)
            instance = await self._instances.lock(tx, instance_id)
            instance.check(InstanceStatus.RESUMING)
            if instance.placed:
                raise InvalidState(
                    f"The last process of instance {instance_id} is still ending.",
                    hint="Try again in a moment.",
                )
            await self._quota.check(
                tx, instance.owner_username, instance.memory_gb, instance_id=instance_id
            )
            return await self._instances.move(tx, instance, InstanceStatus.RESUMING, actor=actor)

    async def _hold_snapshot(self, tx: Tx, instance: Instance) -> None:
        """Nobody deletes it from here on; before the instance's own row, as everywhere."""
        if instance.snapshot_id is None:
            raise InvalidState(
                f"The snapshot of instance {instance.instance_id} was deleted.",
                hint="Start another instance of its mapping.",
            )
        snapshot = await self._snapshots.lock(tx, instance.snapshot_id)
        if snapshot.status is not SnapshotStatus.READY:
            raise InvalidState(
                f"Snapshot {snapshot.snapshot_id} of instance {instance.instance_id} is {snapshot.status}.",
                hint=f"POST /api/snapshots/{snapshot.snapshot_id}/retry, then start another instance.",
                snapshot_id=snapshot.snapshot_id,
                snapshot_status=str(snapshot.status),
            )

    async def resize(
        self,
        instance_id: int,
        *,
        actor: str,
        cpu_cores: int | None = None,
        memory_gb: int | None = None,
    ) -> Instance:
        """At once where the launcher can, else from the next launch: one that failed for want of
        memory is given more, then resumed. Memory only grows, within the limits."""
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            if instance.status is InstanceStatus.STOPPING:
                raise InvalidState(
                    f"Instance {instance_id} is {instance.status}.", status=str(instance.status)
                )
            if memory_gb is not None and memory_gb < instance.memory_gb:
                raise InvalidInput(
                    f"Memory never shrinks: instance {instance_id} has {instance.memory_gb} GB.",
                    field="memory_gb",
                )
            if memory_gb is not None and memory_gb > instance.memory_gb:
                await self._quota.check(
                    tx, instance.owner_username, memory_gb, instance_id=instance_id
                )
            await self._instances.resize(tx, instance_id, cpu_cores=cpu_cores, memory_gb=memory_gb)
            await self._instances.note(
                tx, instance_id, "resized", actor=actor, cpu_cores=cpu_cores, memory_gb=memory_gb
            )
            resized = await self._instances.get(instance_id, tx=tx)
        if resized.placed and self._launcher.capabilities.resize:
            await self._launcher.resize(
                resized.handle, cpu_cores=resized.cpu_cores, memory_bytes=resized.memory_bytes
            )
        return resized

    async def is_running(
        self, instance_id: int, *, node_count: int | None, edge_count: int | None
    ) -> bool:
        """A server says that it has loaded; False: that was known."""
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            if instance.status is InstanceStatus.RUNNING:
                return False
            await self._instances.move(
                tx, instance, InstanceStatus.RUNNING, node_count=node_count, edge_count=edge_count
            )
        return True

    async def has_failed(
        self, instance_id: int, failure: Failure, *, launch: int | None = None
    ) -> bool:
        """It cannot go on; False: it had failed before, is meant to end, or it was an earlier
        launch that failed."""
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            if not instance.status.lives or launch not in (None, instance.launch):
                return False
            await self._instances.move(tx, instance, InstanceStatus.FAILED, failure=failure)
        return True

    async def time_out(self, instance: Instance, message: str) -> bool:
        phase = (instance.progress or {}).get("phase")
        failure = Failure(code=ErrorCode.STARTUP_TIMEOUT, message=message, phase=phase)
        return await self.has_failed(instance.instance_id, failure, launch=instance.launch)

    async def _ask_to_end(self, instance: Instance, reason: str) -> None:
        """While the row is held with its next step: a server that ends at once is not taken for one
        that crashed."""
        await self._servers.shutdown(instance, reason=reason, grace=SHUTDOWN_SECONDS)

    async def _is_gone(self, instance_id: int) -> bool:
        try:
            await self._instances.get(instance_id)
        except NotFound:
            return True
        return False

    async def _is_unplaced(self, instance_id: int) -> bool:
        instance = await self._instances.get(instance_id)
        ending = (InstanceStatus.SUSPENDED, InstanceStatus.FAILED)
        return not instance.placed or instance.status not in ending


async def _until(true: Callable[[], Awaitable[bool]]) -> bool:
    """The work is another's, perhaps in another process; it takes moments."""
    for _ in range(int(PATIENCE_SECONDS / LOOK_SECONDS)):
        if await true():
            return True
        await asyncio.sleep(LOOK_SECONDS)
    return False
