"""Mappings in PostgreSQL: rows, and versions, which are append-only.

Updates use optimistic concurrency: the caller passes the record that it read. If the mapping has
changed since, nothing is written and `MappingChanged` is raised, so no update is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

from penstock.graphs.listing import ordered
from penstock.graphs.mappings.definition import dumped, loaded
from penstock.graphs.mappings.model import MappingRecord, MappingVersion, VersionSummary
from penstock.graphs.snapshots.repository import MAX_ID, SQL, check_naming, check_text
from penstock.kit import logging
from penstock.kit.errors import Conflict, DependencyExists, NotFound

if TYPE_CHECKING:
    from datetime import timedelta

    from penstock.graphs.lifetime import LifetimeChange
    from penstock.graphs.mappings.definition import Definitions
    from penstock.graphs.mappings.model import MappingFilter, SortKey
    from penstock.kit.db import Db, Tx

MAX_CHANGE = 1000
MAX_LISTED = 20
log = logging.get(__name__)


class MappingChanged(Conflict):
    """The mapping was modified concurrently; nothing was written."""


class Mappings:
    def __init__(self, db: Db) -> None:
        self._db = db

    async def add(
        self,
        *,
        owner: str,
        name: str,
        definitions: Definitions,
        description: str | None = None,
        data_source_id: int | None = None,
        ttl: timedelta | None = None,
        inactivity_timeout: timedelta | None = None,
        change_description: str | None = None,
        tx: Tx | None = None,
    ) -> MappingRecord:
        """Add a mapping with its version 1; the caller has validated the definitions."""
        check_naming(name, description)
        async with self._db.transaction(tx) as inner:
            mapping_id: int = await inner.value(
                SQL.mapping_add,
                owner_username=owner,
                name=name,
                description=description,
                data_source_id=data_source_id,
                ttl=ttl,
                inactivity_timeout=inactivity_timeout,
            )
            await _append(inner, mapping_id, 1, definitions, change_description, owner)
            _note(inner, "mapping_added", mapping_id, owner, 1)
            return await self.get(mapping_id, tx=inner)

    async def update(
        self,
        now: MappingRecord,
        *,
        read: MappingRecord,
        definitions: Definitions | None,
        change_description: str,
        actor: str,
        tx: Tx | None = None,
    ) -> MappingRecord:
        """Replace `read` by `now`; with definitions, a version is appended. Raises MappingChanged
        if the mapping is no longer `read`."""
        check_naming(now.name, now.description)
        check_change(change_description)
        version = read.current_version + (definitions is not None)
        async with self._db.transaction(tx) as inner:
            await self._lock_unchanged(inner, read)
            if definitions is not None:
                await _append(
                    inner, read.mapping_id, version, definitions, change_description, actor
                )
            await inner.changed(
                SQL.mapping_update,
                mapping_id=read.mapping_id,
                name=now.name,
                description=now.description,
                data_source_id=now.data_source_id,
                current_version=version,
            )
            _note(inner, "mapping_updated", read.mapping_id, actor, version)
            return await self.get(read.mapping_id, tx=inner)

    async def live(
        self, mapping_id: int, change: LifetimeChange, *, tx: Tx | None = None
    ) -> MappingRecord:
        """Change the lifetime; a ttl counts from now."""
        async with self._db.transaction(tx) as inner:
            await inner.changed(
                SQL.mapping_lifecycle, mapping_id=_checked_id(mapping_id), **change.values()
            )
            return await self.get(mapping_id, tx=inner)

    async def used(self, tx: Tx, mapping_id: int) -> None:
        await tx.changed(SQL.mapping_used, mapping_id=mapping_id)

    async def drop(self, mapping_id: int, *, actor: str, tx: Tx | None = None) -> None:
        """Delete a mapping; DependencyExists while it has snapshots."""
        async with self._db.transaction(tx) as inner:
            needed = await inner.fetch(
                SQL.mapping_dependants, mapping_id=_checked_id(mapping_id), limit=MAX_LISTED
            )
            if needed:
                raise _in_use(
                    mapping_id, needed[0]["total"], [row["snapshot_id"] for row in needed]
                )
            try:
                async with inner.savepoint():
                    if not await inner.changed(SQL.mapping_drop, mapping_id=mapping_id):
                        raise missing(mapping_id)
            except asyncpg.ForeignKeyViolationError:
                raise _in_use(mapping_id, 1, []) from None
            _note(inner, "mapping_dropped", mapping_id, actor, None)

    async def get(self, mapping_id: int, *, tx: Tx | None = None) -> MappingRecord:
        fetch = self._db.row if tx is None else tx.row
        row = await fetch(SQL.mapping_get, mapping_id=_checked_id(mapping_id))
        if row is None:
            raise missing(mapping_id)
        return MappingRecord(**dict(row))

    async def version(
        self, mapping_id: int, version: int | None = None, *, tx: Tx | None = None
    ) -> MappingVersion:
        """One version; without a number, the current one."""
        fetch = self._db.row if tx is None else tx.row
        sought = None if version is None else version if 0 < version < 2**31 else 0
        row = await fetch(
            SQL.mapping_version_get, mapping_id=_checked_id(mapping_id), version=sought
        )
        if row is None:
            await self.get(mapping_id, tx=tx)
            raise NotFound(f"Mapping {mapping_id} has no version {version}.")
        return _version(row)

    async def versions(
        self, mapping_id: int, *, offset: int = 0, limit: int = 50, ascending: bool = False
    ) -> list[VersionSummary]:
        listing = SQL.mapping_versions.ascending() if ascending else SQL.mapping_versions
        rows = await self._db.fetch(
            listing, mapping_id=_checked_id(mapping_id), offset=offset, limit=limit
        )
        return [VersionSummary(**dict(row)) for row in rows]

    async def page(
        self,
        which: MappingFilter,
        *,
        offset: int = 0,
        limit: int = 50,
        sort_by: SortKey = "created_at",
        ascending: bool = False,
    ) -> tuple[list[MappingRecord], int]:
        column = "mapping_id" if sort_by == "id" else sort_by
        listing = ordered(SQL.mapping_page, "m.created_at", f"m.{column}", ascending=ascending)
        rows = await self._db.fetch(listing, **which.values(), offset=offset, limit=limit)
        total: int = await self._db.value(SQL.mapping_count, **which.values())
        return [MappingRecord(**dict(row)) for row in rows], total

    async def refuse_on_source(self, data_source_id: int) -> None:
        """Raise DependencyExists while mappings use the source."""
        rows = await self._db.fetch(
            SQL.mapping_on_source, data_source_id=data_source_id, limit=MAX_LISTED
        )
        if rows:
            raise DependencyExists(
                f"{rows[0]['total']} mappings use data source {data_source_id}.",
                hint="Move them to another source, or delete them.",
                mapping_count=rows[0]["total"],
                mappings=[row["mapping_id"] for row in rows],
            )

    async def _lock_unchanged(self, tx: Tx, read: MappingRecord) -> None:
        row = await tx.row(SQL.mapping_lock, mapping_id=read.mapping_id)
        if row is None:
            raise missing(read.mapping_id)
        if row["revision"] != read.revision:
            raise MappingChanged(
                f"Mapping {read.mapping_id} was modified concurrently.", hint="Try again."
            )


async def _append(
    tx: Tx,
    mapping_id: int,
    version: int,
    definitions: Definitions,
    change_description: str | None,
    actor: str,
) -> None:
    await tx.changed(
        SQL.mapping_version_add,
        mapping_id=mapping_id,
        version=version,
        nodes=dumped(definitions.nodes),
        edges=dumped(definitions.edges),
        node_count=len(definitions.nodes),
        edge_type_count=definitions.edge_type_count,
        change_description=change_description,
        created_by=actor,
    )


def _version(row: asyncpg.Record) -> MappingVersion:
    return MappingVersion(
        mapping_id=row["mapping_id"],
        version=row["version"],
        definitions=loaded(row["node_definitions"], row["edge_definitions"]),
        change_description=row["change_description"],
        created_at=row["created_at"],
        created_by=row["created_by"],
    )


def _note(tx: Tx, event: str, mapping_id: int, actor: str, version: int | None) -> None:
    tx.after_commit(lambda: log.info(event, mapping_id=mapping_id, actor=actor, version=version))


def _checked_id(mapping_id: int) -> int:
    if not 0 < mapping_id <= MAX_ID:
        raise missing(mapping_id)
    return mapping_id


def missing(mapping_id: int) -> NotFound:
    return NotFound(f"There is no mapping {mapping_id}.")


def _in_use(mapping_id: int, count: int, snapshots: list[int]) -> DependencyExists:
    return DependencyExists(
        f"Mapping {mapping_id} has {count} snapshots.",
        hint="Delete its snapshots first.",
        snapshot_count=count,
        snapshots=snapshots,
    )


def check_change(change_description: str) -> None:
    check_text("change_description", change_description, 1, MAX_CHANGE)
