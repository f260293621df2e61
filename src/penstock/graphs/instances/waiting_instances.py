"""Starts or fails the instances that wait for a snapshot, in the transaction that ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphs.instances.model import ErrorCode, Failure, Instance, InstanceStatus
from penstock.graphs.instances.repository import read
from penstock.graphs.instances.sizing import memory_gb
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.graphs.snapshots.repository import SQL
from penstock.kit.errors import ConcurrencyLimit

if TYPE_CHECKING:
    from penstock.graphs.instances.quota import Quota
    from penstock.graphs.instances.repository import Instances
    from penstock.graphs.snapshots.model import Snapshot
    from penstock.kit.db import Tx


class WaitingInstances:
    """A follower of snapshot transitions."""

    def __init__(self, instances: Instances, quota: Quota) -> None:
        self._instances = instances
        self._quota = quota

    async def __call__(self, tx: Tx, snapshot: Snapshot) -> None:
        match snapshot.status:
            case SnapshotStatus.READY:
                await self.start_waiting(tx, snapshot)
            case SnapshotStatus.FAILED | SnapshotStatus.CANCELLED:
                await self._fail_waiting(tx, snapshot)
            case SnapshotStatus.PENDING | SnapshotStatus.CREATING:
                return

    async def start_waiting(self, tx: Tx, snapshot: Snapshot) -> int:
        """Start every instance that waits for the snapshot, and return their number."""
        waiting = await _waiting(tx, snapshot)
        for instance in waiting:
            await self._start(tx, instance, snapshot)
        return len(waiting)

    async def _start(self, tx: Tx, instance: Instance, snapshot: Snapshot) -> None:
        """The memory it needs is known only now that the snapshot is ready."""
        needed = memory_gb(snapshot.size_bytes, instance.wrapper_type, at_least=instance.memory_gb)
        try:
            if needed > instance.memory_gb:
                await self._quota.check(
                    tx, instance.owner_username, needed, instance_id=instance.instance_id
                )
        except ConcurrencyLimit as e:
            failure = Failure(
                code=ErrorCode.STARTUP_FAILED, message=f"It needs {needed} GB. {e.message}"
            )
            await self._instances.move(tx, instance, InstanceStatus.FAILED, failure=failure)
            return
        await self._instances.move(tx, instance, InstanceStatus.STARTING, memory_gb=needed)

    async def _fail_waiting(self, tx: Tx, snapshot: Snapshot) -> None:
        why = f" {snapshot.error_message}" if snapshot.error_message else ""
        message = f"Snapshot {snapshot.snapshot_id} {_outcome(snapshot.status)}.{why}"
        failure = Failure(
            code=ErrorCode.SNAPSHOT_FAILED, message=message, phase=snapshot.failed_step
        )
        for instance in await _waiting(tx, snapshot):
            await self._instances.move(tx, instance, InstanceStatus.FAILED, failure=failure)


async def _waiting(tx: Tx, snapshot: Snapshot) -> list[Instance]:
    return [
        read(row) for row in await tx.fetch(SQL.instance_waiting, snapshot_id=snapshot.snapshot_id)
    ]


def _outcome(status: SnapshotStatus) -> str:
    return "was cancelled" if status is SnapshotStatus.CANCELLED else "failed"
