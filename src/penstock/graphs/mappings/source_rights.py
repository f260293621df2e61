"""Who may run a mapping, and who may read what was made of it: whoever may use its source at that
moment.

The default source is everybody's. Any other one is used by its owner, by admins and operators, and
by those with whom it is shared. A mapping that is shared lets people run it as it stands, if its
owner may lend the source. `is_admin` is the caller's; without it, of work that goes on without a
request, the table of users decides.
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
        self, db: Db, sources: DataSources, *, remembered: InvalidatedCache[bool] | None = None
    ) -> None:
        self._db = db
        self._sources = sources
        self._remembered = remembered

    async def source(self, data_source_id: int | None) -> DataSource:
        """By number, or the default one."""
        if data_source_id is not None:
            return await self._sources.get(data_source_id)
        default = await self._sources.default()
        if default is None:
            raise InvalidInput(
                "No data source was named, and there is no default one.",
                hint="Name one: data_source_id.",
                field="data_source_id",
            )
        return default

    async def check(
        self, source: DataSource, username: str, *, is_admin: bool | None = None
    ) -> None:
        if not await self._sources.may_use(source.data_source_id, username, is_admin=is_admin):
            raise PermissionDenied(
                f"Data source {source.data_source_id} belongs to {source.owner}; {username} may not use it.",
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
                f"Mapping {mapping.mapping_id} reads from data source {source.data_source_id}, which belongs to"
                f" {source.owner}; {username} may not use it.",
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
        """For a worker that is about to read: the snapshot's owner may still do that."""
        row = await self._db.row(
            SQL.export_right, snapshot_id=snapshot_id, data_source_id=data_source_id
        )
        if row is None or not row["allowed"]:
            username = "its owner" if row is None else row["owner_username"]
            raise PermissionDenied(
                f"Snapshot {snapshot_id} is exported from data source {data_source_id}, which {username} may not"
                " use any more.",
                hint=_HINT,
            )

    async def check_instance(self, instance: Instance, username: str, *, is_admin: bool) -> None:
        """For every query of a graph: the answer is up to a second old where a change was not heard
        of."""
        if is_admin:
            return
        key = (instance.instance_id, username)
        if self._remembered is None:
            allowed = await self._may_read(instance, username)
        else:
            allowed = (
                await self._remembered.get(key, lambda: self._may_read(instance, username)) or False
            )
        if not allowed:
            raise PermissionDenied(
                f"The graph of instance {instance.instance_id} was made from a data source that {username}"
                " may not use.",
                hint=_HINT,
            )

    async def _may_read(self, instance: Instance, username: str) -> bool:
        if instance.snapshot_id is None:
            return instance.owner_username == username
        return await self.may_read_snapshot(instance.snapshot_id, username, is_admin=False)
