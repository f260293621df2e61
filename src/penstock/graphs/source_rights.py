"""A mapping uses only a source that its owner may use: the default one, one of their own, and as an admin any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.accounts.role import Role
from penstock.kit.errors import InvalidInput, PermissionDenied

if TYPE_CHECKING:
    from penstock.accounts.users import Users
    from penstock.sources.records import DataSource, DataSources


class SourceRights:
    def __init__(self, sources: DataSources, users: Users | None = None) -> None:
        self._sources = sources
        self._users = users

    async def source(self, data_source_id: int | None) -> DataSource:
        """By number, or the default one."""
        if data_source_id is not None:
            return await self._sources.get(data_source_id)
        default = await self._sources.default()
        if default is None:
            raise InvalidInput(
                "No data source was named, and there is no default one.",
                hint="Name one: data_source_id.",
                field="data_source_id",
            )
        return default

    async def check(self, source: DataSource, owner: str, *, role: Role | None = None) -> None:
        """`role` is the owner's, where it is known; else it is what the users table says."""
        if not _is_theirs(source, owner) and (role or await self._role(owner) or Role.ANALYST) < Role.ADMIN:
            raise _others(source, owner)

    async def check_still(self, source: DataSource, owner: str) -> None:
        """Whether what was checked before holds yet; of somebody who is in no users table it does."""
        if not _is_theirs(source, owner) and (await self._role(owner) or Role.OPS) < Role.ADMIN:
            raise _others(source, owner)

    async def _role(self, username: str) -> Role | None:
        found = None if self._users is None else await self._users.find(username)
        return None if found is None else found.role


def _is_theirs(source: DataSource, owner: str) -> bool:
    return source.is_default or source.owner == owner


def _others(source: DataSource, owner: str) -> PermissionDenied:
    return PermissionDenied(
        f"Data source {source.data_source_id} is its owner's, {source.owner}, and the admins'; {owner} may not use it.",
        hint="Name another data_source_id.",
    )
