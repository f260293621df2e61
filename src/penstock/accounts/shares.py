"""Shares: access to a data source, mapping or recipe that its owner grants to other users.

`use` allows running it, `edit` also changing it. The SQL functions `may_use_source` and
`may_run_mapping` evaluate shares at the time of each read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.kit.errors import Conflict, InvalidInput, NotFound
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from penstock.accounts.users import Audit, Users
    from penstock.kit.db import Db

SQL = load("penstock.accounts.sql")
EVERYBODY = "*"
MAX_SHARES = 200
ResourceType: TypeAlias = Literal["data_source", "mapping", "recipe"]
ShareRole: TypeAlias = Literal["use", "edit"]
_HOLD = {
    "data_source": SQL.share_hold_data_source,
    "mapping": SQL.share_hold_mapping,
    "recipe": SQL.share_hold_recipe,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    type: ResourceType
    id: str
    owner: str

    def key(self) -> dict[str, str]:
        return {"resource_type": self.type, "resource_id": self.id}

    def __str__(self) -> str:
        return f"{self.type}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    username: str
    role: ShareRole
    created_by: str
    created_at: datetime


class Shares:
    def __init__(
        self, db: Db, users: Users, audit: Audit, *, changed: Callable[[], None] = lambda: None
    ) -> None:
        """`changed` is called after the commit of whatever changes what somebody may do."""
        self._db = db
        self._users = users
        self._audit = audit
        self._changed = changed

    async def list(self, resource: Resource) -> list[Share]:
        rows = await self._db.fetch(SQL.share_list, **resource.key())
        return [Share(**dict(row)) for row in rows]

    async def put(self, resource: Resource, username: str, role: ShareRole, *, actor: str) -> Share:
        """Grant a role to a user, or to everybody; it replaces an earlier one."""
        grantee = await self._grantee(resource, username)
        async with self._db.transaction() as tx:
            if await tx.value(_HOLD[resource.type], resource_id=resource.id) is None:
                raise NotFound(
                    f"There is no {resource.type.replace('_', ' ')} {resource.id[:100]}."
                )
            row = await tx.row(
                SQL.share_put, **resource.key(), username=grantee, role=role, created_by=actor
            )
            shares = await tx.fetch(SQL.share_list, **resource.key())
            if row is None or len(shares) > MAX_SHARES:
                raise Conflict(
                    f"It is already shared with {MAX_SHARES} users, the maximum.",
                    hint=f"Share it with everybody ({EVERYBODY}), or remove some of its shares.",
                )
            detail = {"username": grantee, "role": role}
            await self._audit(tx, actor, f"{resource.type}.share", str(resource), detail)
            tx.after_commit(self._changed)
        return Share(**dict(row))

    async def drop(self, resource: Resource, username: str, *, actor: str) -> bool:
        """Remove a share; False when there was none."""
        async with self._db.transaction() as tx:
            dropped = await tx.changed(SQL.share_drop, **resource.key(), username=username)
            if dropped:
                await self._audit(
                    tx, actor, f"{resource.type}.unshare", str(resource), {"username": username}
                )
                tx.after_commit(self._changed)
        return bool(dropped)

    async def role(self, resource: Resource, username: str) -> ShareRole | None:
        role: ShareRole | None = await self._db.value(
            SQL.share_role, **resource.key(), username=username
        )
        return role

    async def _grantee(self, resource: Resource, username: str) -> str:
        if username == EVERYBODY:
            return username
        grantee = (await self._users.get(username)).username
        if grantee == resource.owner:
            raise InvalidInput(
                f"{grantee} is the owner.", hint="Name another user.", field="grantee"
            )
        return grantee
