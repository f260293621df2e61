"""Access checks: running a mapping, and reading its results, requires access to its source.

Everyone may use the default source. Any other source may be used by its owner, by admins and
operators, and by users with whom it is shared. A shared mapping may be run as it is if its owner
may share the source. `is_admin` comes from the caller; background work without a request passes
None, and the user table decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphs.snapshots.repository import SQL
from penstock.kit.errors import InvalidInput, PermissionDenied

if TYPE_CHECKING:
    from penstock.graphs.instances.model import Instance
    from penstock.graphs.mappings.model import MappingRecord
    from penstock.kit.cache import InvalidatedCache
    from penstock.kit.db import Db
    from penstock.sources.repository import DataSource, DataSources

_HINT = "Ask its owner or an admin to share the source with you."


class SourceRights:
    def __init__(
        self, db: Db, sources: DataSources, *, cache: InvalidatedCache[bool] | None = None
    ) -> None:
        self._db = db
        self._sources = sources
        self._cache = cache

    async def source(self, data_source_id: int | None) -> DataSource:
        """The source by id, or the default one."""
        if data_source_id is not None:
            return await self._sources.get(data_source_id)
        default = await self._sources.default()
        if default is None:
            raise InvalidInput(
                "No data source was named, and there is no default data source.",
                hint="Name one: data_source_id.",
                field="data_source_id",
            )
        return default

    async def check(
        self, source: DataSource, username: str, *, is_admin: bool | None = None
    ) -> None:
        if not await self._sources.may_use(source.data_source_id, username, is_admin=is_admin):
            raise PermissionDenied(
                f"Data source {source.data_source_id} belongs to {source.owner};"
                f" {username} may not use it.",
                hint=_HINT,
            )

    async def check_run(
        self,
        mapping: MappingRecord,
        source: DataSource,
        username: str,
        *,
        is_admin: bool | None = None,
    ) -> None:
        allowed = await self._db.value(
            SQL.mapping_right,
            mapping_id=mapping.mapping_id,
            data_source_id=source.data_source_id,
            username=username,
            is_admin=is_admin,
        )
        if not allowed:
            raise PermissionDenied(
                f"Mapping {mapping.mapping_id} reads from data source {source.data_source_id},"
                f" which belongs to {source.owner}; {username} may not use it.",
                hint="Ask the owner of the source to share it with you, or to share the mapping.",
            )

    async def may_read_snapshot(
        self, snapshot_id: int, username: str, *, is_admin: bool | None = None
    ) -> bool:
        allowed = await self._db.value(
            SQL.snapshot_right, snapshot_id=snapshot_id, username=username, is_admin=is_admin
        )
        return bool(allowed)

    async def check_snapshot(
        self, snapshot_id: int, username: str, *, is_admin: bool | None = None
    ) -> None:
        if not await self.may_read_snapshot(snapshot_id, username, is_admin=is_admin):
            raise PermissionDenied(
                f"Snapshot {snapshot_id} was made from a data source that {username} may not use.",
                hint=_HINT,
            )

    async def check_export(self, snapshot_id: int, data_source_id: int) -> None:
        """Called before a worker reads: the snapshot's owner must still have access."""
        row = await self._db.row(
            SQL.export_right, snapshot_id=snapshot_id, data_source_id=data_source_id
        )
        if row is None or not row["allowed"]:
            username = "its owner" if row is None else row["owner_username"]
            raise PermissionDenied(
                f"Snapshot {snapshot_id} is exported from data source {data_source_id},"
                f" which {username} may not use any more.",
                hint=_HINT,
            )

    async def check_instance(self, instance: Instance, username: str, *, is_admin: bool) -> None:
        """Called for every query of a graph; the answer is cached, and up to a second old if a
        notification was lost."""
        if is_admin:
            return
        key = (instance.instance_id, username)
        if self._cache is None:
            allowed = await self._may_read(instance, username)
        else:
            allowed = (
                await self._cache.get(key, lambda: self._may_read(instance, username)) or False
            )
        if not allowed:
            raise PermissionDenied(
                f"The graph of instance {instance.instance_id} was made from a data source"
                f" that {username} may not use.",
                hint=_HINT,
            )

    async def _may_read(self, instance: Instance, username: str) -> bool:
        if instance.snapshot_id is None:
            return instance.owner_username == username
        return await self.may_read_snapshot(instance.snapshot_id, username, is_admin=False)
