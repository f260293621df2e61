"""Creates snapshots of mappings: the row and one export job per entity, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphs.lifetime import Lifetime
from penstock.graphs.snapshots.export_jobs import Submission
from penstock.graphs.snapshots.payloads import EntityExport
from penstock.graphs.snapshots.repository import SQL
from penstock.kit.errors import ConcurrencyLimit

if TYPE_CHECKING:
    from datetime import timedelta

    from penstock.graphs.mappings.definition import Query
    from penstock.graphs.mappings.model import MappingRecord, MappingVersion
    from penstock.graphs.mappings.repository import Mappings
    from penstock.graphs.mappings.source_rights import SourceRights
    from penstock.graphs.snapshots.export_jobs import Exports
    from penstock.graphs.snapshots.model import Snapshot
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.kit.db import Db, Tx

NO_LIMITS = Lifetime()
MAX_ACTIVE = 50


class MappedSnapshots:
    def __init__(
        self,
        db: Db,
        snapshots: Snapshots,
        exports: Exports,
        mappings: Mappings,
        rights: SourceRights,
        *,
        most_active: int = MAX_ACTIVE,
    ) -> None:
        self._db = db
        self._snapshots = snapshots
        self._exports = exports
        self._mappings = mappings
        self._rights = rights
        self._most_active = most_active

    async def create(
        self,
        mapping_id: int,
        version: int | None,
        *,
        owner: str,
        name: str,
        description: str | None = None,
        lifetime: Lifetime = NO_LIMITS,
        starburst_role: str | None = None,
        is_admin: bool | None = None,
    ) -> Snapshot:
        """Create a snapshot without an instance, of the current version by default."""
        async with self._db.transaction() as tx:
            mapping = await self._mappings.get(mapping_id, tx=tx)
            return await self.open(
                tx,
                mapping=mapping,
                version=await self._mappings.version(
                    mapping_id, version or mapping.current_version, tx=tx
                ),
                owner=owner,
                name=name,
                description=description,
                lifetime=lifetime,
                starburst_role=starburst_role,
                is_admin=is_admin,
            )

    async def open(
        self,
        tx: Tx,
        *,
        mapping: MappingRecord,
        version: MappingVersion,
        owner: str,
        name: str,
        description: str | None = None,
        lifetime: Lifetime = NO_LIMITS,
        starburst_role: str | None = None,
        is_admin: bool | None = None,
    ) -> Snapshot:
        """Create a snapshot; its exports start when the transaction commits."""
        data_source_id = await self.source_of(mapping, owner, is_admin=is_admin)
        await self._check_active(tx, owner)
        snapshot = await self._snapshots.add(
            owner=owner,
            name=name,
            description=description,
            mapping_id=mapping.mapping_id,
            mapping_version=version.version,
            data_source_id=data_source_id,
            ttl=lifetime.ttl,
            inactivity_timeout=lifetime.inactivity_timeout,
            tx=tx,
        )
        queries = version.definitions.queries()
        exports = [_entity_export(query, data_source_id, starburst_role) for query in queries]
        await self._exports.start(
            snapshot.snapshot_id, [Submission(wanted=export) for export in exports], tx=tx
        )
        await self._mappings.used(tx, mapping.mapping_id)
        return await self._snapshots.get(snapshot.snapshot_id, tx=tx)

    async def _check_active(self, tx: Tx, owner: str) -> None:
        await tx.fetch(SQL.snapshot_active_turn, owner=owner)
        active: int = await tx.value(SQL.snapshot_active, owner=owner)
        if active >= self._most_active:
            raise ConcurrencyLimit(
                f"{owner} has {active} snapshots in progress, which is the limit.",
                hint="Wait until some have finished, or cancel them.",
                limit_type="active_snapshots_per_user",
                current_count=active,
                max_allowed=self._most_active,
            )

    async def find_reusable(
        self, tx: Tx, mapping_id: int, version: int, data_source_id: int | None, max_age: timedelta
    ) -> Snapshot | None:
        """The newest ready snapshot younger than `max_age`, locked until the transaction ends."""
        row = await tx.row(
            SQL.snapshot_reusable,
            mapping_id=mapping_id,
            version=version,
            data_source_id=data_source_id,
            max_age=max_age,
        )
        return None if row is None else await self._snapshots.get(row["snapshot_id"], tx=tx)

    async def source_of(
        self, mapping: MappingRecord, username: str, *, is_admin: bool | None = None
    ) -> int:
        """The mapping's source, or the default one; PermissionDenied if the user may not run it."""
        source = await self._rights.source(mapping.data_source_id)
        await self._rights.check_run(mapping, source, username, is_admin=is_admin)
        return source.data_source_id


def _entity_export(query: Query, data_source_id: int, starburst_role: str | None) -> EntityExport:
    return EntityExport(
        entity=query.entity,
        sql=query.sql,
        columns=query.columns,
        data_source_id=data_source_id,
        starburst_role=starburst_role,
    )
