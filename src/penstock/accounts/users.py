"""Users and their roles. A user is never deleted, only deactivated: what they own stays theirs.

Nobody can assign a role above their own, or change a user whose role is above their own; otherwise
an admin could promote themselves to ops. Usernames are case-insensitive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import asyncpg

from penstock.accounts.role import Role
from penstock.kit.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from penstock.kit.db import Db, Tx

SQL = load("penstock.accounts.sql")
MAX_NAME = 200
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.@+-]{0,199}$"
RESERVED = frozenset({"bootstrap", "operator", "penstock"})
"""The control plane itself, the operator token, and the route /api/users/bootstrap."""
_NAME = re.compile(NAME_PATTERN)


class Audit(Protocol):
    """Writes an audit entry in the transaction of the change."""

    async def __call__(
        self, tx: Tx, actor: str, action: str, subject: str, detail: object
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    username: str
    email: str | None
    display_name: str | None
    role: Role
    is_active: bool
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None
    role_changed_at: datetime | None
    role_changed_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who makes a change."""

    username: str
    role: Role

    def check_over(self, user: User) -> None:
        if user.role > self.role:
            raise PermissionDenied(
                f"{user.username} has the role {user.role.word}, which is above yours."
            )

    def check_gives(self, role: Role) -> None:
        if role > self.role:
            raise PermissionDenied(
                f"You cannot assign the role {role.word}: yours is {self.role.word}."
            )


SYSTEM_ACTOR = Actor(username="penstock", role=Role.OPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Changes to a user; None leaves a field as it is."""

    email: str | None = None
    display_name: str | None = None
    is_active: bool | None = None


class Users:
    def __init__(self, db: Db, audit: Audit, *, changed: Callable[[], None] = lambda: None) -> None:
        """`changed` is called after the commit of any change to a user's permissions."""
        self._db = db
        self._audit = audit
        self._changed = changed

    async def add(
        self,
        username: str,
        *,
        role: Role,
        email: str | None = None,
        display_name: str | None = None,
        actor: Actor,
    ) -> User:
        actor.check_gives(role)
        async with self._db.transaction() as tx:
            return await self._insert(tx, username, role, email, display_name, actor.username)

    async def bootstrap(
        self,
        username: str,
        *,
        email: str | None = None,
        display_name: str | None = None,
        tx: Tx | None = None,
    ) -> User:
        """Create the first user, with the role ops; a conflict when any user exists, also between
        concurrent calls."""
        async with self._db.transaction(tx) as tx:
            await tx.fetch(SQL.bootstrap_turn)
            if await tx.value(SQL.account_count, is_active=None):
                raise Conflict(
                    "Users exist already.",
                    hint="Ask a user with the role admin or ops to add you.",
                )
            return await self._insert(
                tx, username, Role.OPS, email, display_name, SYSTEM_ACTOR.username
            )

    async def provide(
        self, username: str, *, role: Role, email: str | None, display_name: str | None
    ) -> User:
        """The user whom an identity provider or trusted proxy authenticated; created on first
        login."""
        user = await self.find(username)
        if user is not None:
            return user
        try:
            return await self.add(
                username, role=role, email=email, display_name=display_name, actor=SYSTEM_ACTOR
            )
        except Conflict:
            return await self.get(username)

    async def change(self, username: str, profile: Profile, *, actor: Actor) -> User:
        async with self._db.transaction() as tx:
            user = await self.locked(tx, username, actor)
            changed = {
                "email": profile.email,
                "display_name": profile.display_name,
                "is_active": profile.is_active,
            }
            row = await tx.row(SQL.account_change, username=user.username, **changed)
            tx.after_commit(self._changed)
            changes = {name: value for name, value in changed.items() if value is not None}
            await self._audit(tx, actor.username, "user.change", f"user:{user.username}", changes)
            return _user(row)

    async def change_role(self, username: str, role: Role, *, actor: Actor) -> User:
        actor.check_gives(role)
        async with self._db.transaction() as tx:
            user = await self.locked(tx, username, actor)
            if user.role is role:
                return user
            row = await tx.row(
                SQL.account_role, username=user.username, role=role.word, actor=actor.username
            )
            tx.after_commit(self._changed)
            detail = {"from": user.role.word, "to": role.word}
            await self._audit(tx, actor.username, "user.role", f"user:{user.username}", detail)
            return _user(row)

    async def get(self, username: str) -> User:
        user = await self.find(username)
        if user is None:
            raise _missing(username)
        return user

    async def find(self, username: str) -> User | None:
        row = await self._db.row(SQL.account_get, username=username)
        return None if row is None else _user(row)

    async def page(self, *, is_active: bool | None, offset: int, limit: int) -> list[User]:
        rows = await self._db.fetch(
            SQL.account_list, is_active=is_active, offset=offset, limit=limit
        )
        return [_user(row) for row in rows]

    async def seen(self, username: str) -> None:
        """Record a login, at most once a minute."""
        await self._db.changed(SQL.account_seen, username=username)

    async def locked(self, tx: Tx, username: str, actor: Actor) -> User:
        """The user whom `actor` is about to change, locked until the transaction ends."""
        row = await tx.row(SQL.account_lock, username=username)
        if row is None:
            raise _missing(username)
        user = _user(row)
        actor.check_over(user)
        return user

    async def _insert(
        self,
        tx: Tx,
        username: str,
        role: Role,
        email: str | None,
        display_name: str | None,
        actor: str,
    ) -> User:
        check_username(username)
        values = {"email": email, "display_name": display_name}
        try:
            async with tx.savepoint():
                row = await tx.row(SQL.account_add, username=username, role=role.word, **values)
        except asyncpg.UniqueViolationError:
            raise Conflict(f"User {username} already exists.", username=username) from None
        await self._audit(tx, actor, "user.add", f"user:{username}", {"role": role.word})
        return _user(row)


def check_username(username: str) -> None:
    """The name must be safe as a storage folder, in a URL and in a log line."""
    if not _NAME.fullmatch(username) or username.lower() in RESERVED:
        raise InvalidInput(
            f"{username[:80]!r} is not a valid username.",
            hint=f"Use 1-{MAX_NAME} letters, digits and _ . @ + -, starting with a letter or digit;"
            f" reserved: {', '.join(sorted(RESERVED))}",
        )


def _missing(username: str) -> NotFound:
    return NotFound(f"There is no user {username[:80]!r}.")


def _user(row: asyncpg.Record | None) -> User:
    if row is None:
        raise NotFound("This user no longer exists.")
    values: dict[str, Any] = dict(row)
    return User(**(values | {"role": Role[row["role"].upper()]}))
