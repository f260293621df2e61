"""A new instance, in one transaction: its snapshot with the export jobs, or one that is there, its
place under the limits, and its row. The snapshot is held until then, so it neither goes nor becomes
ready in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.instances.model import DEFAULT_BACKEND, Instance, InstanceStatus
from penstock.graphs.instances.repository import NewInstance
from penstock.graphs.instances.sizing import memory_gb
from penstock.graphs.lifetime import lifetime
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.graphs.snapshots.repository import SQL
from penstock.kit.errors import InvalidState

if TYPE_CHECKING:
    from datetime import timedelta

    from penstock.graphs.instances.quota import Quota
    from penstock.graphs.instances.repository import Instances
    from penstock.graphs.mappings.repository import Mappings
    from penstock.graphs.mappings.source_rights import SourceRights
    from penstock.graphs.runtime_config import PlatformConfig
    from penstock.graphs.snapshots.creation import MappedSnapshots
    from penstock.graphs.snapshots.model import Snapshot
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.kit.db import Db, Tx

DEFAULT_CPU = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateInstance:
    """Either a mapping, with or without a version, or a snapshot."""

    owner: str
    name: str
    mapping_id: int | None = None
    mapping_version: int | None = None
    snapshot_id: int | None = None
    max_snapshot_age: timedelta | None = None
    wrapper_type: str = DEFAULT_BACKEND
    description: str | None = None
    ttl: str | None = None
    inactivity_timeout: str | None = None
    cpu_cores: int | None = None
    starburst_role: str | None = None
    is_admin: bool | None = None
    """What the owner is now; None: the table of users says."""


class Creation:
    def __init__(
        self,
        db: Db,
        instances: Instances,
        *,
        snapshots: Snapshots,
        mappings: Mappings,
        mapped: MappedSnapshots,
        config: PlatformConfig,
        quota: Quota,
        rights: SourceRights,
    ) -> None:
        self._db = db
        self._instances = instances
        self._snapshots = snapshots
        self._mappings = mappings
        self._mapped = mapped
        self._config = config
        self._quota = quota
        self._rights = rights

    async def create(self, wish: CreateInstance) -> Instance:
        async with self._db.transaction() as tx:
            await self._config.refuse_in_maintenance(tx)
            rules = await self._config.lifecycle(tx)
            life = lifetime(
                rules["instance"], ttl=wish.ttl, inactivity_timeout=wish.inactivity_timeout
            )
            snapshot = await self._snapshot(tx, wish)
            await tx.changed(SQL.snapshot_used, snapshot_id=snapshot.snapshot_id)
            new = NewInstance(
                owner=wish.owner,
                name=wish.name,
                description=wish.description,
                wrapper_type=wish.wrapper_type,
                lifetime=life,
                cpu_cores=wish.cpu_cores or DEFAULT_CPU,
                memory_gb=memory_gb(snapshot.size_bytes, wish.wrapper_type),
            )
            await self._quota.check(tx, wish.owner, new.memory_gb)
            return await self._instances.add(tx, new, snapshot, _first(snapshot))

    async def _snapshot(self, tx: Tx, wish: CreateInstance) -> Snapshot:
        if wish.snapshot_id is not None:
            snapshot = await self._snapshots.lock(tx, wish.snapshot_id)
            await self._rights.check_snapshot(
                snapshot.snapshot_id, wish.owner, is_admin=wish.is_admin
            )
            return snapshot
        assert wish.mapping_id is not None
        mapping = await self._mappings.get(wish.mapping_id, tx=tx)
        version = await self._mappings.version(
            mapping.mapping_id, wish.mapping_version or mapping.current_version, tx=tx
        )
        if wish.max_snapshot_age is not None:
            source = await self._mapped.source_of(mapping, wish.owner, is_admin=wish.is_admin)
            found = await self._mapped.find_reusable(
                tx, mapping.mapping_id, version.version, source, wish.max_snapshot_age
            )
            if found is not None:
                return found
        rule = (await self._config.lifecycle(tx))["snapshot"]
        return await self._mapped.open(
            tx,
            mapping=mapping,
            version=version,
            owner=wish.owner,
            name=wish.name,
            lifetime=lifetime(rule, ttl=None, inactivity_timeout=None),
            starburst_role=wish.starburst_role,
            is_admin=wish.is_admin,
        )


def _first(snapshot: Snapshot) -> InstanceStatus:
    """What an instance of this snapshot begins as."""
    match snapshot.status:
        case SnapshotStatus.READY if snapshot.prefix is not None:
            return InstanceStatus.STARTING
        case SnapshotStatus.PENDING | SnapshotStatus.CREATING:
            return InstanceStatus.WAITING
        case _:
            raise InvalidState(
                f"Snapshot {snapshot.snapshot_id} is {snapshot.status}, or its files are gone; nothing can be loaded.",
                hint="Make an instance of the mapping; that makes a new snapshot.",
                status=str(snapshot.status),
            )
