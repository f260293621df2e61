"""Creation of an instance in one transaction: its snapshot, the quota check, and its row.

The snapshot is new, with its export jobs, or an existing one. It is locked until the commit, so it
is neither deleted nor finished in between."""

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
    """A request for an instance of a mapping (optionally of one version) or of a snapshot."""

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
    """Whether the owner is an admin; None: look it up in the user table."""


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

    async def create(self, request: CreateInstance) -> Instance:
        async with self._db.transaction() as tx:
            await self._config.refuse_in_maintenance(tx)
            rules = await self._config.lifecycle(tx)
            life = lifetime(
                rules["instance"], ttl=request.ttl, inactivity_timeout=request.inactivity_timeout
            )
            snapshot = await self._snapshot(tx, request)
            await tx.changed(SQL.snapshot_used, snapshot_id=snapshot.snapshot_id)
            new = NewInstance(
                owner=request.owner,
                name=request.name,
                description=request.description,
                wrapper_type=request.wrapper_type,
                lifetime=life,
                cpu_cores=request.cpu_cores or DEFAULT_CPU,
                memory_gb=memory_gb(snapshot.size_bytes, request.wrapper_type),
            )
            await self._quota.check(tx, request.owner, new.memory_gb)
            return await self._instances.add(tx, new, snapshot, _initial_status(snapshot))

    async def _snapshot(self, tx: Tx, request: CreateInstance) -> Snapshot:
        if request.snapshot_id is not None:
            snapshot = await self._snapshots.lock(tx, request.snapshot_id)
            await self._rights.check_snapshot(
                snapshot.snapshot_id, request.owner, is_admin=request.is_admin
            )
            return snapshot
        assert request.mapping_id is not None
        mapping = await self._mappings.get(request.mapping_id, tx=tx)
        version = await self._mappings.version(
            mapping.mapping_id, request.mapping_version or mapping.current_version, tx=tx
        )
        if request.max_snapshot_age is not None:
            source = await self._mapped.source_of(mapping, request.owner, is_admin=request.is_admin)
            reusable = await self._mapped.find_reusable(
                tx, mapping.mapping_id, version.version, source, request.max_snapshot_age
            )
            if reusable is not None:
                return reusable
        rule = (await self._config.lifecycle(tx))["snapshot"]
        return await self._mapped.open(
            tx,
            mapping=mapping,
            version=version,
            owner=request.owner,
            name=request.name,
            lifetime=lifetime(rule, ttl=None, inactivity_timeout=None),
            starburst_role=request.starburst_role,
            is_admin=request.is_admin,
        )


def _initial_status(snapshot: Snapshot) -> InstanceStatus:
    """The status of a new instance of this snapshot."""
    match snapshot.status:
        case SnapshotStatus.READY if snapshot.prefix is not None:
            return InstanceStatus.STARTING
        case SnapshotStatus.PENDING | SnapshotStatus.CREATING:
            return InstanceStatus.WAITING
        case _:
            raise InvalidState(
                f"Snapshot {snapshot.snapshot_id} cannot be loaded:"
                f" it is {snapshot.status}, or its files were deleted.",
                hint="Create an instance of the mapping; that creates a new snapshot.",
                status=str(snapshot.status),
            )
