"""API keys: `pst_` and 256 random bits. Shown once, stored as a digest, valid until they expire or
are revoked."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.accounts.role import Role
from penstock.accounts.users import SQL, SYSTEM_ACTOR, Actor, Audit, User, Users
from penstock.kit.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from penstock.kit.cache import InvalidatedCache
    from penstock.kit.db import Db, Tx

PREFIX = "pst_"
DEFAULT_LIFE = timedelta(days=90)
MAX_LIFE = timedelta(days=366)
MAX_KEYS = 50
"""Active keys per user."""
MAX_ID = 2**53 - 1
_HINT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    api_key_id: int
    username: str
    name: str
    hint: str
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """The owner of a key; `noted` is false when its last use must be updated."""

    api_key_id: int
    username: str
    role: Role
    is_active: bool
    noted: bool


class ApiKeys:
    def __init__(
        self,
        db: Db,
        users: Users,
        audit: Audit,
        *,
        secret: Callable[[], str] = lambda: secrets.token_urlsafe(32),
        changed: Callable[[], None] = lambda: None,
        remembered: InvalidatedCache[Bearer] | None = None,
    ) -> None:
        """`changed` is called after a revocation commits; without `remembered` (a cache) each use
        of a key queries the database."""
        self._db = db
        self._users = users
        self._audit = audit
        self._secret = secret
        self._changed = changed
        self._remembered = remembered

    async def create(
        self,
        username: str,
        *,
        name: str,
        life: timedelta = DEFAULT_LIFE,
        actor: Actor,
        tx: Tx | None = None,
    ) -> tuple[ApiKey, str]:
        """The key's row, and the key."""
        if not timedelta(0) < life <= MAX_LIFE:
            raise InvalidInput(f"A key is valid for at most {MAX_LIFE.days} days.")
        key = PREFIX + self._secret()
        async with self._db.transaction(tx) as tx:
            user = await self._users.locked(tx, username, actor)
            if await tx.value(SQL.key_count, username=user.username) >= MAX_KEYS:
                raise Conflict(
                    f"{user.username} already has {MAX_KEYS} active keys, the maximum.",
                    hint="Revoke one.",
                )
            values = {
                "name": name,
                "hint": key[:_HINT],
                "digest": _digest(key),
                "actor": actor.username,
                "life": life,
            }
            row = await tx.row(SQL.key_add, username=user.username, **values)
            await self._audit(
                tx, actor.username, "api_key.create", f"user:{user.username}", {"name": name}
            )
        return ApiKey(**dict(row or {})), key

    async def bootstrap(
        self, username: str, *, email: str | None, display_name: str | None
    ) -> tuple[User, str]:
        """Create the first user and an API key for them."""
        async with self._db.transaction() as tx:
            user = await self._users.bootstrap(
                username, email=email, display_name=display_name, tx=tx
            )
            _, key = await self.create(user.username, name="bootstrap", actor=SYSTEM_ACTOR, tx=tx)
        return user, key

    async def of(self, username: str) -> list[ApiKey]:
        user = await self._users.get(username)
        return [
            ApiKey(**dict(row))
            for row in await self._db.fetch(SQL.key_list, username=user.username)
        ]

    async def revoke(self, username: str, api_key_id: int | None, *, actor: Actor) -> int:
        """Revoke one key, or all when `api_key_id` is None; returns how many were active."""
        async with self._db.transaction() as tx:
            user = await self._users.locked(tx, username, actor)
            if api_key_id is not None and not await tx.value(
                SQL.key_exists, username=user.username, api_key_id=api_key_id
            ):
                raise NotFound(f"{user.username} has no key {api_key_id}.")
            revoked = await tx.changed(
                SQL.key_revoke, username=user.username, api_key_id=api_key_id
            )
            detail = {"api_key_id": api_key_id, "revoked": revoked}
            await self._audit(tx, actor.username, "api_key.revoke", f"user:{user.username}", detail)
            tx.after_commit(self._changed)
        return revoked

    async def bearer(self, key: str) -> Bearer | None:
        """The owner of this key; None when it is unknown, expired or revoked."""
        if not key.startswith(PREFIX):
            return None
        digest = _digest(key)
        if self._remembered is None:
            return await self._bearer(digest)
        return await self._remembered.get(digest, lambda: self._bearer(digest), lasts=_is_noted)

    async def used(self, api_key_id: int) -> None:
        await self._db.changed(SQL.key_used, api_key_id=api_key_id)

    async def _bearer(self, digest: bytes) -> Bearer | None:
        row = await self._db.row(SQL.key_bearer, digest=digest)
        if row is None:
            return None
        return Bearer(**(dict(row) | {"role": Role[row["role"].upper()]}))


def _is_noted(bearer: Bearer) -> bool:
    """Only noted rows are cached: noting a use changes the row."""
    return bearer.noted


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
