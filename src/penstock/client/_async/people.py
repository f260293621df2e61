"""Users, their API keys and favorites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.models import User

if TYPE_CHECKING:
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client.words import ResourceType, Role


class AsyncUsers(AsyncResource):
    """The answers of these routes have no envelope."""

    async def create(
        self,
        username: str,
        email: str | None = None,
        *,
        role: Role = "analyst",
        display_name: str | None = None,
    ) -> User:
        body = given(username=username, email=email, role=role, display_name=display_name)
        return decode(User, await self._ask("POST", "/api/users", json=body))

    async def bootstrap(
        self, username: str, email: str | None = None, *, display_name: str | None = None
    ) -> User:
        """The first user, with an API key; only while there are none."""
        body = given(username=username, email=email, display_name=display_name)
        return decode(User, await self._ask("POST", "/api/users/bootstrap", json=body))

    async def get(self, username: str) -> User:
        return decode(User, await self._ask("GET", "/api/users/{username}", username=username))

    async def all(
        self, *, limit: int = 100, offset: int = 0, is_active: bool | None = None
    ) -> list[User]:
        query = {"limit": limit, "offset": offset, "is_active": is_active}
        answer: shapes.UserList = await self._ask("GET", "/api/users", query=query)
        return [decode(User, item) for item in answer["data"]]

    async def update(
        self,
        username: str,
        *,
        email: str | None = None,
        display_name: str | None = None,
        is_active: bool | None = None,
    ) -> User:
        body = given(email=email, display_name=display_name, is_active=is_active)
        answer = await self._ask("PUT", "/api/users/{username}", username=username, json=body)
        return decode(User, answer)

    async def deactivate(self, username: str) -> User:
        return decode(User, await self._ask("DELETE", "/api/users/{username}", username=username))

    async def set_role(self, username: str, role: Role) -> User:
        body: shapes.ChangedRole = {"role": role}
        answer = await self._ask("PUT", "/api/users/{username}/role", username=username, json=body)
        return decode(User, answer)

    async def create_key(
        self, username: str, name: str, *, expires_in_days: int | None = None
    ) -> shapes.NewKey:
        """The key itself is in this answer, and never in another."""
        body = given(name=name, expires_in_days=expires_in_days)
        key: shapes.NewKey = await self._ask(
            "POST", "/api/users/{username}/api-keys", username=username, json=body
        )
        return key

    async def keys(self, username: str) -> list[shapes.ShownKey]:
        keys: shapes.KeyList = await self._ask(
            "GET", "/api/users/{username}/api-keys", username=username
        )
        return keys["data"]

    async def revoke_keys(self, username: str) -> shapes.Revoked:
        done: shapes.Revoked = await self._ask(
            "DELETE", "/api/users/{username}/api-keys", username=username
        )
        return done

    async def revoke_key(self, username: str, key_id: int) -> shapes.Revoked:
        template = "/api/users/{username}/api-keys/{key_id}"
        done: shapes.Revoked = await self._ask("DELETE", template, username=username, key_id=key_id)
        return done


class AsyncFavorites(AsyncResource):
    async def all(self, **filters: Unpack[shapes.FavoritesFilters]) -> list[shapes.Favorite]:
        return [item async for item in listed(self._transport, "/api/favorites", **filters)]

    async def add(self, resource_type: ResourceType, resource_id: int) -> shapes.Favorite:
        body: shapes.FavoriteBody = {"resource_type": resource_type, "resource_id": resource_id}
        favorite: shapes.Favorite = await self._call("POST", "/api/favorites", json=body)
        return favorite

    async def drop(self, resource_type: ResourceType, resource_id: int) -> shapes.FavoriteDropped:
        gone: shapes.FavoriteDropped = await self._call(
            "DELETE",
            "/api/favorites/{resource_type}/{resource_id}",
            resource_type=resource_type,
            resource_id=resource_id,
        )
        return gone
