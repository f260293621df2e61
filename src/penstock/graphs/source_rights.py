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
        if source.is_default or source.owner == owner:
            return
        if role is None:
            role = await self._role(owner)
        if role < Role.ADMIN:
            raise PermissionDenied(
                f"Data source {source.data_source_id} is for its owner, {source.owner}, and for admins;"
                f" {owner} may not use it.",
                hint="Name another data_source_id.",
            )

    async def _role(self, username: str) -> Role:
        found = None if self._users is None else await self._users.find(username)
        return Role.ANALYST if found is None else found.role
