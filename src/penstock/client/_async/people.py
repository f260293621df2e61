"""Users, their keys, and what they like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client.decoding import decode
from penstock.client.models import User

if TYPE_CHECKING:
    from penstock.client._async.transport import AsyncTransport


class AsyncUsers:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, username: str, email: str | None = None, *, role: str = "analyst", **more: Any) -> User:
        body = {"username": username, "email": email, "role": role} | more
        return decode(User, await self._transport.call("POST", "/api/users", json=body))

    async def bootstrap(self, username: str, email: str | None = None, **more: Any) -> User:
        """The first user; only while there are none."""
        body = {"username": username, "email": email} | more
        return decode(User, await self._transport.call("POST", "/api/users/bootstrap", json=body))

    async def get(self, username: str) -> User:
        return decode(User, await self._call("GET", "/api/users/{username}", username))

    async def all(self, *, limit: int = 100, offset: int = 0, is_active: bool | None = None) -> list[User]:
        query = {"limit": limit, "offset": offset, "is_active": is_active}
        answer = await self._transport.call("GET", "/api/users", query=query)
        return [decode(User, item) for item in answer["data"]]

    async def update(self, username: str, **changes: Any) -> User:
        return decode(User, await self._call("PUT", "/api/users/{username}", username, json=changes))

    async def deactivate(self, username: str) -> User:
        return decode(User, await self._call("DELETE", "/api/users/{username}", username))

    async def set_role(self, username: str, role: str) -> User:
        return decode(User, await self._call("PUT", "/api/users/{username}/role", username, json={"role": role}))

    async def create_key(self, username: str, name: str, **options: Any) -> dict[str, Any]:
        """The key itself is in this answer, and never in another."""
        body = {"name": name} | options
        made: dict[str, Any] = await self._call("POST", "/api/users/{username}/api-keys", username, json=body)
        return made

    async def keys(self, username: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._call("GET", "/api/users/{username}/api-keys", username))["data"]
        return found

    async def revoke_keys(self, username: str) -> None:
        await self._call("DELETE", "/api/users/{username}/api-keys", username)

    async def revoke_key(self, username: str, key_id: object) -> None:
        await self._call("DELETE", "/api/users/{username}/api-keys/{key_id}", username, key_id=key_id)

    async def _call(self, method: str, template: str, username: str, *, json: object = None, **path: object) -> Any:
        return await self._transport.call(method, template, path={"username": username} | path, json=json)


class AsyncFavorites:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def all(self, resource_type: str | None = None) -> list[dict[str, Any]]:
        answer = await self._transport.call("GET", "/api/favorites", query={"resource_type": resource_type})
        found: list[dict[str, Any]] = answer["data"]
        return found

    async def add(self, resource_type: str, resource_id: int) -> None:
        body = {"resource_type": resource_type, "resource_id": resource_id}
        await self._transport.call("POST", "/api/favorites", json=body)

    async def drop(self, resource_type: str, resource_id: int) -> None:
        path = {"resource_type": resource_type, "resource_id": resource_id}
        await self._transport.call("DELETE", "/api/favorites/{resource_type}/{resource_id}", path=path)
