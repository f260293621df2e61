"""Deletes stored idempotency responses and browser sessions that have expired."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.accounts.users import SQL
from penstock.kit.loop import Loop

BATCH = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    answers: int = 0
    sessions: int = 0

    @property
    def total(self) -> int:
        return self.answers + self.sessions


class AnswerRetention(Loop[Forgotten]):
    """Deletes expired idempotency responses and sessions."""

    name = "answer_retention"

    async def run_once(self) -> Forgotten:
        answers = 0
        while dropped := await self._db.changed(SQL.idempotency_drop, limit=BATCH):
            answers += dropped
        sessions = 0
        while dropped := await self._db.changed(SQL.session_drop, limit=BATCH):
            sessions += dropped
        return Forgotten(answers=answers, sessions=sessions)
