"""Instance transitions requested by users and by graph servers."""

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

WAIT_SECONDS = 15.0
POLL_SECONDS = 0.05
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
        """Stop and delete it; ShutdownBlocked while an algorithm runs, unless forced. False: the
        deletion is still in progress."""
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            if instance.status is not InstanceStatus.STOPPING:
                target = InstanceStatus.STOPPING
                await self._instances.move(
                    tx, instance, target, actor=actor, force_stop=force, reason=reason
                )
            if instance.status is InstanceStatus.RUNNING and not force:
                await self._request_shutdown(instance, reason or "user_terminated")
        return await _until(lambda: self._is_gone(instance_id))

    async def suspend(
        self, instance_id: int, *, actor: str, reason: str = "", force: bool = False
    ) -> Instance:
        """Stop its process and keep the row; ShutdownBlocked while an algorithm runs, unless
        forced."""
        if not self.can_resume:
            raise InvalidState(
                "Instances of this launcher cannot be suspended.", hint="Terminate the instance."
            )
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            await self._instances.move(
                tx, instance, InstanceStatus.SUSPENDED, actor=actor, reason=reason
            )
            if not force:
                await self._request_shutdown(instance, reason or "suspended")
        await _until(lambda: self._is_unplaced(instance_id))
        return await self._instances.get(instance_id)

    async def resume(self, instance_id: int, *, actor: str) -> Instance:
        """Restart a suspended or failed instance from its snapshot; it counts against the limits
        again."""
        await _until(lambda: self._is_unplaced(instance_id))
        async with self._db.transaction() as tx:
            await self._config.refuse_in_maintenance(tx)
            before = await self._instances.get(instance_id, tx=tx)
            before.check(InstanceStatus.RESUMING)
            await self._lock_snapshot(tx, before)
            instance = await self._instances.lock(tx, instance_id)
            instance.check(InstanceStatus.RESUMING)
            if instance.placed:
                raise InvalidState(
                    f"The last process of instance {instance_id} is still stopping.",
                    hint="Try again in a moment.",
                )
            await self._quota.check(
                tx, instance.owner_username, instance.memory_gb, instance_id=instance_id
            )
            return await self._instances.move(tx, instance, InstanceStatus.RESUMING, actor=actor)

    async def _lock_snapshot(self, tx: Tx, instance: Instance) -> None:
        """Lock the snapshot before the instance's row, the lock order used everywhere."""
        if instance.snapshot_id is None:
            raise InvalidState(
                f"The snapshot of instance {instance.instance_id} was deleted.",
                hint="Start another instance of its mapping.",
            )
        snapshot = await self._snapshots.lock(tx, instance.snapshot_id)
        if snapshot.status is not SnapshotStatus.READY:
            raise InvalidState(
                f"Snapshot {snapshot.snapshot_id} of instance {instance.instance_id}"
                f" is {snapshot.status}.",
                hint=f"POST /api/snapshots/{snapshot.snapshot_id}/retry,"
                " then start another instance.",
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
        """Change CPU and memory: at once if the launcher supports it, else from the next launch.

        Memory only grows, within the limits; a failed instance may get more and be resumed."""
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            if instance.status is InstanceStatus.STOPPING:
                raise InvalidState(
                    f"Instance {instance_id} is {instance.status}.", status=str(instance.status)
                )
            if memory_gb is not None and memory_gb < instance.memory_gb:
                raise InvalidInput(
                    f"Memory cannot shrink: instance {instance_id} has {instance.memory_gb} GB.",
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
        """Record that a server has loaded its graph; False if that was recorded before."""
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
        """Record a failure; False if the instance failed before, is stopping, or was launched
        again since."""
        async with self._db.transaction() as tx:
            instance = await self._instances.lock(tx, instance_id)
            if not instance.status.lives or launch not in (None, instance.launch):
                return False
            await self._instances.move(tx, instance, InstanceStatus.FAILED, failure=failure)
        return True

    async def time_out(self, instance: Instance, message: str) -> bool:
        phase = instance.loading_phase
        failure = Failure(code=ErrorCode.STARTUP_TIMEOUT, message=message, phase=phase)
        return await self.has_failed(instance.instance_id, failure, launch=instance.launch)

    async def _request_shutdown(self, instance: Instance, reason: str) -> None:
        """Called while the row is locked, so a server that exits at once is not seen as crashed."""
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


async def _until(condition: Callable[[], Awaitable[bool]]) -> bool:
    """Poll for work done by the instance controller, perhaps in another process."""
    for _ in range(int(WAIT_SECONDS / POLL_SECONDS)):
        if await condition():
            return True
        await asyncio.sleep(POLL_SECONDS)
    return False
