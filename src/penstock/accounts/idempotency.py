"""Idempotency keys: the first response to a write is stored for a day and replayed on repetition.

The first request takes a lock. The same request again gets the stored response; another body under
the same key is a conflict, and so is a repetition while the first request is still running. A lock
that was never released (its process died) can be taken over after a while. A response that holds a
secret is not stored: its repetition is a conflict that says so.
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
    """The caller's current role; a response stored under a higher role is not replayed."""
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
        """A lock, to be released with `store` or `release`; or the stored response."""
        lock_id = uuid4()
        values = {
            "username": request.username,
            "role": request.role.word,
            "method": request.method,
            "path": request.path,
        }
        begun = await self._db.value(
            SQL.idempotency_begin,
            id=request.id,
            digest=request.digest,
            attempt_id=lock_id,
            **values,
        )
        return lock_id if begun is not None else await self._stored(request)

    async def store(self, request: Request, lock_id: UUID, answer: Answer | None) -> None:
        """Store the response and release the lock; `None`: the response must not be stored."""
        await self._db.changed(
            SQL.idempotency_keep,
            id=request.id,
            attempt_id=lock_id,
            status=None if answer is None else answer.status,
            headers=None if answer is None else orjson.dumps(dict(answer.headers)).decode(),
            body=None if answer is None else answer.body,
        )

    async def release(self, request: Request, lock_id: UUID) -> None:
        """Nothing was done, so the same key may be tried again."""
        await self._db.changed(SQL.idempotency_forget, id=request.id, attempt_id=lock_id)

    async def _stored(self, request: Request) -> Answer:
        row = await self._db.row(SQL.idempotency_get, id=request.id)
        if row is None or row["answered_at"] is None:
            raise Conflict(
                "The first request with this Idempotency-Key is still running.",
                hint="Try again in a few seconds.",
            )
        if not hmac.compare_digest(row["digest"], request.digest):
            raise Conflict(
                "This Idempotency-Key was used for another request.",
                hint="Use a new key for every new request.",
            )
        if request.role < Role[row["role"].upper()]:
            raise PermissionDenied(
                f"The stored response was for the role {row['role']}; your role is now"
                f" {request.role.word}.",
                hint="Read the resource itself, if your role allows it.",
            )
        if row["status"] is None:
            raise Conflict(
                "This request was completed; its response held a secret that is shown once, or was"
                " too long to be stored.",
                hint="Use a new Idempotency-Key.",
            )
        return Answer(status=row["status"], headers=orjson.loads(row["headers"]), body=row["body"])
