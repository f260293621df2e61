"""Answers to writes, kept for a day under the key that the caller chose, so that a repeated request
does nothing twice.

Whoever begins first has the turn. The same request again gets the first answer, another body under
the same key is a conflict, and so is a repetition while the first is still under way. A turn that
was never ended (its process died) can be taken over after a while. An answer that holds a secret is
not kept: its repetition is a conflict that says so.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import orjson

from penstock.accounts.role import Role
from penstock.accounts.users import SQL
from penstock.kit.errors import Conflict, PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.db import Db

MAX_KEY = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    username: str
    role: Role
    """Of the caller now; whoever had a higher one then does not get the answer that was for it."""
    method: str
    path: str
    key: str
    body: bytes

    @property
    def id(self) -> bytes:
        return hashlib.sha256(
            "\0".join((self.username, self.method, self.path, self.key)).encode()
        ).digest()

    @property
    def digest(self) -> bytes:
        return hmac.new(self.key.encode(), self.body, hashlib.sha256).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Idempotency:
    def __init__(self, db: Db) -> None:
        self._db = db

    async def begin(self, request: Request) -> UUID | Answer:
        """The turn, to be ended with `keep` or `forget`; or the answer that was given before."""
        turn = uuid4()
        values = {
            "username": request.username,
            "role": request.role.word,
            "method": request.method,
            "path": request.path,
        }
        begun = await self._db.value(
            SQL.idempotency_begin, id=request.id, digest=request.digest, attempt_id=turn, **values
        )
        return turn if begun is not None else await self._earlier(request)

    async def keep(self, request: Request, turn: UUID, answer: Answer | None) -> None:
        """`None` for an answer that must not be written down."""
        await self._db.changed(
            SQL.idempotency_keep,
            id=request.id,
            attempt_id=turn,
            status=None if answer is None else answer.status,
            headers=None if answer is None else orjson.dumps(dict(answer.headers)).decode(),
            body=None if answer is None else answer.body,
        )

    async def forget(self, request: Request, turn: UUID) -> None:
        """Nothing was done, so the same key may be tried again."""
        await self._db.changed(SQL.idempotency_forget, id=request.id, attempt_id=turn)

    async def _earlier(self, request: Request) -> Answer:
        row = await self._db.row(SQL.idempotency_get, id=request.id)
        if row is None or row["answered_at"] is None:
            raise Conflict(
                "The first request with this Idempotency-Key is still under way.",
                hint="Try again soon.",
            )
        if not hmac.compare_digest(row["digest"], request.digest):
            raise Conflict(
                "This Idempotency-Key was used for another request.",
                hint="Use a new key for every new request.",
            )
        if request.role < Role[row["role"].upper()]:
            raise PermissionDenied(
                f"The answer was given to you with the role {row['role']}; now you have {request.role.word}.",
                hint="Read what became of it, as far as your role may.",
            )
        if row["status"] is None:
            raise Conflict(
                "This was done, and its answer held a secret that is shown once.",
                hint="Use a new key.",
            )
        return Answer(status=row["status"], headers=orjson.loads(row["headers"]), body=row["body"])
