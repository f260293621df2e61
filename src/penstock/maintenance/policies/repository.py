"""The maintenance policies in PostgreSQL; they are replaced as a whole.

The API replaces them, the planner reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from penstock.kit.errors import InvalidInput
from penstock.kit.sqlfile import load
from penstock.maintenance.policies.model import Policy, read
from penstock.maintenance.repository import dump

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.kit.db import Db
    from penstock.maintenance.payloads import TableName
    from penstock.maintenance.policies.model import Definition

SQL = load("penstock.maintenance.sql")


class Policies:
    def __init__(self, db: Db) -> None:
        self._db = db

    async def definitions(self) -> list[Definition]:
        return [orjson.loads(row["definition"]) for row in await self._db.fetch(SQL.policy_list)]

    async def all(self) -> list[Policy]:
        return [read(definition) for definition in await self.definitions()]

    async def replace(self, definitions: Sequence[Definition], *, actor: str) -> None:
        names = [definition["name"] for definition in definitions]
        if len(set(names)) < len(names):
            raise InvalidInput("Two policies have the same name.")
        for definition in definitions:
            read(definition)
        async with self._db.transaction() as tx:
            await tx.changed(SQL.policy_clear)
            for position, definition in enumerate(definitions):
                values = {
                    "name": definition["name"],
                    "position": position,
                    "definition": dump(definition),
                }
                await tx.changed(SQL.policy_add, **values, updated_by=actor)

    async def of(self, name: TableName) -> Policy | None:
        """The first enabled policy that matches the table."""
        return next(
            (policy for policy in await self.all() if policy.enabled and policy.fits(name)), None
        )
