"""Status of the background loops of the whole deployment: last runs and manual triggers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.repository import SQL
from penstock.kit.errors import RateLimited

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.graphs.runtime_config import Audit
    from penstock.kit.db import Db

TRIGGER_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopView:
    name: str
    last_run: datetime | None = None
    last_status: str | None = None
    next_run: datetime | None = None


class LoopStatusStore:
    def __init__(self, db: Db, *, audit: Audit | None = None) -> None:
        self._db = db
        self._audit = audit

    async def due_in(self, name: str) -> float:
        seconds: float | None = await self._db.value(SQL.loop_due, name=name)
        return seconds or 0.0

    async def ran(self, name: str, status: str, *, every: float) -> None:
        await self._db.changed(SQL.loop_ran, name=name, status=status, every=every)

    async def ask(self, name: str, *, actor: str, reason: str) -> datetime:
        """Record a manual trigger; RateLimited for a second one within a minute, on any control
        plane."""
        async with self._db.transaction() as tx:
            at: datetime | None = await tx.value(
                SQL.loop_trigger,
                name=name,
                actor=actor,
                reason=reason,
                pause=float(TRIGGER_SECONDS),
            )
            if at is None:
                before = await tx.row(SQL.loop_triggered, name=name)
                ago = 0.0 if before is None else before["ago"]
                raise RateLimited(
                    f"{name} was triggered {ago:.0f} s ago;"
                    f" the limit is once every {TRIGGER_SECONDS} s.",
                    retry_after_seconds=max(1, round(TRIGGER_SECONDS - ago)),
                )
            if self._audit is not None:
                await self._audit(tx, actor, "loop.trigger", f"loop:{name}", {"reason": reason})
        return at

    async def views(self) -> dict[str, LoopView]:
        return {row["name"]: LoopView(**dict(row)) for row in await self._db.fetch(SQL.loop_list)}
