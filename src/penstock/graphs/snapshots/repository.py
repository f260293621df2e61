"""Snapshots in PostgreSQL: rows and status transitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import orjson

from penstock.graphs.listing import containing, ordered
from penstock.graphs.snapshots.model import Snapshot, SnapshotStatus, prefix_of
from penstock.kit import logging
from penstock.kit.errors import InvalidInput, NotFound
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    import asyncpg

    from penstock.graphs.lifetime import LifetimeChange
    from penstock.kit.db import Db, Tx

SQL = load("penstock.graphs.sql")
MAX_ID = 2**63 - 1
MAX_NAME = 255
MAX_DESCRIPTION = 4000
SnapshotSortKey: TypeAlias = Literal[
    "created_at", "updated_at", "name", "status", "owner_username", "size_bytes", "ready_at", "id"
]
log = logging.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFilter:
    mapping_id: int | None = None
    owner: str | None = None
    status: SnapshotStatus | None = None
    search: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def values(self) -> dict[str, object]:
        return {
            "mapping_id": self.mapping_id,
            "owner": self.owner,
            "status": None if self.status is None else str(self.status),
            "search": None if self.search is None else containing(self.search),
            "created_after": self.created_after,
            "created_before": self.created_before,
        }


class Follower(Protocol):
    """Called for every transition of a snapshot, in its transaction."""

    async def __call__(self, tx: Tx, snapshot: Snapshot) -> None: ...


class Snapshots:
    def __init__(self, db: Db) -> None:
        self._db = db
        self._followers: list[Follower] = []

    def follow(self, follower: Follower) -> None:
        self._followers.append(follower)

    async def add(
        self,
        *,
        owner: str,
        name: str,
        description: str | None = None,
        mapping_id: int | None = None,
        mapping_version: int | None = None,
        data_source_id: int | None = None,
        ttl: timedelta | None = None,
        inactivity_timeout: timedelta | None = None,
        tx: Tx | None = None,
    ) -> Snapshot:
        check_naming(name, description)
        async with self._db.transaction(tx) as inner:
            snapshot_id: int = await inner.value(
                SQL.snapshot_add,
                mapping_id=mapping_id,
                mapping_version=mapping_version,
                data_source_id=data_source_id,
                owner_username=owner,
                name=name,
                description=description,
                ttl=ttl,
                inactivity_timeout=inactivity_timeout,
            )
            prefix = prefix_of(owner, mapping_id, mapping_version, snapshot_id)
            await inner.changed(SQL.snapshot_place, snapshot_id=snapshot_id, prefix=prefix)
            return await self.get(snapshot_id, tx=inner)

    async def get(self, snapshot_id: int, *, tx: Tx | None = None) -> Snapshot:
        async with self._db.transaction(tx) as inner:
            row = await inner.row(SQL.snapshot_get, snapshot_id=_checked_id(snapshot_id))
        return _snapshot(row, snapshot_id)

    async def page(
        self,
        which: SnapshotFilter,
        *,
        offset: int = 0,
        limit: int = 50,
        sort_by: SnapshotSortKey = "created_at",
        ascending: bool = False,
    ) -> tuple[list[Snapshot], int]:
        column = "snapshot_id" if sort_by == "id" else sort_by
        listing = ordered(SQL.snapshot_page, "s.created_at", f"s.{column}", ascending=ascending)
        rows = await self._db.fetch(listing, **which.values(), offset=offset, limit=limit)
        total: int = await self._db.value(SQL.snapshot_count, **which.values())
        return [_snapshot(row, row["snapshot_id"]) for row in rows], total

    async def rename(self, snapshot_id: int, changes: Mapping[str, str | None]) -> Snapshot:
        """`changes` has the new values of `name` and `description`."""
        check_naming(changes.get("name") or "-", changes.get("description"))
        values = {"name": changes.get("name"), "description": changes.get("description")}
        row = await self._db.row(
            SQL.snapshot_rename,
            snapshot_id=_checked_id(snapshot_id),
            set_description="description" in changes,
            **values,
        )
        return _snapshot(row, snapshot_id)

    async def live(self, snapshot_id: int, change: LifetimeChange) -> Snapshot:
        """Change the lifetime; a ttl counts from now."""
        row = await self._db.row(
            SQL.snapshot_lifecycle, snapshot_id=_checked_id(snapshot_id), **change.values()
        )
        return _snapshot(row, snapshot_id)

    async def hold(self, tx: Tx, snapshot_id: int) -> Snapshot:
        """The snapshot, with an exclusive lock that blocks everyone who would use it."""
        return _snapshot(
            await tx.row(SQL.snapshot_hold, snapshot_id=_checked_id(snapshot_id)), snapshot_id
        )

    async def lock(self, tx: Tx, snapshot_id: int) -> Snapshot:
        """The snapshot, its row locked until the transaction ends."""
        return _snapshot(
            await tx.row(SQL.snapshot_lock, snapshot_id=_checked_id(snapshot_id)), snapshot_id
        )

    async def move(
        self,
        tx: Tx,
        snapshot: Snapshot,
        status: SnapshotStatus,
        *,
        size_bytes: int | None = None,
        node_counts: Mapping[str, int] | None = None,
        edge_counts: Mapping[str, int] | None = None,
        error_message: str | None = None,
        failed_step: str | None = None,
    ) -> Snapshot:
        """Change the status of a snapshot locked by `lock`; raises InvalidStateTransition."""
        snapshot.check(status)
        row = await tx.row(
            SQL.snapshot_move,
            snapshot_id=snapshot.snapshot_id,
            status=str(status),
            size_bytes=size_bytes,
            node_counts=_dumped(node_counts),
            edge_counts=_dumped(edge_counts),
            error_message=error_message,
            failed_step=failed_step,
            publish_job=None if status is SnapshotStatus.CREATING else snapshot.publish_job,
        )
        tx.after_commit(
            lambda: log.info(
                "snapshot_moved",
                snapshot_id=snapshot.snapshot_id,
                status=str(status),
                step=failed_step,
            )
        )
        moved = _snapshot(row, snapshot.snapshot_id)
        for follower in self._followers:
            await follower(tx, moved)
        return moved


def _dumped(counts: Mapping[str, int] | None) -> str | None:
    return None if counts is None else orjson.dumps(dict(counts)).decode()


def _checked_id(snapshot_id: int) -> int:
    if not 0 < snapshot_id <= MAX_ID:
        raise _missing(snapshot_id)
    return snapshot_id


def _missing(snapshot_id: int) -> NotFound:
    return NotFound(f"There is no snapshot {snapshot_id}.")


def _snapshot(row: asyncpg.Record | None, snapshot_id: int) -> Snapshot:
    if row is None:
        raise _missing(snapshot_id)
    values: dict[str, Any] = dict(row)
    counts = {name: orjson.loads(values[name]) for name in ("node_counts", "edge_counts")}
    return Snapshot(**(values | counts | {"status": SnapshotStatus(values["status"])}))


def check_naming(name: str, description: str | None) -> None:
    check_text("name", name, 1, MAX_NAME)
    if description is not None:
        check_text("description", description, 0, MAX_DESCRIPTION)


def check_text(field: str, text: str, least: int, most: int) -> None:
    if not least <= len(text.strip() if least else text) or len(text) > most:
        raise InvalidInput(f"{field} must have {least} to {most} characters.", field=field)
    if "\x00" in text:
        raise InvalidInput(
            f"{field} contains a NUL character, which cannot be stored.", field=field
        )
