"""Favorites of users. Foreign keys delete them together with the resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from penstock.graphs.snapshots.repository import MAX_ID, SQL
from penstock.kit.errors import Conflict, NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.graphs.runtime_config import ResourceKind
    from penstock.kit.db import Db


@dataclass(frozen=True, slots=True, kw_only=True)
class Favorite:
    resource_type: ResourceKind
    resource_id: int
    resource_name: str
    created_at: datetime


class Favorites:
    def __init__(self, db: Db) -> None:
        self._db = db

    async def of(
        self,
        username: str,
        kind: ResourceKind | None = None,
        *,
        offset: int = 0,
        limit: int = 50,
        ascending: bool = False,
    ) -> tuple[list[Favorite], int]:
        """One page, newest first, and the total."""
        statement = SQL.favourite_list.ascending() if ascending else SQL.favourite_list
        async with self._db.transaction() as tx:
            rows = await tx.fetch(
                statement, username=username, kind=kind, offset=offset, limit=limit
            )
            total: int = await tx.value(SQL.favourite_count, username=username, kind=kind)
        return [Favorite(**dict(row)) for row in rows], total

    async def add(self, username: str, kind: ResourceKind, resource_id: int) -> Favorite:
        if not 0 < resource_id <= MAX_ID:
            raise _missing(kind, resource_id)
        try:
            row = await self._db.row(
                SQL.favourite_add, username=username, kind=kind, resource_id=resource_id
            )
        except asyncpg.ForeignKeyViolationError:  # deleted since the name was read
            row = None
        except asyncpg.UniqueViolationError:
            raise Conflict(f"{kind} {resource_id} is already a favorite.") from None
        if row is None:
            raise _missing(kind, resource_id)
        return Favorite(**dict(row))

    async def drop(self, username: str, kind: ResourceKind, resource_id: int) -> bool:
        """False if it was not a favorite."""
        if not 0 < resource_id <= MAX_ID:
            return False
        return (
            await self._db.changed(
                SQL.favourite_drop, username=username, kind=kind, resource_id=resource_id
            )
            > 0
        )


def _missing(kind: ResourceKind, resource_id: int) -> NotFound:
    return NotFound(f"There is no {kind} {resource_id}.")
