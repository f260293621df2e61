"""Recipes in PostgreSQL, with immutable versions. The control plane's; workers get the recipe in
their payload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from penstock.kit.errors import Conflict, NotFound
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from datetime import datetime

    import asyncpg

    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db, Tx
    from penstock.reconcile.recipes.model import Recipe, RecipeDocument

SQL = load("penstock.reconcile.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    recipe_id: str
    owner_username: str
    latest: int
    version: int
    document: RecipeDocument
    digest: str
    created_by: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionLine:
    version: int
    digest: str
    created_by: str
    created_at: datetime


class Recipes:
    def __init__(self, db: Db, jobs: PgJobStore) -> None:
        self._db = db
        self._jobs = jobs

    async def add(self, recipe_id: str, recipe: Recipe, *, owner: str) -> Kept:
        async with self._db.transaction() as tx:
            if await tx.value(SQL.recipe_add, recipe_id=recipe_id, owner_username=owner) is None:
                raise Conflict(
                    f"Recipe {recipe_id} already exists.", hint="PUT adds a new version."
                )
            await self._write(tx, recipe_id, 1, recipe, owner)
            await self._jobs.audit(
                tx, owner, "recipe.add", f"recipe:{recipe_id}", {"digest": recipe.digest}
            )
        return await self.get(recipe_id)

    async def change(
        self, recipe_id: str, recipe: Recipe, *, actor: str, expected: int | None = None
    ) -> Kept:
        """Add a version; an identical document adds none."""
        async with self._db.transaction() as tx:
            row = await tx.row(SQL.recipe_turn, recipe_id=recipe_id)
            if row is None:
                raise _missing(recipe_id)
            if expected is not None and expected != row["version"]:
                raise Conflict(
                    f"Recipe {recipe_id} is at version {row['version']} now.",
                    version=row["version"],
                )
            now = await tx.row(SQL.recipe_get, recipe_id=recipe_id, version=None)
            if now is None or orjson.loads(now["document"]) != recipe.document():
                version = await tx.value(SQL.recipe_next, recipe_id=recipe_id)
                await self._write(tx, recipe_id, version, recipe, actor)
                await self._jobs.audit(
                    tx, actor, "recipe.change", f"recipe:{recipe_id}", {"version": version}
                )
        return await self.get(recipe_id)

    async def get(self, recipe_id: str, version: int | None = None) -> Kept:
        storable = "\x00" not in recipe_id
        row = (
            await self._db.row(SQL.recipe_get, recipe_id=recipe_id, version=version)
            if storable
            else None
        )
        if row is None:
            raise (
                _missing(recipe_id)
                if version is None
                else NotFound(f"Recipe {recipe_id} has no version {version}.")
            )
        return _stored(row)

    async def versions(self, recipe_id: str) -> list[VersionLine]:
        await self.get(recipe_id)
        return [
            VersionLine(**row)
            for row in await self._db.fetch(SQL.recipe_versions, recipe_id=recipe_id)
        ]

    async def page(self, *, offset: int, limit: int) -> tuple[list[Kept], int]:
        rows = await self._db.fetch(SQL.recipe_list, offset=offset, limit=limit)
        return [_stored(row) for row in rows], await self._db.value(SQL.recipe_count)

    async def lends(self, recipe_id: str, data_source_id: int, username: str) -> bool:
        """Whether the recipe, shared with the user, lets them run it on this source."""
        values = {"recipe_id": recipe_id, "data_source_id": data_source_id, "username": username}
        return bool(await self._db.value(SQL.recipe_lends, **values))

    async def drop(self, recipe_id: str, *, actor: str) -> None:
        """Runs stay: each stores the recipe it used."""
        async with self._db.transaction() as tx:
            if not await tx.changed(SQL.recipe_drop, recipe_id=recipe_id):
                raise _missing(recipe_id)
            await self._jobs.audit(tx, actor, "recipe.drop", f"recipe:{recipe_id}", {})

    async def _write(
        self, tx: Tx, recipe_id: str, version: int, recipe: Recipe, actor: str
    ) -> None:
        document = orjson.dumps(recipe.document()).decode()
        await tx.changed(
            SQL.recipe_version_add,
            recipe_id=recipe_id,
            version=version,
            document=document,
            digest=recipe.digest,
            created_by=actor,
        )


def _missing(recipe_id: str) -> NotFound:
    return NotFound(f"There is no recipe {recipe_id[:100]}.")


def _stored(row: asyncpg.Record) -> Kept:
    return Kept(**(dict(row) | {"document": orjson.loads(row["document"])}))
