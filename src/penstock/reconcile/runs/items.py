"""Manual decisions and notes on the records of a recipe, in PostgreSQL. They outlive runs, and each
change is audited.

Called by the API; `repository` gives the decisions to the next run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import asyncpg
import orjson

from penstock.kit.errors import Conflict, InvalidInput, NotFound
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db

SQL = load("penstock.reconcile.sql")
DecisionKind = Literal["match", "unmatch"]
MAX_DECISIONS = 10_000
_MAX_KEY = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    decision_id: int
    kind: DecisionKind
    left_key: tuple[str, ...]
    right_key: tuple[str, ...]
    comment: str
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    side: str
    key: tuple[str, ...]
    label: str | None
    comment: str | None
    assignee: str | None
    updated_by: str
    updated_at: datetime


class Items:
    def __init__(self, db: Db, jobs: PgJobStore) -> None:
        self._db = db
        self._jobs = jobs

    async def decide(
        self,
        recipe_id: str,
        kind: DecisionKind,
        left: Sequence[str],
        right: Sequence[str],
        *,
        actor: str,
        comment: str = "",
    ) -> int:
        """Takes effect in the next run: a match precedes all rules, an unmatch is never a
        candidate."""
        keys = {"left_key": key_text(left), "right_key": key_text(right)}
        async with self._db.transaction() as tx:
            if len(await tx.fetch(SQL.decision_list, recipe_id=recipe_id)) >= MAX_DECISIONS:
                raise Conflict(
                    f"Recipe {recipe_id} has {MAX_DECISIONS:,} decisions; write a rule instead."
                )
            try:
                decision_id: int = await tx.value(
                    SQL.decision_add,
                    recipe_id=recipe_id,
                    kind=kind,
                    comment=comment,
                    created_by=actor,
                    **keys,
                )
            except asyncpg.UniqueViolationError:
                raise Conflict(
                    "One of these records already has a decision.",
                    hint="Take that decision back first.",
                ) from None
            except asyncpg.ForeignKeyViolationError:
                raise NotFound(f"There is no recipe {recipe_id[:100]}.") from None
            await self._jobs.audit(
                tx, actor, f"item.{kind}", f"recipe:{recipe_id}", {**keys, "comment": comment}
            )
        return decision_id

    async def decisions(self, recipe_id: str) -> list[Decision]:
        rows = await self._db.fetch(SQL.decision_list, recipe_id=recipe_id)
        return [Decision(**(dict(row) | _keys(row, "left_key", "right_key"))) for row in rows]

    async def take_back(self, recipe_id: str, decision_id: int, *, actor: str) -> None:
        async with self._db.transaction() as tx:
            if not await tx.changed(
                SQL.decision_drop, recipe_id=recipe_id, decision_id=decision_id
            ):
                raise NotFound(f"Recipe {recipe_id[:100]} has no decision {decision_id}.")
            await self._jobs.audit(
                tx, actor, "item.take_back", f"recipe:{recipe_id}", {"decision_id": decision_id}
            )

    async def note(
        self,
        recipe_id: str,
        side: Literal["left", "right"],
        key: Sequence[str],
        *,
        actor: str,
        label: str | None = None,
        comment: str | None = None,
        assignee: str | None = None,
    ) -> None:
        content = {
            "side": side,
            "key": key_text(key),
            "label": label,
            "comment": comment,
            "assignee": assignee,
        }
        async with self._db.transaction() as tx:
            try:
                await tx.changed(SQL.note_put, recipe_id=recipe_id, updated_by=actor, **content)
            except asyncpg.ForeignKeyViolationError:
                raise NotFound(f"There is no recipe {recipe_id[:100]}.") from None
            await self._jobs.audit(tx, actor, "item.note", f"recipe:{recipe_id}", content)

    async def notes(
        self, recipe_id: str, *, offset: int, limit: int, assignee: str | None = None
    ) -> tuple[list[Note], int]:
        filters = {"recipe_id": recipe_id, "assignee": assignee}
        rows = await self._db.fetch(SQL.note_list, offset=offset, limit=limit, **filters)
        return [Note(**(dict(row) | _keys(row, "key"))) for row in rows], await self._db.value(
            SQL.note_count, **filters
        )


def key_text(key: Sequence[str]) -> str:
    text = orjson.dumps(list(key)).decode()
    if not key or len(text) > _MAX_KEY:
        raise InvalidInput("A key is the list of a record's primary key values, as strings.")
    return text


def _keys(row: asyncpg.Record, *names: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(orjson.loads(row[name])) for name in names}
